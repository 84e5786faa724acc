"""Settings: name, type, default, meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from rpl_core.config.values import flag, names, positive, positive_int, text
from rpl_core.interfaces.options import CommandOption


@attrs.frozen
class Setting:
    """``name`` is dotted as in ``rpl.toml``; the environment variable is ``RPL_`` + name in capitals."""

    name: str
    parse: Callable[[Any], Any]
    default: Any
    meaning: str

    @property
    def variable(self) -> str:
        return "RPL_" + self.name.upper().replace(".", "_").replace("-", "_")

    @classmethod
    def of(cls, option: CommandOption[Any]) -> Setting:
        """The setting that an option of a plugin is."""
        return cls(option.name, option.parse, option.default, option.meaning or option.help)


#: The core's own settings. Plugins add theirs with their options (``rpl_core.interfaces.options``).
SETTINGS: tuple[Setting, ...] = (
    Setting("device", text, None, "device family or product, see `rpl plugins list`; default: recognised"),
    Setting("collector", text, None, "collector to record with; default: the first usable one"),
    Setting("runs", positive_int, 3, "timing runs of a profile"),
    Setting("roofline", flag, False, "collect hardware counters in separate passes"),
    Setting("focus-critical", flag, False, "trace copies and the host API, and put the critical path first"),
    Setting("clock-mhz", positive, None, "engine clock for the compute ceilings instead of the maximum"),
    Setting("memory-bandwidth-gbps", positive, None, "memory ceiling instead of the data sheet's"),
    Setting("time-limit", positive, None, "seconds that one pass may take"),
    Setting("runs-directory", text, "rpl-runs", "where run directories are created"),
    Setting("plugins.disabled", names, (), "plugins that are not loaded"),
)
