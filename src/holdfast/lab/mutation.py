"""One rule taken out of the code, for as long as a block lasts: a lab that cannot show a break proves nothing by not seeing one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

Mutation = Callable[[ExitStack], None]


def put(stack: ExitStack, where: Any, name: str, instead: Any) -> None:
    """Instead of an attribute of a class or a module, until the stack is closed."""
    if name in vars(where):
        stack.callback(setattr, where, name, vars(where)[name])
    else:
        stack.callback(delattr, where, name)  # It was inherited.
    setattr(where, name, instead)


@contextmanager
def without(mutation: Mutation) -> Iterator[None]:
    """The rule is out while this lasts."""
    with ExitStack() as stack:
        mutation(stack)
        yield
