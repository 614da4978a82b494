"""Settings of an agent: loading, precedence, presets.  docs/agent.md lists them."""

from __future__ import annotations

from holdfast.config.settings import (
    ARGUMENTS,
    CHOICES,
    DEFAULTS,
    FLAGS,
    PRESETS,
    TAG_BYTES_MAX,
    TAG_NAME,
    TAGS_BYTES_MAX,
    TAGS_MAX,
    TICKET_K_RING,
    Config,
    Timing,
    check_tags,
    endpoint,
    is_loopback,
    load,
    load_with_sources,
    read_token,
    unknown_variables,
)
from holdfast.disk.places import default_socket, group_file, private_directory, runtime_dir

__all__ = [
    "Config",
    "PRESETS",
    "Timing",
    "load",
    "load_with_sources",
    "check_tags",
    "read_token",
    "is_loopback",
    "endpoint",
    "unknown_variables",
    "runtime_dir",
    "private_directory",
    "group_file",
    "default_socket",
    "ARGUMENTS",
    "CHOICES",
    "DEFAULTS",
    "FLAGS",
    "TAGS_BYTES_MAX",
    "TAGS_MAX",
    "TAG_BYTES_MAX",
    "TAG_NAME",
    "TICKET_K_RING",
]
