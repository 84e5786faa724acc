"""What the user may set about the recording of thread traces, in ``[plugins.att]`` of ``rpl.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rpl_att.decoder_library import OVERRIDE_VARIABLE
from rpl_core.errors import UsageError
from rpl_core.values import frozen

#: Default target of rocprofv3 (docs/reference/thread-trace.md, 4.1); the collector aims again when no wave
#: runs there.
DEFAULT_TARGET_CU = 1
DEFAULT_ENGINE_MASK = 0x1
#: Typical value of the documentation of rocprofv3 (docs/reference/thread-trace.md, 4.1): 96 MB, shared by all
#: shader engines.
DEFAULT_BUFFER_BYTES = 0x6000000
#: Rate of the activity counters on gfx9, between the 8 of the help text and the 10 of the manual
#: (docs/reference/thread-trace.md, 4.1).
DEFAULT_ACTIVITY = 10
_PREFIX = "plugins.att."
#: Limits of the options (docs/reference/thread-trace.md, 4.1); those of the buffer are chosen.
_MAX_CU = 15
_MAX_MASK = 0xFFFFFFFF
_MIN_BUFFER_BYTES = 1 << 20
_MAX_BUFFER_BYTES = 1 << 34


@frozen
class AttSettings:
    """``executable`` and ``library_path`` are searched for when they are ``None``."""

    target_cu: int = DEFAULT_TARGET_CU
    shader_engine_mask: int = DEFAULT_ENGINE_MASK
    buffer_bytes: int = DEFAULT_BUFFER_BYTES
    activity: int = DEFAULT_ACTIVITY
    library_path: str | None = None
    executable: str | None = None

    def decoder_variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` with ``library_path`` where the environment names no decoder itself."""
        named = {} if self.library_path is None else {OVERRIDE_VARIABLE: self.library_path}
        return {**named, **environment}


def settings_from(config: Mapping[str, Any]) -> AttSettings:
    """The settings in ``config``. Raises ``UsageError`` for an impossible value."""
    path = config.get(f"{_PREFIX}library-path")
    executable = config.get("plugins.rocprofv3.executable")
    return AttSettings(
        target_cu=_number(config, "target-cu", DEFAULT_TARGET_CU, 0, _MAX_CU),
        shader_engine_mask=_number(config, "shader-engine-mask", DEFAULT_ENGINE_MASK, 1, _MAX_MASK),
        buffer_bytes=_number(
            config, "buffer-bytes", DEFAULT_BUFFER_BYTES, _MIN_BUFFER_BYTES, _MAX_BUFFER_BYTES
        ),
        activity=_number(config, "activity", DEFAULT_ACTIVITY, 0, 16),
        library_path=None if path is None else str(path),
        executable=None if executable is None else str(executable),
    )


def _number(config: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = config.get(_PREFIX + name, default)
    try:
        number = int(value, 0) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        raise UsageError(f"the setting {_PREFIX}{name} is no number: {value!r}") from None
    if isinstance(value, bool) or not low <= number <= high:
        raise UsageError(f"the setting {_PREFIX}{name} must be from {low} to {high}, not {value!r}")
    return number
