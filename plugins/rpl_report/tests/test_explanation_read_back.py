"""What `rpl explain` says of drawn documents, read as people do: every figure, name and reason against them.

A figure is within half of its last digit, says how exact it is, and stands once; what is unknown says why.
"""

from __future__ import annotations

import random
import re
from types import SimpleNamespace

import pytest

from rpl_analysis.contracts.analysis import ConditionEvidence, KernelAnalysis, RuleEvidence
from rpl_analysis.contracts.dag import ForecastPart, SpeedupForecastPart
from rpl_analysis.contracts.profile import OccupancyPart, ResourcesPart
from rpl_analysis.contracts.roofline import (
    CeilingsPart,
    ComputeCeilingDoc,
    FlopModelMetrics,
    KernelRooflineDoc,
    LevelPart,
    RoofPart,
    TypeWorkPart,
)
from rpl_core.model.metric import Metric
from rpl_report.cli.explain import gain_lines, label_lines, resource_lines, roofline_lines

EXACT = ("exact", "lower_bound", "interval", "estimate", None)


def figure(text: str) -> float:
    """One number as it is shown; a share as a fraction of one."""
    (number, share) = re.fullmatch(r"(-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)(%?)", text.strip()).groups()
    return float(number.replace(",", "")) / (100 if share else 1)


def assert_told(text: str, metric: Metric, half: float = 0.0) -> None:
    """``text`` begins with the figure; ``half`` of the last digit of a share, else four digits hold."""
    if metric.value is None:
        assert text.startswith(f"unknown ({metric.reason})"), text
        return
    near = {"abs": half} if half else {"rel": 5.01e-4}
    ends = re.match(r"(\S+) to ([^ ]+?),?(?: |$)", text)
    if metric.upper is not None:
        assert [figure(end) for end in ends.groups()] == [
            pytest.approx(value, **near) for value in (metric.value, metric.upper)
        ], text
        return
    assert ends is None, text
    shown, said = re.match(r"([^ ]+?),?(?: \((\w+)\)|,? |$)", text).groups()
    assert figure(shown) == pytest.approx(metric.value, **near), text
    assert said == (metric.exactness if metric.exactness not in ("exact", None) else None), text


def metric(rng: random.Random, unit: str = "GOP/s") -> Metric:
    share = unit == "fraction"
    value = rng.random() if share else 10.0 ** rng.uniform(-2, 6)
    exactness = rng.choice(EXACT)
    if rng.random() < 0.2:
        return Metric.unknown(unit, f"no counter {rng.randint(1, 99)}")
    formula, source = rng.choice(((None, None), ("A / B", None), ("A * 2", "some manual, 3.1")))
    upper = value * 1.5 if exactness == "interval" else None
    note = rng.choice((None, "a note"))
    return Metric(value, unit, exactness, upper=upper, formula=formula, source=source, note=note)


def rows(text: str) -> dict[str, str]:
    """Lines of two columns below a heading: by their first, which is not indented further."""
    lines = [line for line in text.split("\n") if re.match(r" {12}\S", line)]
    found = [(line[12:32].rstrip(), line[32:]) for line in lines]
    assert len(dict(found)) == len(found), "each once"
    return dict(found)


