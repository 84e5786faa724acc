"""The reader of the heat files that lie beside emulated recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.files.bounded import read_regular, refuse_countless
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
        read = read_regular(path, _LARGEST_BYTES)
        refuse_countless(read, path)
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
