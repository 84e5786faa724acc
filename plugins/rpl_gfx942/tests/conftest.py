"""Agents as drivers describe them, and real workload folders read through the installed readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_analysis.counters import CountersAnalyzer
from rpl_analysis.facts import KERNEL_QUANTITIES, ROOFLINE
from rpl_analysis.options import FLOP_MODEL, STRICT
from rpl_analysis.roofline import RooflineAnalyzer
from rpl_analysis.runtime import RuntimeAnalyzer
from rpl_core.interfaces.analyzer import AnalysisContext, Facts
from rpl_core.interfaces.options import Options
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.recording import Recording
from rpl_core.model.trace import Agent
from rpl_core.schedule import Step, analyze
from rpl_gfx942.plugin import rpl_detect_device
from rpl_rocprofv3.readers.catalog import all_readers


@pytest.fixture
def agent() -> Callable[..., Agent]:
    """``agent(chip_id=29857, ...)``: a gfx942 GPU of which only the given facts are known."""

    def build(**facts: Any) -> Agent:
        return Agent(**{"node": "node", "index": 1, "kind": "GPU", "architecture": "gfx942", **facts})

    return build


@attrs.frozen(eq=False)
class Analysed:
    """A workload folder after the runtime, counters and roofline analyzers."""

    recording: Recording
    device: Any
    facts: Facts
    diagnostics: tuple[Diagnostic, ...]

    @property
    def quantities(self) -> Any:
        (found,) = self.facts[KERNEL_QUANTITIES].values()
        return found

    @property
    def roofline(self) -> Any:
        (found,) = self.facts[ROOFLINE].kernels
        return found


@pytest.fixture
def analysed(rpl_shared_data: Path) -> Callable[..., Analysed]:
    """``analysed("path_MI300X_A1")``: one of the real gfx942 counter sets, analysed."""

    def run(name: str, *, flop_model: str = "per_op", strict: bool = False) -> Analysed:
        path = rpl_shared_data / "counters_gfx942" / name
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        claims = [(reader, claim) for reader in all_readers() for claim in reader.claim(files)]
        traces = tuple(t for reader, claim in claims if not claim.refusal for t in reader.read(claim))
        recording = Recording(traces)
        device = rpl_detect_device(recording.gpu_agents)
        chosen = Options({FLOP_MODEL.name: flop_model, STRICT.name: strict})
        analyzers = (RuntimeAnalyzer(), CountersAnalyzer(), RooflineAnalyzer())
        context = AnalysisContext(recording, device, chosen)
        result = analyze(context, [Step("analysis", analyzer) for analyzer in analyzers])
        read = (d for trace in traces for d in trace.diagnostics)
        return Analysed(recording, device, result.facts, (*read, *result.diagnostics))

    return run
