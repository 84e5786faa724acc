"""The reader of the heat files that lie beside emulated recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet, Reader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.model.trace import Trace

#: Of the files; they are claimed by name, before anything that reads them is imported.
SUFFIX = "_instruction_heat.json"
#: Key of the kernels in ``Trace.extras``.
EXTRA = "instruction_heat"
_LARGEST_BYTES = 64 << 20
#: Read, a value takes some 200 bytes however short it is; those of heat have names.
_BYTES_OF_A_VALUE, _ALWAYS = 8, 1 << 16


class HeatReader(Reader):
    """One file per process; no times, no counters."""

    name = "instruction-heat"
    summary = f"counts per instruction of emulated kernels (*{SUFFIX})"
    priority = 60  # before readers of any JSON

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return [
            InputSet(self.name, "instruction heat", (path,)) for path in files if path.name.endswith(SUFFIX)
        ]

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        from pydantic import ValidationError

        from rpl_emu.heat.contract import HeatFile

        (path,) = inputs.paths
        if path.stat().st_size > _LARGEST_BYTES:
            raise BadDataError(f"{path} has more than {_LARGEST_BYTES} bytes", next_step="profile again")
        read = path.read_bytes()
        if read.count(b",") > max(_ALWAYS, len(read) // _BYTES_OF_A_VALUE):
            raise BadDataError(f"{path}: countless tiny values", next_step="profile again")
        try:
            content = HeatFile.model_validate_json(read)
        except ValidationError as error:
            place = ".".join(map(str, error.errors()[0]["loc"])) or "the whole"
            raise BadDataError(f"{path}, {place}: no instruction heat", next_step="profile again") from None
        return (_trace(inputs, content),)


def _trace(inputs: InputSet, content: object) -> Trace:
    import numpy as np

    from rpl_core.model.origin import Origin
    from rpl_core.model.trace import Dispatches, LaunchShapes, Trace, TraceRole, TraceSource

    index, number = np.zeros(0, np.int32), np.zeros(0, np.int64)
    axes = np.zeros((0, 3), np.int64)
    return Trace(
        source=TraceSource(inputs.reader, inputs.format, tuple(str(path) for path in inputs.paths)),
        role=TraceRole.THREAD_TRACE,
        origin=Origin.MODELLED,
        processes=(),
        agents=(),
        kernels=(),
        dispatches=Dispatches(index, index, index, index, index, index, number, number, number, number),
        shapes=LaunchShapes(axes, axes, number, number),
        extras={EXTRA: (content,)},
    )
