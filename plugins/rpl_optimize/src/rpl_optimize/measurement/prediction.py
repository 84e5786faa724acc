"""The application's gain that what-if predicts from a measured gain of one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.execution_graph.analyzer import median_run, why_no_graph
from rpl_analysis.what_if.model import FasterKernel
from rpl_analysis.what_if.predict import ReplayedRun
from rpl_core.errors import BadDataError
from rpl_core.ingest.load import load_recording

if TYPE_CHECKING:
    from rpl_core.ingest.claims import Readers


@attrs.frozen
class PredictedGain:
    """``gain`` is the part of the makespan that would be saved, below 0 for a loss; ``None`` has a reason."""

    gain: float | None
    reason: str | None = None


def predicted_gain(
    paths: Sequence[Path], readers: Readers, kernel: str, ratio: float, *, include_copies: bool = False
) -> PredictedGain:
    """Solve the graph of the baseline's median run again with ``kernel`` at ``ratio`` times its time.

    ``paths`` is the baseline's recording (its run directory), ``kernel`` an exact displayed name and
    ``ratio`` the measured new / base. Modelled, never measured: durations of other kernels stay, launches
    and waits too.
    """
    if ratio <= 0:
        return PredictedGain(None, f"a ratio of {ratio:g} is none of two times")
    recording = load_recording(tuple(paths), readers)
    chosen = median_run(recording)
    if chosen is None:
        return PredictedGain(None, why_no_graph(recording))
    try:
        run = ReplayedRun(chosen[1], include_copies=include_copies)
        if kernel not in run.names:
            return PredictedGain(None, "the kernel is not in the baseline's graph")
        found = run.predict((FasterKernel(kernel, 1 / ratio),))
    except BadDataError as error:
        return PredictedGain(None, error.fact)
    if found.recorded_ns <= 0:
        return PredictedGain(None, "the baseline's graph has no length")
    return PredictedGain(found.together.gain_ns / found.recorded_ns)
