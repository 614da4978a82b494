"""Mail in the lab: seeds of ``mail/pairs`` and ``mail/detour`` hold, every outcome occurs, and every rule that is taken out is missed by
some checker.

Spec: foundation F3; views D30, D31; docs/mail.md.
"""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.events import Event
from holdfast.features.mail.lab.checkers import LetterEnded
from holdfast.features.mail.lab.scenarios.detour import SCENARIO as DETOUR
from holdfast.features.mail.lab.scenarios.detour import DetourScenario
from holdfast.features.mail.lab.scenarios.mail import SCENARIO, MailScenario
from holdfast.features.mail.protocol.mail import Mail
from holdfast.features.mail.protocol.messages import Outcome
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario, Setup, run
from holdfast.lab.sweep import sweep
from holdfast.lab.world import World
from tests import sizes
from tests.features.mail import ablations as without
from tests.support.search import Search

SEEDS_MAX = 100  # within which a missing rule must show


@pytest.mark.nightly
def test_sweep() -> None:
    """F3, docs/mail.md: loss, duplication, reordering, cuts, pauses, crashes, restarts, drift; then calm."""
    sweep(SCENARIO, sizes.later_seeds())


@pytest.mark.nightly
def test_sweep_round_cuts() -> None:
    """Views D30, D31, docs/mail.md: also a rough overlay, lists that empty and views that differ; then calm with cuts."""
    sweep(DETOUR, sizes.later_seeds())


@pytest.mark.parametrize(
    "scenario, invariant",
    [
        pytest.param(without.MailAblation(inbox=without.ForgetfulInbox), "at-most-once", id="forgetful"),
        pytest.param(without.MailAblation(inbox=without.UnorderedInbox), "in-order", id="unordered"),
        pytest.param(without.MailAblation(inbox=without.ImpatientInbox), "calm-letters", id="impatient"),
        pytest.param(without.MailAblation(inbox=without.KeenInbox), "outcomes-are-true", id="keen"),
        pytest.param(without.MailAblation(without.ReadressingMail), "F3 right-life", id="readdressing"),
        pytest.param(without.MailAblation(without.SaysNobody), "outcomes-are-true", id="says-nobody"),
        pytest.param(without.MailAblation(without.TrustsEveryReceipt), "outcomes-are-true", id="any-receipt"),
        pytest.param(without.MailAblation(without.NeverEnds), "answered-in-time", id="never-ends"),
        pytest.param(without.MailAblation(without.SendsOnce), "calm-letters", id="sends-once"),
        pytest.param(without.DetourAblation(detour=without.NeverCarries), "calm-letters", id="never-carries"),
        pytest.param(without.DetourAblation(detour=without.CarriesOnce), "calm-letters", id="carries-once"),
        pytest.param(without.DetourAblation(without.Renumbers, without.Renumbering), "in-order", id="renumbers"),
        pytest.param(without.DetourAblation(detour=without.AnswersDirectly), "calm-letters", id="answers-directly"),
        pytest.param(without.DetourAblation(detour=without.TrustsTheOverlay), "outcomes-are-true", id="trusts-the-overlay"),
        pytest.param(without.DetourAblation(without.TwoInboxes), "at-most-once", id="two-inboxes"),
        pytest.param(without.DetourAblation(without.EndsWithTheList), "calm-letters", id="ends-with-the-list"),
        pytest.param(without.DetourAblation(without.ListAlone), "calm-letters", id="list-alone"),
        pytest.param(without.DetourAblation(without.TrippedIsCertain), "outcomes-are-true", id="tripped-is-certain"),
    ],
)
def test_a_missing_rule_is_found(scenario: Scenario, invariant: str, search: Search) -> None:
    """docs/mail.md: a checker that cannot fail proves nothing."""
    assert search(scenario, SEEDS_MAX) == invariant


def test_ablations_replace_what_they_say() -> None:
    """The scenario without an ablation is the scenario."""
    for scenario in (without.MailAblation(), without.DetourAblation()):
        assert all(run(scenario, seed).ok for seed in range(3))


class Counts(MailScenario):
    """Notes what became of letters, and which branches were taken."""

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.counts: Counter[str] = Counter()

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        world.listeners.append(self._on_event)

    def unsettled(self, world: World, setup: Setup) -> str:
        why = super().unsettled(world, setup)
        if not why:
            for host in world.alive:
                self.counts += host.node.use(Mail).counts
        return why

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, LetterEnded):
            self.outcomes[event.outcome] += 1


class CountsDetours(Counts, DetourScenario):
    """The same of letters that go round cuts."""


def test_everything_happens() -> None:
    """Marks: a sweep that never loses, doubles, overtakes, refuses or restarts proves little."""
    scenario = Counts()
    for seed in range(sizes.seeds(40)):
        assert run(scenario, seed).ok
    wanted = {Outcome.QUEUED, Outcome.NOBODY, Outcome.FULL, Outcome.TIMEOUT, Outcome.NOT_A_MEMBER}
    assert wanted <= scenario.outcomes.keys()
    assert {"resent", "duplicate", "early", "late"} <= scenario.counts.keys()


def test_everything_happens_round_cuts() -> None:
    """Marks: the overlay delivers, refuses and gives up, receipts come back by it, and views give receivers up."""
    scenario = CountsDetours()
    for seed in range(sizes.seeds(40)):
        assert run(scenario, seed).ok
    assert set(Outcome) - scenario.outcomes.keys() == {Outcome.EARLY, Outcome.BUSY, Outcome.TOO_LARGE}
    wanted = {"carried", "answers_carried", "overlay_delivered", "overlay_busy", "overlay_tripped", "duplicate", "early", "tripped"}
    assert wanted <= scenario.counts.keys()
