"""The flags of ``holdfast run`` that ask for a leader by election.  docs/run.md; H457."""

from __future__ import annotations

import pytest

from holdfast.cli.run.hold_flags import RunKind, kinds, modifiers, variables_of, ways
from holdfast.cli.run.wanted import wanted_hold
from holdfast.errors import ConfigError


def lead() -> RunKind:
    return next(kind for kind in kinds() if kind.option == "--lead")


def test_the_flags_are_those_of_this_feature() -> None:
    """H457: leadership has --by, and what says how an election goes is offered here."""
    assert [modifier.option for modifier in modifiers(lead())] == ["--by", "--variant", "--voters", "--rank", "--health"]
    assert [modifiers(kind) for kind in kinds() if kind.option != "--lead"] == [()]
    assert [(way.kind, way.name) for way in ways(lead())] == [("elect", "election")]


def test_what_is_asked_for() -> None:
    """Election 10: the kind of grant follows from --by; a rank may have several parts. Without --by the seats decide."""
    plain = wanted_hold({"lead": "x"}, None, (), 2.0)
    assert (plain.hold, plain.options, plain.grace, plain.lengthened) == ("lead:x", {"grace": 2.0}, 2.0, True)
    assert wanted_hold({"lead": "x", "by": "seats"}, None, (), 2.0) == plain
    elected = wanted_hold({"lead": "x", "by": "election", "rank": "tag:a,-tag:b", "variant": "base"}, None, (), None)
    assert (elected.hold, elected.grace, elected.lengthened) == ("elect:x", 0.0, True)
    assert elected.options == {"grace": 0.0, "rank": ["tag:a", "-tag:b"], "variant": "base"}


@pytest.mark.parametrize(
    "given, said",
    [
        ({"lead": "x", "by": "vote"}, "--by: 'vote'; accepted are seats, election"),
        ({"lead": "x", "by": ""}, "--by: ''; accepted are seats, election"),
        ({"lead": "x", "health": "own"}, "--health: says how an election goes; accepted together with --by election"),
        ({"lead": "x", "by": "seats", "voters": "seats"}, "--voters: says how an election goes; accepted together with --by election"),
        ({"by": "election"}, "--by: says how --lead is meant; accepted together with --lead"),
        ({"ticket": "gpu:8", "rank": "hash"}, "--rank: says how --lead is meant; accepted together with --lead"),
    ],
)
def test_what_is_refused(given: dict[str, str], said: str) -> None:
    """docs/run.md: a flag that would be ignored is refused, with what it needs."""
    with pytest.raises(ConfigError) as refused:
        wanted_hold(given, None, (), None)
    assert str(refused.value) == said


def test_a_command_reads_the_same_variable() -> None:
    """docs/run.md: HOLDFAST_TERM is the token of a term, whichever way it was decided."""
    assert variables_of("lead") == variables_of("elect") == {"HOLDFAST_TERM": "token"}
    assert variables_of("elsewhere") == {}
