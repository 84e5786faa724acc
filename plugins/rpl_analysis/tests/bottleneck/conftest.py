"""The table of cases as recordings: one launch on an MI300X with exactly the counters of a case."""

from __future__ import annotations

import sys
from pathlib import Path

import attrs
import pytest

from rpl_core.model.recording import Recording
from rpl_core.pipeline import AnalysisRequest, analyse
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host
from rpl_gfx942.products import COUNTER_MAP
from rpl_testkit.traces import TracedDispatch, make_trace

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = tomllib.loads((Path(__file__).parent / "cases.toml").read_text(encoding="utf-8"))
TIME_NS = 1_000_000
_RECOMMENDED = {name.removesuffix("_sum") for name in COUNTER_MAP.recommended}


@attrs.frozen
class Case:
    """A launch: registers, grid and counters, each of which a test may change."""

    vgprs: int
    workgroups: int
    counters: dict[str, float]
    lds_bytes: int = 0

    def scaled(self, counters: list[str], factor: float) -> Case:
        changed = {name: value * (factor if name in counters else 1) for name, value in self.counters.items()}
        if "SQ_WAVES" not in counters:
            return attrs.evolve(self, counters=changed)
        workgroups = round(self.workgroups * factor)
        return attrs.evolve(self, workgroups=workgroups, counters={**changed, "SQ_WAVES": 4 * workgroups})


def case_of(entry: dict) -> Case:
    base = TABLE["base"]
    counters = {name: value for name, value in base["counters"].items() if name != "zero"}
    counters = {**dict.fromkeys(base["counters"]["zero"], 0), **counters, **entry.get("counters", {})}
    if entry.get("recorded") == "recommended":
        counters = {name: value for name, value in counters.items() if name in _RECOMMENDED}
    lds = entry.get("lds_bytes", 0)
    return Case(entry.get("vgprs", base["vgprs"]), entry.get("workgroups", base["workgroups"]), counters, lds)


def _trace(case: Case, counters: dict[str, float]):
    grid = (case.workgroups * 256, 1, 1)
    launch = TracedDispatch("kernel", 1000, 1000 + TIME_NS, grid=grid, counters=counters)
    trace = make_trace([attrs.evolve(launch, lds_bytes=case.lds_bytes)])
    halves = {"arch_vgpr": min(case.vgprs, 256), "accum_vgpr": max(0, case.vgprs - 256)}
    return attrs.evolve(trace, kernels=tuple(attrs.evolve(k, **halves) for k in trace.kernels))


@pytest.fixture(scope="session")
def plugin_host():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "RPL_LOAD_PLUGINS",
            "rpl-core,rpl-analysis,rpl-codeobject,rpl-compare,rpl-optimize,rpl-report,rpl-rocprofv3,rpl-gfx942",
        )
        return create_host(PluginSelection.from_environment(), config={})


@pytest.fixture
def documents_of(plugin_host):
    """``documents_of(case)``: the documents of a constructed case."""

    def run(case: Case):
        recording = Recording((_trace(case, {}), _trace(case, case.counters)))
        return analyse(recording, AnalysisRequest(), plugin_host)

    return run
