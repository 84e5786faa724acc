"""``ceilings.json`` among the user's own settings: what was measured, by the name of the device."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rpl_core.errors import BadDataError
from rpl_core.files.atomic import write_atomic
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe
from rpl_optimize.ceilings import kept_path
from rpl_optimize.ceilings.work import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rpl_core.model.device import DeviceModel

_MAX_BYTES = 1 << 20


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeptDevice(_Strict):
    """One benchmark of a device; only one of origin ``measured`` gives ceilings."""

    product: str
    architecture: str
    compute_units: int | None  # of the partition
    origin: Literal["measured", "modelled", "synthetic"]
    date: str
    rpl_version: str
    collector: str
    sizes: dict[str, int]
    rates: tuple[Rate, ...]


class KeptCeilings(_Strict):
    schema_version: Literal["1.0"] = "1.0"
    devices: dict[str, KeptDevice] = Field(default_factory=dict)


def read_kept() -> KeptCeilings:
    """Nothing where there is no file. Raises ``BadDataError`` for one that can't be used."""
    path = kept_path()
    remedy = "delete the file and run `rpl ceilings measure` again"
    if path.exists() and not path.is_file():  # a FIFO would be waited for
        raise BadDataError(f"the measured ceilings in {path} are no regular file", next_step=remedy)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES)
        return KeptCeilings.model_validate_json(content)  # what was cut off is no JSON
    except FileNotFoundError:
        return KeptCeilings()
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise BadDataError(
            f"the measured ceilings in {path} can't be read: {reason}",
            next_step=remedy,
        ) from error


def keep(name: str, device: KeptDevice) -> Path | None:
    """Put it in the place of an earlier one; ``None`` where that was measured and this is not."""
    kept, path = read_kept(), kept_path()
    earlier = kept.devices.get(name)
    if earlier is not None and earlier.origin == "measured" != device.origin:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    devices = {**kept.devices, name: device}
    content = kept.model_copy(update={"devices": dict(sorted(devices.items()))}).model_dump(mode="json")
    write_atomic(path, json.dumps(content, indent=2) + "\n")
    return path


def ceilings_of(device: DeviceModel) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    """What was measured on a device of this name: the best of copy, read and write is that of main memory."""
    kept = read_kept().devices.get(device.name)
    if kept is None or kept.origin != "measured":
        return ()
    if (kept.architecture, kept.compute_units) != (device.architecture, device.compute_units):
        return ()  # another partition
    return tuple(_ceilings(kept, device))


def _ceilings(kept: KeptDevice, device: DeviceModel) -> Iterator[ComputeCeiling | MemoryCeiling]:
    origin = CeilingOrigin.MEASURED
    usable = [one for one in kept.rates if one.refused is None]
    levels = [c.level for c in device.memory_ceilings]  # the farthest is the first
    streams = [one for one in usable if one.pipe is None and one.what not in levels]
    if streams and levels:
        best = max(streams, key=lambda one: one.best)
        yield MemoryCeiling(levels[0], best.best, origin, _source(best, kept))
    for one in usable:
        if one.what in levels:
            yield MemoryCeiling(one.what, one.best, origin, _source(one, kept))
        elif one.pipe is not None:
            yield ComputeCeiling(one.what, Pipe(one.pipe), one.best, origin, _source(one, kept))


def _source(one: Rate, kept: KeptDevice) -> str:
    spread = f"slowest {one.slowest:,.6g}"
    made = f"rpl ceilings measure {kept.rpl_version}, {kept.date}"
    return f"{one.kernel}, best of {one.launches}, {spread}; {made}"
