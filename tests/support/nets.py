"""How the members of a test reach each other: by loopback, by forwarders in this process, or as machines of their own.

with Forwarders(names) as net:
    net.bind("a"), net.reached_at("a"), net.before("a")     # for the settings of an agent, and what stands before its command
    net.cut(["a", "b"], "c")                                # one way: c hears neither
    net.lose(0.2)                                           # of all datagrams
    net.heal()                                              # nothing is cut, and nothing is lost
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Protocol, Self

from holdfast.cli.demo.fleet import free_ports
from holdfast.host import Address
from tests.support.forwarder import in_a_thread, somewhere
from tests.support.netns import PORT, Namespaces

SEEDS: Final = 3  # the first members
SEATS: Final = 3  # and the next ones


class Net(Protocol):
    """How members reach each other."""

    def bind(self, name: str) -> str: ...
    def reached_at(self, name: str) -> str: ...
    def before(self, name: str) -> Sequence[str]: ...
    def cut(self, senders: Collection[str], receiver: str) -> None: ...
    def lose(self, share: float) -> None: ...
    def heal(self) -> None: ...


class Loopback:
    """Ports of this machine: nothing can be cut. The first members, seeds and seats, have ports of their own, the others any."""

    def __init__(self, names: Sequence[str]) -> None:
        fixed = names[: SEEDS + SEATS]
        self._ports = dict(zip(fixed, free_ports(len(fixed)), strict=True))

    def bind(self, name: str) -> str:
        return f"127.0.0.1:{self._ports.get(name, 0)}"

    reached_at = bind

    def before(self, name: str) -> Sequence[str]:
        del name
        return ()

    def cut(self, senders: Collection[str], receiver: str) -> None:
        raise NotImplementedError

    def lose(self, share: float) -> None:
        raise NotImplementedError

    def heal(self) -> None:
        pass


class Forwarders:
    """Every datagram and stream passes this process. Any user may have that."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._mesh, self._run = self._stack.enter_context(in_a_thread(self._names, seed=17))
        self._binds = {name: somewhere(self._mesh, name) for name in self._names}
        for name, bind in self._binds.items():
            host, _, port = bind.rpartition(":")
            self._mesh.attach(name, Address(host, int(port)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def bind(self, name: str) -> str:
        return self._binds[name]

    def reached_at(self, name: str) -> str:
        return str(self._mesh.address(name))

    def before(self, name: str) -> Sequence[str]:
        del name
        return ()

    def cut(self, senders: Collection[str], receiver: str) -> None:
        def cut() -> None:
            for sender in senders:
                self._mesh.cut(sender, receiver)

        self._run(cut)

    def lose(self, share: float) -> None:
        def lose() -> None:
            for sender in self._names:
                for receiver in self._names:
                    self._mesh.link(sender, receiver).loss = share

        self._run(lose)

    def heal(self) -> None:
        self._run(self._mesh.heal)
        self.lose(0.0)


class Machines:
    """Network namespaces, with a kernel's firewall."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._net = Namespaces(len(names))

    def __enter__(self) -> Self:
        self._net.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._net.__exit__(kind, error, trace)

    def bind(self, name: str) -> str:
        return f"{self._net.address(self._names.index(name))}:{PORT}"

    reached_at = bind

    def before(self, name: str) -> Sequence[str]:
        return self._net.words(self._names.index(name))

    def cut(self, senders: Collection[str], receiver: str) -> None:
        """One run of the firewall for each receiver: a cut of a second shall begin at all of them at once."""
        sources = ", ".join(self._net.address(self._names.index(sender)) for sender in senders)
        self._net.run(self._names.index(receiver), ["nft", f"add rule inet holdfast arriving ip saddr {{ {sources} }} drop"])

    def lose(self, share: float) -> None:
        for number in range(len(self._names)):
            self._net.lose(number, share)

    def heal(self) -> None:
        self._net.heal()
