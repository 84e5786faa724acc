"""Which trace the user means: a decoded folder, a run directory, a kernel, a dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rpl_analysis.text.names import shown_names
from rpl_att.analysis.att_block import att_block
from rpl_att.contract import AttPart
from rpl_att.model import ThreadTrace
from rpl_att.reader import EXTRA, ThreadTraceReader
from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.ingest.files import expand
from rpl_core.interfaces.reader import InputSet
from rpl_core.run_directory.layout import MANIFEST, is_run_directory
from rpl_core.run_directory.reader import load_manifest, pass_files, recorded_files
from rpl_core.values import frozen

_SHOWN = 5


@frozen(eq=False)
class Chosen:
    """A trace with its block. ``folder`` is where its files are."""

    trace: ThreadTrace
    block: AttPart
    folder: Path

    @property
    def shown_kernel(self) -> str:
        """The kernel's name as reports show it."""
        name = self.block.kernel
        return shown_names([name])[name] if name else "unknown kernel"


def choose_trace(path: Path, kernel: str | None, dispatch: int | None) -> Chosen:
    """The trace in ``path`` that matches; of several dispatches of one kernel that with most instructions."""
    fitting = [c for c in all_traces(path) if _matches(c, kernel, dispatch)]
    if not fitting:
        wanted = [f"kernel {kernel!r}"] * (kernel is not None) + [f"dispatch {dispatch}"] * (
            dispatch is not None
        )
        raise MissingError(
            f"{path} holds no thread trace" + (f" of {' and '.join(wanted)}" if wanted else ""),
            next_step="record one with `rpl profile --deep-analysis`, or name a decoded folder",
        )
    if len({c.block.kernel for c in fitting}) > 1:
        kernels = sorted({c.shown_kernel for c in fitting})
        shown = "; ".join(name[:80] for name in kernels[:_SHOWN])
        raise UsageError(f"{len(kernels)} kernels match: {shown}", next_step="choose one with --kernel NAME")
    return max(fitting, key=lambda c: (c.block.instructions or 0, -(c.block.dispatch_id or 0)))


def all_traces(path: Path) -> Sequence[Chosen]:
    """Every trace in ``path``, read. Raises ``BadDataError`` when there is none."""
    sets = ThreadTraceReader().claim(_files(path))
    if not sets:
        raise BadDataError(
            f"{path} holds no thread trace",
            cause="it was recorded without --deep-analysis, or the decoder wrote nothing",
            next_step="name a run directory or a folder ui_output_agent_*_dispatch_*",
        )
    return [_read(inputs) for inputs in sets]


def _files(path: Path) -> Sequence[Path]:
    if not is_run_directory(path):
        return expand([path])
    manifest = load_manifest(path)
    files = [f for p in manifest.passes if p.role == "thread_trace" for f in pass_files(path, p)]
    for recorded in (file for group in recorded_files(path, manifest) for file in group):
        files += _files(recorded.parent) if recorded.name == MANIFEST else [recorded]
    return files


def _read(inputs: InputSet) -> Chosen:
    (recorded,) = ThreadTraceReader().read(inputs)
    (trace,) = recorded.extras[EXTRA]
    return Chosen(trace, att_block(trace, None), Path(recorded.source.paths[0]).parent)


def _matches(chosen: Chosen, kernel: str | None, dispatch: int | None) -> bool:
    names = (chosen.block.kernel or "", chosen.block.symbol or "", chosen.shown_kernel)
    return (kernel is None or any(kernel in name for name in names)) and (
        dispatch is None or chosen.block.dispatch_id == dispatch
    )


def with_figures(chosen: Chosen) -> Chosen:
    """``chosen`` if it has figures; ``BadDataError`` with the reason if it is empty."""
    if chosen.block.cycles is None or chosen.trace.code is None:
        reason = chosen.block.reason or "it has instructions without their code"
        raise BadDataError(f"the thread trace in {chosen.folder} gives nothing to show: {reason}")
    return chosen
