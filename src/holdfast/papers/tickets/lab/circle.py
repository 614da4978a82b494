"""The circle of tickets: which of them a process coordinates.  Spec: tickets 2, D24; paper 001, section 3.

The ticket that succeeds i is i - 1 mod n. A process that owns ticket i and has a successor that owns j coordinates i, i - 1, ... down to
the ticket before j. Alone in the cluster it is its own successor (j = i) and coordinates all n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def distance(i: int, j: int, n: int) -> int:
    """Steps from ticket i to ticket j along the chain of succeeding tickets; once around if they are the same."""
    return (i - j - 1) % n + 1


def coordinated(i: int, j: int, n: int) -> tuple[int, ...]:
    """S_p of a process that owns ticket i and whose successor owns ticket j."""
    return tuple((i - k) % n for k in range(distance(i, j, n)))


def bits(i: int, j: int, n: int) -> int:
    """``coordinated`` as a set of bits, which is quicker to compare."""
    length = distance(i, j, n)
    run = (1 << length) - 1
    lowest = (i - length + 1) % n
    wrapped = run << lowest
    return (wrapped | wrapped >> n) & ((1 << n) - 1)


def successors(i: int, owners: Mapping[int, str], n: int) -> list[int]:
    """The tickets that have an owner, nearest successor of i first; i itself, if it has one, is the last."""
    return sorted(owners, key=lambda ticket: distance(i, ticket, n))


def core(owners: Mapping[int, str], n: int) -> dict[str, tuple[int, ...]]:
    """S_p of every process of a core, by the definition: what each ticket's owner coordinates."""
    return {name: coordinated(i, successors(i, owners, n)[0], n) for i, name in owners.items()}


def spread(count: int, n: int) -> Sequence[int]:
    """Tickets of so many processes around the circle, each the predecessor of the next, equally far apart."""
    assert 1 <= count <= n
    return [n - 1 - place * (n // count) for place in range(count)]