@pytest.mark.parametrize("seed", range(10))
def test_a_label_with_all_of_its_evidence(seed):
    rng = random.Random(seed)

    def rule(name: str) -> RuleEvidence:
        conditions = []
        for number in range(rng.randint(1, 4)):
            threshold = rng.choice((0.05, 0.3, 0.6))
            value = rng.choice(
                (rng.random(), threshold + rng.choice((-1, 1)) * rng.choice((2e-4, 9.9e-4, 2e-3)), None)
            )
            exactness = None if value is None else rng.choice(EXACT[:4])
            conditions.append(
                ConditionEvidence(
                    quantity=f"{name}_{'q' * rng.randint(1, 9)}{number}",
                    comparison=rng.choice((">=", "<", "<=", ">")),
                    threshold=threshold,
                    source=f"source {number}",
                    value=value,
                    holds=None if value is None else rng.random() < 0.5,
                    exactness=exactness,
                    upper=min(1.0, value * 2) if exactness == "interval" else None,
                    formula=rng.choice((None, f"{name} / {number}")),
                )
            )
        return RuleEvidence(name, "latency_bound", f"because of {name}", tuple(conditions))

    evidence, misses = [rule(f"e{i}") for i in range(rng.randint(0, 3))], [rule("m0")] * rng.randint(0, 1)
    label = KernelAnalysis(
        kernel="k",
        time_ms=1.0,
        operational_intensity=None,
        roofline_position=None,
        critical_path_score=None,
        bottleneck="latency_bound",
        confidence=rng.choice(("high", "medium", "low")),
        reason="it waits",
        evidence=tuple(evidence),
        near_misses=tuple(misses),
        unknown=tuple(f"thing {i}: not recorded" for i in range(rng.randint(0, 2))),
        headroom_fraction=rng.choice((None, rng.random())),
        headroom_source="its roof",
        headroom_reason=rng.choice((None, "no roof")),
        remedy=rng.choice((None, "rpl profile --roofline -- {command}")),
    )
    lines = list(label_lines(label))
    text = "\n".join(lines)
    assert lines[:2] == [
        f"label       latency_bound (confidence: {label.confidence})",
        "why         it waits",
    ]
    if label.headroom_fraction is None:
        assert (
            lines[2] == f"headroom    unknown: {label.headroom_reason or 'nothing was recorded that tells'}"
        )
    else:
        share, source = re.fullmatch(r"headroom    (\S+)  \[(.+)\]", lines[2]).groups()
        assert (figure(share), source) == (pytest.approx(label.headroom_fraction, abs=5.01e-4), "its roof")
    blocks = text.split("\n\n")[1:]
    for block, (title, one) in zip(
        blocks,
        [("evidence", one) for one in evidence] + [("near misses", one) for one in misses],
        strict=False,
    ):
        first, told, *rest = block.split("\n")
        assert first == f"{title:<12}{one.rule} -> {one.label}" + (
            ", decides" if one is evidence[:1] or (evidence and one is evidence[0]) else ""
        )
        assert told == " " * 12 + one.explanation
        ends = set()
        for condition in one.conditions:
            line = rest.pop(0)
            shown = re.fullmatch(
                r" {14}(\S+) +(unknown|\S+(?: to \S+| \(\w+\))?) (>=|<=|<|>) (\d+%) +(holds|fails|unknown) +"
                r"\[threshold: (.+)\]",
                line,
            )
            assert shown, line
            name, value, comparison, limit, verdict, source = shown.groups()
            assert (name, comparison, source) == (condition.quantity, condition.comparison, condition.source)
            assert figure(limit) == condition.threshold
            assert verdict == {True: "holds", False: "fails", None: "unknown"}[condition.holds]
            ends.add((line.index(f" {comparison} "), line.index(" [threshold")))
            if condition.value is None:
                assert value == "unknown"
            else:
                shown = Metric(condition.value, "fraction", condition.exactness, upper=condition.upper)
                near = abs(condition.value - condition.threshold) < 1e-3
                assert_told(value, shown, 5.01e-4)
                if near:
                    assert figure(value.split()[0]) == pytest.approx(condition.value, abs=5.01e-6)
                    assert figure(value.split()[0]) != condition.threshold, "so that it is told apart"
            if condition.formula is not None:
                assert rest.pop(0) == " " * 16 + f"= {condition.formula}"
        assert len(ends) == 1, "columns stand below each other"
        assert [line for line in rest if not line.startswith("remedy")] == []
    tail = [f"unknown     {one}" for one in label.unknown]
    if label.remedy:
        tail.append("remedy      rpl profile --roofline -- COMMAND")
    assert lines[len(lines) - len(tail) :] == tail


