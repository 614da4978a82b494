"""The connection as the rules know it: whether it stands, in which session, and which answers still count.  Spec: views 5Z."""

from __future__ import annotations

from holdfast.features.views.zookeeper.znodes import Reply, Session, Then


class Link:
    """Asks while the connection stands. The answer to a question of an earlier connection is dropped: what it says may be over, and
    all that waited for it has been told when the connection broke."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.owner = 0  # the session, as znodes name it; 0: not connected
        self.late = 0  # answers that were dropped
        self._epoch = 0

    @property
    def up(self) -> bool:
        return self.owner != 0

    def begin(self, owner: int) -> None:
        self._epoch += 1
        self.owner = owner

    def end(self) -> None:
        self._epoch += 1
        self.owner = 0

    def create(self, path: str, data: bytes, then: Then, *, ephemeral: bool = False, sequence: bool = False) -> None:
        if self.session is not None and self.up:
            self.session.create(path, data, self._of_now(then), ephemeral=ephemeral, sequence=sequence)

    def delete(self, path: str, then: Then) -> None:
        if self.session is not None and self.up:
            self.session.delete(path, self._of_now(then))

    def get(self, path: str, then: Then) -> None:
        if self.session is not None and self.up:
            self.session.get(path, self._of_now(then))

    def exists(self, path: str, then: Then) -> None:
        if self.session is not None and self.up:
            self.session.exists(path, self._of_now(then))

    def children(self, path: str, then: Then, *, watch: bool = False) -> None:
        if self.session is not None and self.up:
            self.session.children(path, self._of_now(then), watch=watch)

    def sync(self, path: str, then: Then) -> None:
        if self.session is not None and self.up:
            self.session.sync(path, self._of_now(then))

    def _of_now(self, then: Then) -> Then:
        epoch = self._epoch

        def answered(reply: Reply) -> None:
            if epoch == self._epoch:
                then(reply)
            else:
                self.late += 1

        return answered


def ignore(reply: Reply) -> None:
    """Nothing depends on the answer: what was asked for is asked for again where it must be so."""
