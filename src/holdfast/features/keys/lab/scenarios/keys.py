"""Several operators rotate keys under mixed faults: no member that could be asked ends up unable to read another; in calm a rotation
succeeds.

Spec: docs/keys.md, docs/decisions.md H57. What a keyring holds survives its process, as a key file does. The messages of the run itself are
not sealed with these keys: who could read whom is what the checker asks after every event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from holdfast.errors import HoldfastError
from holdfast.features.keys.lab.checkers import EverybodyNamed, KeysReported, Readable
from holdfast.features.keys.protocol.keys import Done, KeyKeeper, Report
from holdfast.features.keys.protocol.messages import KeyChange
from holdfast.features.keys.protocol.warden import TURN_SECONDS, KeyringPort
from holdfast.host import Address, Host, Machine, Membership
from holdfast.lab.checker import Checker
from holdfast.lab.crowd import BEAT_PERIOD, Crowd
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = 60.0  # of faults
ROTATION_INTERVAL = 3.0  # mean, for the whole group; a rotation takes about as long, so often two operators cross
GAPS = (0.3, 2.5)  # seconds between two steps of one rotation, whatever became of the former one
OTHER_SHARE = 0.5  # of the steps are asked for by another operator than the rotation began with
FILE_INTERVAL = 3.0  # mean; an operator adds a key to one key file by hand
CHANGES_LOST = 0.6  # while things go wrong: a step that some members made and others did not hear of is what matters
TIMEOUT = 2.0
KEYS = 3  # ids that operators choose from
GONE_AFTER = 20.0  # longer than any fault but a last crash, so that a member that is away is missed and not forgotten
STRAY_SECONDS = 3.2
# A turn that was taken and never used runs out; then three steps, each given as many tries as a bad hour needs.
SETTLE = STRAY_SECONDS + 4 * BEAT_PERIOD + GONE_AFTER + 1.1 * TURN_SECONDS + 12 * TIMEOUT
MENU = Menu(crashes=0.7, crash_forever=0.1, pauses=1.5, weather=2.0, loss=0.5, drift=0.01, duplicate=0.3)
SPARED_SECONDS = 1.0
FIRST, LAST = "00000000", "ffffffff"
STEPS = (("install", LAST), ("use", LAST), ("remove", ""))


class LabKeys:
    """A keyring whose contents stand in the setup of the run: a key is its own id."""

    def __init__(self, setup: Setup, place: str) -> None:
        self._setup, self._place = setup, place

    def ids(self) -> tuple[str, ...]:
        return keys_at(self._setup, self._place)

    def install(self, key: str) -> None:
        if key not in self.ids():
            self._write(*self.ids(), key)

    def use(self, key_id: str) -> str | None:
        if key_id not in self.ids():
            return f"key {key_id}: not in this keyring"
        self._write(key_id, *(each for each in self.ids() if each != key_id))
        return None

    def remove(self, key_id: str) -> str | None:
        if self.ids()[0] == key_id:
            return f"key {key_id}: is in use"
        self._write(*(each for each in self.ids() if each != key_id))
        return None

    def _write(self, *ids: str) -> None:
        self._setup.parameters[f"keys {self._place}"] = " ".join(ids)


class KeysScenario(Scenario):
    """Two to five members; an operator at any of them does any step at any time, without force."""

    name = "care/keys"
    title = "Key rotations by several operators under mixed faults: everybody stays readable"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(2, 5)))
        plan = draw_plan(random, names, SECONDS, MENU).sparing(random.sample(names, 2), SPARED_SECONDS)
        return Setup(names, SECONDS, SETTLE, plan, Link(Uniform(0.001, 0.05), loss=0.05), {"step": 0.0})

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        crowd = Crowd(host, [Address(name, PORT) for name in setup.names], gone_after=GONE_AFTER)
        return [crowd, self.make(host, crowd, LabKeys(setup, host.me.name))]

    def make(self, host: Host, membership: Membership, ring: KeyringPort) -> KeyKeeper:
        return KeyKeeper(host, membership, ring, sealed=True)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [Readable(partial(keys_at, setup)), EverybodyNamed()]

    def drive(self, world: World, setup: Setup) -> None:
        random = Random(f"{world.seed}/operators")
        loss = Random(f"{world.seed}/lost changes")
        world.network.lose_if(lambda source, target, message: isinstance(message, KeyChange) and loss.random() < CHANGES_LOST)
        at = random.expovariate(1 / ROTATION_INTERVAL)
        while at < setup.seconds:
            self._rotate(world, setup, random, at)
            at += random.expovariate(1 / ROTATION_INTERVAL)
        at = random.expovariate(1 / FILE_INTERVAL)
        while at < setup.seconds:
            world.at(at, partial(LabKeys(setup, random.choice(setup.names)).install, _key(random)))
            at += random.expovariate(1 / FILE_INTERVAL)

    def _rotate(self, world: World, setup: Setup, random: Random, at: float) -> None:
        operator, key = random.choice(setup.names), _key(random)
        for action in ("install", "use", "remove"):
            name = random.choice(setup.names) if random.random() < OTHER_SHARE else operator
            if action == "remove":
                world.at(min(at, setup.seconds), partial(remove_key_of, world, setup, name, random.choice(setup.names)))
            else:
                world.at(min(at, setup.seconds), partial(step, world, name, action, key))
            at += random.uniform(*GAPS)

    def unsettled(self, world: World, setup: Setup) -> str:
        """One operator makes a whole rotation; every step is repeated until every report says done."""
        number = int(float(setup.parameters["step"]))
        if number == len(STEPS):
            others = [host.me.name for host in world.alive if keys_at(setup, host.me.name)[0] != LAST]
            return f"{others} write with another key" if others else ""
        action, key = STEPS[number]
        operator = world.alive[0].me.name
        old = next((each for each in keys_at(setup, operator) if each != LAST), None)
        if action == "remove" and old is None:
            setup.parameters["step"] = number + 1.0
            return self.unsettled(world, setup)

        def done(reports: tuple[Report, ...]) -> None:
            if all(report.done for report in reports) and len(reports) == len(world.alive) and action != "remove":
                setup.parameters["step"] = number + 1.0

        step(world, operator, action, key or old or "", done)
        return f"{action} was not reported by everybody yet"


def _key(random: Random) -> str:
    return f"{random.randrange(KEYS):08x}"


def keys_at(setup: Setup, place: str) -> tuple[str, ...]:
    """What the key file there has."""
    return tuple(str(setup.parameters.get(f"keys {place}", FIRST)).split())


def remove_key_of(world: World, setup: Setup, name: str, other: str) -> None:
    """An operator believes that a rotation is over, and removes what it takes for the old key."""
    old = keys_at(setup, other)[0]
    if keys_at(setup, name)[0] == old:
        old = keys_at(setup, name)[-1]
    step(world, name, "remove", old)


def step(world: World, name: str, action: str, key: str, done: Done | None = None) -> None:
    """An operator at that node asks for a step, if the process runs and takes it."""
    host = world.nodes[name]
    if not host.running:
        return

    def report(reports: tuple[Report, ...]) -> None:
        host.emit(KeysReported(action, reports))
        if done is not None:
            done(reports)

    def ask() -> None:
        try:
            host.node.use(KeyKeeper).ask(action, key, TIMEOUT, report)
        except HoldfastError:
            return  # Another step is under way here.

    world.step(host, ask)


SCENARIO = KeysScenario()