@pytest.mark.parametrize("seed", range(10))
def test_a_roofline_with_all_of_its_figures(seed):
    rng = random.Random(100 + seed)
    spec_known, dominant = rng.random() < 0.6, ("f32", "mfma")
    roofs = [
        RoofPart(
            origin,
            peak_gflops=None,
            peak_gbps=100.0 if known else None,
            ridge=None,
            compute_share=metric(rng, "fraction"),
            memory_share=metric(rng, "fraction"),
            position=metric(rng, "fraction"),
        )
        for origin, known in (("spec", spec_known), (rng.choice(("measured", "published", None)), True))
    ]
    kinds = (("f32", "mfma"), ("f32", "valu"), ("f64", "valu"))
    kernel = KernelRooflineDoc(
        name="k",
        launches=1.0,
        counter_launches=1,
        time_ns=Metric(5.0, "ns"),
        flops=Metric(rng.choice((10.0, 0.0)), "FLOP"),
        flop_model=rng.choice(("per_op", "valu_width")),
        models=FlopModelMetrics(metric(rng), metric(rng), None, rng.choice((None, "as it must be"))),
        bytes=metric(rng),
        byte_source=None,
        operational_intensity=metric(rng),
        achieved_gflops=metric(rng),
        achieved_gbps=metric(rng),
        dominant_type=dominant[0],
        dominant_pipe=dominant[1],
        bound=rng.choice((None, "memory", "compute")),
        bound_reason="it is so",
        position=metric(rng, "fraction"),
        spec=roofs[0],
        measured=roofs[1],
        types=tuple(TypeWorkPart(*kind, metric(rng), metric(rng)) for kind in kinds),
        levels=tuple(
            LevelPart(level, metric(rng), metric(rng), metric(rng), rng.choice((None, 5300.0)), None)
            for level in ("hbm", "l2", "vl1d", "lds", "l9")
        ),
        caches={"hit rate": metric(rng, "fraction")},
        corrections=dict.fromkeys(("active_lanes", "packed"), Metric(rng.choice((9.0, 10.0)), "FLOP")),
        exceeds_ceiling=rng.choice(((), ("hbm", "f32"))),
    )
    ceilings = CeilingsPart(
        (
            ComputeCeilingDoc("f32", "mfma", 1234.0, "spec", "s"),
            ComputeCeilingDoc("f32", "valu", 77.0, "measured", "s"),
            ComputeCeilingDoc("f64", "valu", 88.0, "spec", "s"),
        )
    )
    document = SimpleNamespace(kernels=(kernel,), status="available", reason=None, ceilings=ceilings)
    text = "\n".join(roofline_lines(document, "k"))
    first, second, *others = text.split("\n")
    position, bound = re.fullmatch(r"roofline    (.*) of what is attainable; bound: (\w+)", first).groups()
    assert_told(position, kernel.position, 5.01e-4)
    assert bound == (kernel.bound or "undecided")
    other = roofs[1].origin or "measured"
    assert second == f"{'':<12}it is so ({'spec' if spec_known else other} ceilings)"
    beside = [line for line in others if line.endswith(" ceilings")]
    assert len(beside) == (spec_known and roofs[1].position.value is not None)
    for line in beside:
        assert_told(line.strip().removesuffix(f" of the {other} ceilings"), roofs[1].position, 5.01e-4)
    above = [line for line in others if "ABOVE A CEILING" in line]
    assert above == [f"{'':<12}ABOVE A CEILING, so not what it seems: hbm, f32"] * bool(
        kernel.exceeds_ceiling
    )
    told = rows("\n".join(line for line in others if line not in (*above, *beside)))
    peaks = {("f32", "mfma"): "1,234", ("f64", "valu"): "88"}
    for kind, work in zip(kinds, kernel.types, strict=True):
        line = told.pop(" ".join(kind))
        assert_told(line, work.gops)
        assert line.endswith(", picks the roof") == (kind == dominant)
        if work.gops.value is not None:
            assert f" of {peaks[kind]} GOP/s" in line if kind in peaks else " of " not in line
            assert " GOP/s" in line
    names = {"hbm": "HBM/fabric", "l2": "L2", "vl1d": "vL1D", "lds": "LDS", "l9": "l9"}
    for level in kernel.levels:
        line = told.pop(names[level.level])
        assert_told(line, level.achieved_gbps)
        if level.achieved_gbps.value is not None:
            assert line.endswith(" of 5,300 GB/s" if level.spec_gbps else " GB/s")
            assert (" of " in line) == (level.spec_gbps is not None)
    for name in ("per_op", "valu_width"):
        line = told.pop(f"FLOPs, {name}")
        assert_told(line, getattr(kernel.models, name))
        assert line.endswith(", used") == (name == kernel.flop_model)
    assert ("as it must be" in text) == (kernel.models.fallback is not None)
    assert_told(told.pop("hit rate"), kernel.caches["hit rate"], 5.01e-4)
    corrected = kernel.flops.value == 10.0 and kernel.corrections["packed"].value == 9.0
    assert set(told) == ({"FLOPs, active_lanes", "FLOPs, packed"} if corrected else set()), text
    cache = kernel.caches["hit rate"]
    how = [f"= {cache.formula}" + (f"  [{cache.source}]" if cache.source else "")] if cache.formula else []
    how += ["a note"] if cache.note else []
    after = text.partition("hit rate")[2].split("\n")[1:]
    assert [line.strip() for line in after if line] == (how if cache.value is not None else [])


