"""Settings of an agent: loading, precedence, presets.  docs/agent.md lists them."""

from __future__ import annotations

from holdfast.config.addresses import endpoint, is_loopback
from holdfast.config.checks import TAG_BYTES_MAX, TAG_NAME, TAGS_BYTES_MAX, TAGS_MAX, check_tags, read_token
from holdfast.config.load import ARGUMENTS, FLAGS, load, load_with_sources, unknown_variables
from holdfast.config.settings import CHOICES, DEFAULTS, PRESETS, SETTINGS, STRETCHING, Config, Timing
from holdfast.disk.places import default_socket, group_file, private_directory, runtime_dir

__all__ = [
    "Config",
    "PRESETS",
    "STRETCHING",
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
    "SETTINGS",
    "TAGS_BYTES_MAX",
    "TAGS_MAX",
    "TAG_BYTES_MAX",
    "TAG_NAME",
]
