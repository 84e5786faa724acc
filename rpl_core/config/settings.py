"""Every setting of rpl in one table: name, type, default, meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from rpl_core.errors import UsageError


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


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"expected text, found {value!r}")
    return value


def _positive_int(value: Any) -> int:
    number = _number(value)
    if number < 1 or number != int(number):
        raise UsageError(f"expected a whole number of at least 1, found {value!r}")
    return int(number)


def _positive(value: Any) -> float:
    number = _number(value)
    if number <= 0:
        raise UsageError(f"expected a number above 0, found {value!r}")
    return number


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"expected a number, found {value!r}") from None
    if isinstance(value, bool) or number != number or number in (float("inf"), float("-inf")):
        raise UsageError(f"expected a number, found {value!r}")
    return number


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off", ""}:
        return False
    raise UsageError(f"expected true or false, found {value!r}")


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise UsageError(f"expected a list of names, found {value!r}")


def _one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise UsageError(f"expected one of {', '.join(choices)}, found {value!r}")
        return str(value)

    return parse


SETTINGS: tuple[Setting, ...] = (
    Setting("device", _text, None, "device family or product, e.g. gfx942 or MI300X; default: recognised"),
    Setting("collector", _text, None, "collector to record with; default: the first usable one"),
    Setting("runs", _positive_int, 3, "timing runs of a profile"),
    Setting("roofline", _flag, False, "collect hardware counters in separate passes"),
    Setting("focus-critical", _flag, False, "trace copies and the HIP API, and put the critical path first"),
    Setting("deep-analysis", _flag, False, "trace the instructions of the most critical kernels"),
    Setting("deep-top", _positive_int, 3, "kernels that a deep analysis traces"),
    Setting("deep-timeout", _positive, None, "seconds that one thread trace may take"),
    Setting("flop-model", _one_of("per_op", "valu_width"), "per_op", "how FLOPs are counted"),
    Setting("occupancy-mode", _one_of("hardware", "llvm"), "hardware", "LDS granule of the occupancy model"),
    Setting("strict", _flag, False, "no estimates where a measurement is missing"),
    Setting("copies", _flag, True, "copies are work of the critical path"),
    Setting("clock-mhz", _positive, None, "engine clock for the compute ceilings instead of the maximum"),
    Setting("memory-bandwidth-gbps", _positive, None, "HBM ceiling instead of the data sheet's"),
    Setting("time-limit", _positive, None, "seconds that one pass may take"),
    Setting("runs-directory", _text, "rpl-runs", "where run directories are created"),
    Setting("plugins.disabled", _names, (), "plugins that are not loaded"),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}