@pytest.mark.parametrize("status", ["not_collected", "unavailable", "available"])
def test_without_a_roofline_the_reason_is_told(status):
    document = SimpleNamespace(kernels=(), status=status, reason="no pass", ceilings=CeilingsPart())
    assert list(roofline_lines(document, "k")) == [f"roofline    {status.replace('_', ' ')}: no pass"]
    document.reason = None
    assert list(roofline_lines(document, "k")) == [
        f"roofline    {status.replace('_', ' ')}: no counters for it"
    ]
    assert list(roofline_lines(None, "k")) == ["roofline    unknown: there is no roofline.json"]


@pytest.mark.parametrize(
    ("accum", "told"), [(None, "1,128"), (0, "1,128"), (104, "1,128 (1,024 + 104 AGPR)")]
)
def test_resources_and_occupancy(accum, told):
    resources = ResourcesPart(
        vgpr_per_thread=1128,
        arch_vgpr=1024,
        accum_vgpr=accum,
        sgpr_per_wave=96,
        lds_bytes=65536,
        scratch_bytes=None,
    )
    known = OccupancyPart(
        theoretical=0.375, waves_per_simd=3, max_waves_per_simd=8, limiter="vgpr", next_threshold="64 VGPR"
    )
    cases = (
        (known, "38% in theory, 3 of 8 waves per SIMD, limited by vgpr; one more with 64 VGPR"),
        (OccupancyPart(theoretical=1.0, waves_per_simd=8, max_waves_per_simd=8, limiter="waves"),
         "100% in theory, 8 of 8 waves per SIMD, limited by waves"),
        (OccupancyPart(reason="no registers"), "- (no registers)"),
        (OccupancyPart(theoretical_range=(0.25, 0.5), reason="wave size"), "25-50% (wave size)"),
    )  # fmt: skip
    for occupancy, said in cases:
        other = SimpleNamespace(name="other", resources=ResourcesPart(), occupancy=known)
        profile = SimpleNamespace(
            kernels=(other, SimpleNamespace(name="k", resources=resources, occupancy=occupancy))
        )
        assert list(resource_lines(profile, "k")) == [
            f"resources   VGPR {told}, SGPR 96, LDS 65,536 B per workgroup, scratch - B per work-item",
            f"occupancy   {said}",
            "",
        ]
        assert list(resource_lines(profile, "gone")) == list(resource_lines(None, "k")) == []


@pytest.mark.parametrize("sync", ["none", "events"])
@pytest.mark.parametrize("known", [True, False])
def test_what_a_faster_kernel_brings(sync, known):
    def answer(speedup, left, gain, most=None):
        return SpeedupForecastPart(speedup, 1, left, gain, None, most)

    entries = (
        ForecastPart("k", "copy", (answer(2.0, 1, 1),)),
        ForecastPart(
            "k", "kernel", (answer(1.25, 900, 100), answer(2.0, 800, 200, 500), answer(None, 0, 1000))
        ),
        ForecastPart("other", "kernel", (answer(2.0, 10, 990), answer(None, 500, 500))),
    )
    document = SimpleNamespace(forecasts=entries, sync_info=sync, order_known=known)
    most = "at most " if sync == "none" and known else ""
    assert list(gain_lines(document, "k")) == [
        f"gain        twice as fast, it makes the application {most}1.250x to 2.000x as fast",
        "gain        at no cost, nothing would be left of the application's recorded time",
    ]
    assert list(gain_lines(document, "other")) == [
        f"gain        twice as fast, it makes the application {most}100.000x as fast",
        f"gain        at no cost, it makes the application {most}2.000x as fast",
    ]
    assert list(gain_lines(document, "gone")) == list(gain_lines(None, "k")) == []
