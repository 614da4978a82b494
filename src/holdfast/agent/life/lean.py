"""What an agent does not load.  docs/agent.md, "Memory".

The libraries under an agent import more than an agent uses. ``lean_imports`` makes them do without, while the modules of an
agent and the library that seals are imported; afterwards everything can be imported as usual. The sizes below are resident
memory (CPython 3.11, x86-64).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

# Each is imported only if it is there. The first two bring a second OpenSSL into the process, beside the one inside ``cryptography`` that
# seals our packets (4.5 MiB): no agent speaks TLS, and blake2 is built in. The third is for Pythons older than ours (0.4 MiB).
HIDDEN = ("ssl", "_hashlib", "typing_extensions")

# Libraries import these at once, and use them late or never (0.8 MiB). The last two are for reports of errors: one reads a line of source,
# and the other indents groups of exceptions.
LATE = ("array", "ntpath", "asyncio.sslproto", "msgspec.inspect", "tokenize", "textwrap")

CO_COROUTINE = 0x80  # of a code object: ``inspect`` has the name


class StandIn(ModuleType):
    """Has the names that a library takes at once. With the first other name that it is asked for, the module itself is imported."""

    def __init__(self, name: str, **known: Any) -> None:
        super().__init__(name)
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for these wherever a module is imported.
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        found = getattr(import_module(self.__name__), name)
        setattr(self, name, found)
        return found


@contextmanager
def lean_imports() -> Iterator[None]:
    """Libraries that are imported inside do without what no agent uses."""
    instead: dict[str, Any] = {**dict.fromkeys(HIDDEN), **{each.__name__: each for each in _stand_ins()}}  # None: not to be imported
    instead = {name: module for name, module in instead.items() if name not in sys.modules}
    sys.modules.update(instead)
    try:
        yield
    finally:
        for name, module in instead.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _stand_ins() -> Iterator[StandIn]:
    yield from map(StandIn, LATE)
    # asyncio asks for one thing of it while nothing is wrong: whether the handler of a signal is a coroutine function (0.8 MiB).
    yield StandIn("inspect", iscoroutinefunction=is_coroutine_function)
    # asyncio takes three constants, and an agent starts no process (0.4 MiB).
    yield StandIn("subprocess", PIPE=-1, STDOUT=-2, DEVNULL=-3)
    # msgspec takes the types that it can encode, and no call, message or setting has a value of these (0.6 MiB).
    yield StandIn("decimal", Decimal=_kind("Decimal"))
    yield StandIn("uuid", UUID=_kind("UUID"), SafeUUID=_kind("SafeUUID", unknown=None))
    # msgspec.json takes two functions, for schemas (0.1 MiB).
    schema = "msgspec._json_schema"
    yield StandIn(schema, schema=_late(schema, "schema"), schema_components=_late(schema, "schema_components"))
    # The package of the cipher that seals packets takes the names of others (0.1 MiB).
    base = "cryptography.hazmat.primitives.ciphers.base"
    contexts = ("CipherContext", "AEADCipherContext", "AEADEncryptionContext", "AEADDecryptionContext")
    yield StandIn(base, Cipher=_late(base, "Cipher"), **{name: _kind(name) for name in contexts})
    # The journal takes one class, which is in C.
    yield StandIn("queue", SimpleQueue=import_module("_queue").SimpleQueue)
    # pathlib takes one function, for Path.as_uri (0.2 MiB).
    yield StandIn("urllib.parse", quote_from_bytes=_late("urllib.parse", "quote_from_bytes"))
    if sys.version_info < (3, 12):  # Its file defines each class in Python before it takes the one in C (0.4 MiB).
        yield StandIn("datetime", **{name: value for name, value in vars(import_module("_datetime")).items() if not name.startswith("__")})


def is_coroutine_function(called: Any) -> bool:
    """As ``inspect`` says it of a function or a method."""
    while isinstance(called, partial):
        called = called.func
    code = getattr(called, "__code__", None)
    return code is not None and bool(code.co_flags & CO_COROUTINE)


def _kind(name: str, **known: Any) -> type:
    return type(name, (), known)


def _late(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **named)

    return call
