"""Samples as they are read, one by one, until they become columns."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_pcsampling.samples import INSTRUCTION_TYPES, STALL_REASONS, UNKNOWN, Method, PcSamples, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from rpl_core.model.origin import Origin
    from rpl_pcsampling.samples import Position

__all__ = ["GrowingSamples"]

_REASON_PREFIX = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
_TYPE_PREFIX = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_"
_REASONS = {_REASON_PREFIX + name.upper(): number for number, name in enumerate(STALL_REASONS)}
_TYPES = {_TYPE_PREFIX + name.upper(): number for number, name in enumerate(INSTRUCTION_TYPES)}
_MOST_WAVES = 1 << 15
_LARGEST = 1 << 63
_NO_DISPATCH = "no kernel trace was recorded beside the samples, so their dispatches have no name"
_OTHER_DISPATCHES = "the kernel trace beside the samples does not have their dispatches"


def _columns() -> dict[str, array[int]]:
    wide = {"place": "i", "dispatch": "q", "time": "q", "waves": "h"}
    small = dict.fromkeys(("lanes", "issued", "reason", "type"), "b")
    return {name: array(code) for name, code in {**wide, **small}.items()}


@attrs.define(eq=False)
class GrowingSamples:
    """Some 30 bytes per sample; places are kept once, by a key of whoever reads them."""

    method: Method
    left_out: int = 0
    _numbers: dict[Hashable, int] = attrs.field(factory=dict)
    _places: dict[Place, int] = attrs.field(factory=dict)
    _columns: dict[str, array[int]] = attrs.field(factory=_columns)

    def __len__(self) -> int:
        return len(self._columns["place"])

    def place(self, key: Hashable, make: Callable[[], Place]) -> int:
        """The number of the place with this key, which is made when the key is seen first."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._places.setdefault(make(), len(self._places))
        return number

    def add(self, place: int, dispatch: int, time_ns: int, exec_mask: int) -> bool:
        """Add a sample at a numbered place, whose state is unknown. False for numbers that can't be."""
        if not (0 <= dispatch < _LARGEST and 0 <= time_ns < _LARGEST and 0 <= exec_mask < 1 << 64):
            self.left_out += 1
            return False
        columns = self._columns
        columns["place"].append(place)
        columns["dispatch"].append(dispatch)
        columns["time"].append(time_ns)
        columns["lanes"].append(bin(exec_mask).count("1"))
        if self.method is Method.HOST_TRAP:  # the software that takes the sample sees nothing else
            for name in ("issued", "reason", "type", "waves"):
                columns[name].append(UNKNOWN)
        return True

    def add_state(self, issued: object, kind: object, reason: object, waves: object) -> None:
        """What the hardware saw at the sample that was added last.

        The kind of instruction means nothing for a wave that did not issue, the reason nothing for one that
        did (rocprofiler-sdk, using-pc-sampling.rst).
        """
        columns = self._columns
        did = issued if type(issued) is int and issued in (0, 1) else UNKNOWN
        columns["issued"].append(did)
        columns["type"].append(_TYPES.get(str(kind), UNKNOWN) if did == 1 else UNKNOWN)
        columns["reason"].append(_REASONS.get(str(reason), UNKNOWN) if did == 0 else UNKNOWN)
        columns["waves"].append(waves if type(waves) is int and 0 < waves < _MOST_WAVES else UNKNOWN)

    def samples(self, names: Mapping[int, str], position: Position, origin: Origin) -> PcSamples:
        """The columns; ``names`` are kernel names by dispatch id."""
        columns = self._columns
        dispatch = np.array(columns["dispatch"], np.int64)
        kernels = tuple(dict.fromkeys(names.values()))
        number = {name: index for index, name in enumerate(kernels)}
        used, inverse = np.unique(dispatch, return_inverse=True)
        of_used = np.array([number.get(names.get(one, ""), UNKNOWN) for one in used.tolist()], np.int32)
        kernel = of_used[inverse.reshape(-1)] if len(used) else np.zeros(0, np.int32)
        lost = bool((kernel == UNKNOWN).any())
        return PcSamples(
            method=self.method,
            position=position,
            origin=origin,
            kernels=kernels,
            places=tuple(self._places),
            kernel=kernel,
            place=np.array(columns["place"], np.int32),
            dispatch_id=dispatch,
            timestamp_ns=np.array(columns["time"], np.int64),
            lanes=np.array(columns["lanes"], np.int8),
            issued=np.array(columns["issued"], np.int8),
            reason=np.array(columns["reason"], np.int8),
            instruction_type=np.array(columns["type"], np.int8),
            waves=np.array(columns["waves"], np.int16),
            unnamed=(_OTHER_DISPATCHES if names else _NO_DISPATCH) if lost else None,
            left_out=self.left_out,
        )
