"""Figures that rules test, from thread traces."""

from __future__ import annotations

from types import SimpleNamespace

import attrs
import numpy as np
import pytest

from rpl_att.analysis.att_block import att_block
from rpl_att.analysis.utilisation import busiest_target, mfma_utilisation
from rpl_att.analyzer import FIGURES, kernel_figures
from rpl_att.contract import AttPart
from rpl_att.decoded_trace import read_decoded_trace
from rpl_core.contracts.common import MetricDoc
from rpl_core.model.metric import Exactness


def test_figures_are_estimates_under_the_names_that_rules_use(att_of):
    figures = kernel_figures({"gemm": att_of("wave_gemm")})
    assert set(figures) == set(FIGURES)
    found = {figure.name: metrics["gemm"].value for figure, metrics in figures.items()}
    assert found == {
        "trace_headroom": pytest.approx((20932 + 17412) / (69288 + 17412)),
        "dependency_wait_fraction": pytest.approx(20932 / (69288 + 17412)),
        "valu_utilization": pytest.approx(0.1574, abs=5e-5),
        "mfma_utilization": pytest.approx(0.0458, abs=5e-5),
    }
    for figure, metrics in figures.items():
        assert figure.violation(metrics) is None
        assert metrics["gemm"].exactness is Exactness.ESTIMATE


def test_what_a_trace_does_not_measure_is_no_figure(att_of):
    """A modelled utilisation is no evidence, and an empty trace tells nothing at all."""
    modelled = MetricDoc(value=0.5, unit="fraction", exactness="estimate", origin="modelled")
    part = AttPart(status="available", level="code", folder="f", mfma_utilization=modelled)
    assert not any(kernel_figures({"k": part, "empty": att_of("empty")}).values())


def test_matrix_cycles_are_those_of_four_units_where_the_gpu_is_unknown():
    counters = {"SQ_VALU_MFMA_BUSY_CYCLES": 40, "SQ_BUSY_CU_CYCLES": 20}
    assert mfma_utilisation(counters, None, None, None, None).value == 40 / 20 / 4


@pytest.mark.parametrize(
    ("began", "found"),
    [(2, [(True, "6 counted, 6 expected for 2 waves")]), (0, [])],
)
def test_only_recorded_counters_of_waves_that_began_are_compared(trace_folder, began, found):
    """The one traced wave executed three vector instructions, so that two waves make six."""
    trace_folder.code(("v_add_f32 v0, v0, v0", 0, 3, 12, 0, 0), ("s_endpgm", 8, 1, 4, 0, 0))
    trace_folder.wave([[10 + 10 * i, 6, 0, 4, 0] for i in range(3)] + [[40, 11, 0, 4, 1]], 0, 50)
    events = [[10 * i, 0, 0, i, int(i < began), 1] for i in range(2)]
    trace_folder.file("occupancy.json", {"0": events, "dispatches": {"1": "k"}})
    trace = attrs.evolve(read_decoded_trace(trace_folder.path), counters={"SQ_ACTIVE_INST_VALU": 6})
    checks = [check for check in att_block(trace, None).checks if check.name.startswith("SQ_")]
    assert [(check.holds, check.detail) for check in checks] == found


def test_the_next_trace_aims_where_most_waves_began():
    engine = SimpleNamespace(
        shader_engine=0, cu=np.array([2, 2, 3, 4, 4, 4]), start=np.array([1, 1, 1, 0, 0, 0])
    )
    assert busiest_target(SimpleNamespace(engines=(engine,))) == (0, 2)
