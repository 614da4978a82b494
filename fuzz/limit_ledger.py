"""Two ledgers, and a network that does all that is allowed.  Spec: limits 7, RL3, D1, D4; foundation 4.

Each message may arrive at any time, in any order, again, by another path or never; so may acknowledgements. The oracle writes down every
amount that was given, by number. In some runs a peer lies too: then what it says may be wrong, but nothing is made of nothing at this end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NoReturn

from fuzz.view_host import Menu, Misbehaved
from holdfast.kit.ledger import AMOUNT_MAX, OPEN_MAX, Amounts, Batch, Ledger, Refusal

POOL_MAX = 60  # messages and acknowledgements under way, each way; the oldest are lost
KEYS = (-1, 1, 2, 3)
LIARS = 0.15  # of all runs


class End:
    """One of the two lives, and what the oracle knows of it."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.given: list[Amounts] = []  # by this life, under the numbers 1, 2, ...
        self.taken: Counter[int] = Counter()  # by this life, as its ledger said
        self.batches: list[Batch] = []  # under way to this life
        self.acks: list[int] = []  # the same

    def given_until(self, seq: int) -> Counter[int]:
        """All that was given under numbers up to this one."""
        found: Counter[int] = Counter()
        for amounts in self.given[:seq]:
            found.update(amounts)
        return found


class LedgerRun:
    """One history of two lives."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.seed, self.random = seed, Random(seed)
        self.counts: Counter[str] = Counter()
        self._trace = trace
        self._ends = (End(), End())
        self._lies = self.random.random() < LIARS
        self._step = 0

    def play(self) -> None:
        menu = Menu(self.random, {
            self._give: 10, self._send: 10, self._arrive: 14, self._acknowledge: 8, self._hear: 10, self._lose: 1,
            self._lie: 3 if self._lies else 0,
        })  # fmt: skip
        menu.play(self.random.randint(50, 400))
        if not self._lies:
            self._calm()

    def _pick(self) -> tuple[End, End]:
        one, other = self._ends
        return (one, other) if self.random.random() < 0.5 else (other, one)

    def _give(self) -> None:
        giver, taker = self._pick()
        largest = self.random.choice((0, 5, 1 << 32, AMOUNT_MAX))
        amounts = {key: self.random.randint(0, largest) for key in KEYS if self.random.random() < 0.6}
        before = dict(giver.ledger.outstanding)
        if giver.ledger.give(amounts):
            giver.given.append(amounts)
            self._note(f"gives {amounts}")
        else:
            self.counts["no_room"] += 1
            full = giver.ledger.given - giver.ledger.acked >= OPEN_MAX
            if not full and all(before.get(key, 0) + amount <= AMOUNT_MAX for key, amount in amounts.items()):
                self._fail("it refuses to give where there is room")
        self._look(giver, taker)

    def _send(self) -> None:
        giver, taker = self._pick()
        taker.batches.append(giver.ledger.message())
        del taker.batches[:-POOL_MAX]

    def _arrive(self) -> None:
        """Any message that is under way, and perhaps it will come again."""
        giver, taker = self._pick()
        if taker.batches:
            at = self.random.randrange(len(taker.batches))
            batch = taker.batches[at]
            if self.random.random() < 0.5:
                del taker.batches[at]
            self._take(giver, taker, batch)

    def _take(self, giver: End, taker: End, batch: Batch) -> None:
        known = taker.ledger.taken
        room = self.random.random() < 0.95
        found = taker.ledger.take(batch, lambda new: room)
        self._note(f"{batch}: {found}")
        if isinstance(found, Refusal):
            self.counts[found.value] += 1
            if taker.ledger.taken != known:
                self._fail("D4: it took nothing, and acknowledges more")
            honest = {Refusal.PAST, Refusal.TOO_MANY, Refusal.UNKNOWN_BOUND} | ({Refusal.NO_ROOM} if not room else set())
            if not self._lies and found not in honest:
                self._fail(f"D4: what an honest peer sent is refused: {found}")
            # A batch that counts from before what was forgotten is an old one: everything in it was taken.
            if not self._lies and found is Refusal.UNKNOWN_BOUND and batch.lb >= giver.ledger.acked:
                self._fail("D4: the newest message counts from a number that the receiver does not know")
        else:
            self.counts["taken"] += 1
            if any(amount <= 0 for amount in found.values()):
                self._fail("D1: it takes less than nothing")
            taker.taken.update(found)
        self._look(giver, taker)

    def _acknowledge(self) -> None:
        giver, taker = self._pick()
        giver.acks.append(taker.ledger.taken)
        del giver.acks[:-POOL_MAX]

    def _hear(self) -> None:
        giver, taker = self._pick()
        if giver.acks:
            at = self.random.randrange(len(giver.acks))
            seq = giver.acks[at]
            if self.random.random() < 0.5:
                del giver.acks[at]
            if not giver.ledger.ack(seq) and not self._lies:
                self._fail(f"an acknowledgement of {seq} is refused; {giver.ledger.given} were given")
            self._look(giver, taker)

    def _lose(self) -> None:
        _, taker = self._pick()
        self.random.choice((taker.batches, taker.acks)).clear()

    def _lie(self) -> None:
        """The giver of this step says what is not so. The taker still takes no number twice, and nothing that is negative."""
        giver, taker = self._pick()
        draw = self.random.randint
        if self.random.random() < 0.3:
            seq = draw(-3, giver.ledger.given + 3)
            known = giver.ledger.acked
            if giver.ledger.ack(seq) and not 0 <= seq <= giver.ledger.given:
                self._fail(f"an acknowledgement of {seq} is believed; {giver.ledger.given} were given")
            if giver.ledger.acked < known:
                self._fail("what was acknowledged is not any more")
            return
        lb = draw(0, giver.ledger.given + 1)
        amounts = {key: draw(-5, 1 << 33) for key in KEYS if self.random.random() < 0.6}
        self._take(giver, taker, Batch(lb, draw(0, giver.ledger.given + 3), amounts))

    def _calm(self) -> None:
        """Everything arrives from now on: all that was given is taken, once."""
        for _ in range(2):
            for giver, taker in (self._ends, self._ends[::-1]):
                batch = giver.ledger.message()
                if isinstance(taker.ledger.take(batch), dict):
                    taker.taken = giver.given_until(batch.seq)
                giver.ledger.ack(taker.ledger.taken)
        for giver, taker in (self._ends, self._ends[::-1]):
            self._look(giver, taker)
            if giver.ledger.is_open or giver.ledger.outstanding or taker.ledger.taken != giver.ledger.given:
                self._fail("RL3: all messages arrived, and something is outstanding")

    def _look(self, giver: End, taker: End) -> None:
        """RL3, exactly: what was taken is what was given under the numbers that were taken."""
        if self._lies:
            return
        for one, other in ((giver, taker), (taker, giver)):
            if +other.taken != +one.given_until(other.ledger.taken):
                self._fail(f"RL3: {dict(other.taken)} taken up to {other.ledger.taken}, {dict(one.given_until(other.ledger.taken))} given")
            open_now = one.given_until(one.ledger.given)
            open_now.subtract(one.given_until(one.ledger.acked))
            if +open_now != +Counter(one.ledger.outstanding):
                self._fail(f"D1: outstanding are {dict(one.ledger.outstanding)}, expected {dict(+open_now)}")

    def _note(self, what: str) -> None:
        self._step += 1
        if self._trace is not None:
            self._trace(f"{self._step:4d}  {what}")

    def _fail(self, what: str) -> NoReturn:
        raise Misbehaved(f"step {self._step}: {what}")
