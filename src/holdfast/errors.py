"""One exception tree. Each error says what happened, to whom, and what to do next.

HoldfastError
|- ConfigError (ValueError)      a setting, flag, file or scenario is wrong; names the field and what is accepted
|  |- KeyUnusable                a key file that cannot be read or is no key
|  `- AddressUnusable            an address that does not parse or resolve, or a port that is taken
`- StorageError (OSError)        the state directory cannot be used
   |- StorageDamaged             what is on disk is not what was written; nothing was overwritten
   `- StorageLocked              another process holds the state directory
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Base of every error Holdfast raises on purpose."""


class ConfigError(HoldfastError, ValueError):
    """A setting is wrong: the text names the field, what it was and what is accepted."""


class KeyUnusable(ConfigError):
    """A key file that cannot be read, or that holds no key."""


class AddressUnusable(ConfigError):
    """An address that does not parse or resolve, or a port that is taken."""


class StorageError(HoldfastError, OSError):
    """The state directory cannot be used."""


class StorageDamaged(StorageError):
    """What is on disk is not what was written. Nothing was overwritten."""


class StorageLocked(StorageError):
    """Another process holds the state directory."""
