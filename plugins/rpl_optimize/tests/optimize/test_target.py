"""Which kernel the optimizer works on."""

from __future__ import annotations

import pytest

from rpl_analysis.contracts.dag import DagDocument, ForecastPart, SpeedupForecastPart
from rpl_core.errors import NoVerdictError
from rpl_optimize.loop.baseline import ceiling_sentence, rank_targets, worthwhile


def forecast(name, *, free_ns, whole_ns=1000, kind="kernel"):
    def step(speedup, application_ns):
        return SpeedupForecastPart(
            speedup=speedup,
            critical_path_ns=application_ns,
            application_ns=application_ns,
            application_gain_ns=whole_ns - application_ns,
            application_speedup=whole_ns / application_ns if application_ns else None,
        )

    return ForecastPart(
        name=name, kind=kind, speedups=(step(2.0, (free_ns + whole_ns) // 2), step(None, free_ns))
    )


def dag(*forecasts):
    return DagDocument(schema_version="1.0", status="available", forecasts=forecasts)


def test_kernels_are_ranked_by_what_the_application_would_gain():
    document = dag(
        forecast("small(int)", free_ns=900),
        forecast("void ns::large<float>(float*)", free_ns=300),
        forecast("HtoD", free_ns=100, kind="copy"),
    )
    ranked = rank_targets(document)
    assert [(t.kernel, t.ceiling_gain) for t in ranked] == [("large", 0.7), ("small", 0.1)]
    assert ranked[0].recorded == "void ns::large<float>(float*)"


def test_only_the_wanted_kernel_is_ranked():
    document = dag(forecast("a(int)", free_ns=100), forecast("b(int)", free_ns=900))
    assert [t.kernel for t in rank_targets(document, "b")] == ["b"]
    with pytest.raises(NoVerdictError, match="does not launch the kernel 'c'") as caught:
        rank_targets(document, "c")
    assert "a, b" in caught.value.cause


def test_a_ceiling_at_the_limit_is_not_worth_it():
    targets = rank_targets(dag(forecast("a", free_ns=980), forecast("b", free_ns=979)))
    assert [t.kernel for t in worthwhile(targets, 0.02)] == ["b"]
    assert worthwhile(targets, 0.03) == ()
    assert "even if b cost nothing, the application would gain 2.1%" in ceiling_sentence(targets, 0.03)


def test_a_baseline_without_a_graph_gives_no_target():
    document = DagDocument(schema_version="1.0", status="unavailable", reason="no kernel was dispatched")
    with pytest.raises(NoVerdictError, match="no kernel was dispatched"):
        rank_targets(document)
