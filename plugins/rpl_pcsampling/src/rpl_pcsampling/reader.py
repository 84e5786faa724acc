"""The reader of PC samples: CSV tables by their header, results JSON that list sampled instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.interfaces.reader import InputSet, Reader
from rpl_pcsampling.samples import EXTRA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.model.trace import Trace
    from rpl_pcsampling.samples import PcSamples

__all__ = ["PcSampleReader"]

_CSV, _JSON = "rocprofv3 PC samples, CSV", "rocprofv3 PC samples, JSON"


class PcSampleReader(Reader):
    """One set per process. Of a kernel trace recorded with samples only the names are taken.

    Sampling interrupts waves, so times that were recorded with it are not those of the application.
    """

    name = "pc-sampling"
    summary = "PC samples of rocprofv3 (--pc-sampling-method), CSV and JSON"
    priority = 60  # before readers of any JSON or CSV

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        likely = [path for path in files if path.name.endswith((".csv", ".csv.gz", ".json", ".json.gz"))]
        if not likely:
            return ()
        from rpl_pcsampling.collecting import stated_beside
        from rpl_pcsampling.reading import companions, holds_samples, is_sample_table

        tables = [path for path in likely if is_sample_table(path)]
        sets = []
        for path in (inputs for inputs in likely if holds_samples(inputs)):
            # Where both formats were asked for, the JSON has all of it, and samples must not count twice.
            beside = [other for other in likely if other != path and _same_process(other, path)]
            tables = [table for table in tables if table not in beside]
            sets.append(InputSet(self.name, _JSON, (path, *beside)))
        sets += [InputSet(self.name, _CSV, (table, *companions(table, likely))) for table in tables]
        return [
            attrs.evolve(inputs, paths=(*inputs.paths, *stated_beside(inputs.paths[0], likely)))
            for inputs in sets
        ]

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        from rpl_pcsampling.collecting import read_interval
        from rpl_pcsampling.reading import kernel_names, read_csv, read_json
        from rpl_rocprofv3.readers.trace import mark_beside, origin_of
        from rpl_rocprofv3.readers.trace.tables import Findings

        path = inputs.paths[0]
        every = read_interval(inputs.paths)
        if inputs.format == _JSON:
            return tuple(_trace(inputs, attrs.evolve(samples, every=every)) for samples in read_json(path))
        names: dict[int, str] = {}
        for table in inputs.paths[1:]:
            if "kernel_trace" in table.name:
                names.update(kernel_names(table))
        prefix = path.name.partition("pc_sampling_")[0].rstrip("_")
        marks = (*mark_beside(path.parent, prefix), *(mark_beside(path.parent, "") if prefix else ()))
        samples = read_csv(path, names, origin_of(marks, Findings(path)))
        return (_trace(inputs, attrs.evolve(samples, every=every)),)


def _same_process(path: Path, results: Path) -> bool:
    prefix = results.name.partition("results.json")[0]
    return bool(prefix) and path.parent == results.parent and path.name.startswith(prefix)


def _trace(inputs: InputSet, samples: PcSamples) -> Trace:
    """A trace without dispatches of its own."""
    import numpy as np

    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.model.trace import Dispatches, LaunchShapes, Trace, TraceRole, TraceSource
    from rpl_pcsampling.collecting import STATED

    recorded = [
        path for path in inputs.paths if path.name != STATED
    ]  # it belongs to all processes of the pass
    index, number = np.zeros(0, np.int32), np.zeros(0, np.int64)
    axes = np.zeros((0, 3), np.int64)
    lost = Diagnostic(
        "pcsampling.rows_left_out",
        "entries of the recording are no samples and were left out",
        cause="the file was cut off or edited",
        where=inputs.paths[0].name,
        count=samples.left_out,
    )
    return Trace(
        source=TraceSource(inputs.reader, inputs.format, tuple(map(str, recorded))),
        role=TraceRole.THREAD_TRACE,
        origin=samples.origin,
        processes=(),
        agents=(),
        kernels=(),
        dispatches=Dispatches(index, index, index, index, index, index, number, number, number, number),
        shapes=LaunchShapes(axes, axes, number, number),
        diagnostics=(lost,) if samples.left_out else (),
        extras={EXTRA: (samples,)},
    )
