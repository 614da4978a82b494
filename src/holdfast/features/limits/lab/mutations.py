"""Limits with one rule taken out: a lab that cannot show a break proves nothing by not seeing one.

Spec: limits 7 (teeth), 8 (F9). Each is a change of the code that lasts as long as ``without``; no setting reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from holdfast.features.limits.protocol.links import Links
from holdfast.features.limits.protocol.pace import Pace

Mutation = Callable[[ExitStack], None]


def put(stack: ExitStack, where: Any, name: str, instead: Any) -> None:
    """Instead of an attribute of a class or a module, until the stack is closed."""
    stack.callback(setattr, where, name, vars(where)[name])
    setattr(where, name, instead)


@contextmanager
def without(mutation: Mutation) -> Iterator[None]:
    """The rule is out while this lasts."""
    with ExitStack() as stack:
        mutation(stack)
        yield


def no_black_list(stack: ExitStack) -> None:
    """5.4: a link that is cut stays in use, and what is outstanding on it stays there."""
    put(stack, Links, "silent", lambda self: [])


def never_quiet(stack: ExitStack) -> None:
    """D26: all speak in every epoch, as in the paper."""
    put(stack, Pace, "is_quiet", property(lambda self: False))


def as_published(stack: ExitStack) -> None:
    """5.4 and D26: gossip of the paper without its black list."""
    no_black_list(stack)
    never_quiet(stack)
