"""The section of reports on a drawn part read back: every row and sentence is a field of the part."""

from __future__ import annotations

import random
import re
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from rpl_core.interfaces.section import Paragraph, SectionRequest, Table
from rpl_torch.contracts import (
    TorchCollectivePart,
    TorchDecidingPart,
    TorchHostBoundPart,
    TorchKernelPart,
    TorchModulePart,
    TorchOperatorPart,
    TorchPart,
    TorchShapePart,
    TorchTimePart,
    TorchUnmodelledPart,
)
from rpl_torch.showing import TorchSection

_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 10**9}


def _times(rng: random.Random, name: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "launches": rng.randint(1, 999),
        "time_ns": rng.randint(1, 10**9),
        "share": rng.random(),
        "path_ns": rng.randint(1, 10**9),
        "path_share": rng.random(),
    }


def _shape(rng: random.Random, number: int) -> TorchShapePart:
    bound = ("compute", "memory", None)[number % 3]
    return TorchShapePart(
        operator=f"aten::op{number}",
        dims=f"[[{number + 1}, 3], [], [5]]",
        types="",
        calls=rng.randint(1, 99),
        launches=1,
        time_ns=rng.randint(1, 10**8),
        share=0.1,
        path_ns=None,
        formula="gemm",
        reason="no formula" if number == 1 else None,
        flops=1,
        bytes=1,
        intensity=None,
        data_type="F32",
        gflops=rng.uniform(1, 10**6) if number % 2 else None,
        gbps=rng.uniform(1, 10**4),
        compute_share=rng.random(),
        memory_share=rng.random(),
        bound=bound,
        above_peak=number == 3,
        ceiling_reason=f"reason {number % 2}" if bound is None else None,
    )


def _part(seed: int) -> TorchPart:
    rng = random.Random(seed)
    collectives = [
        TorchCollectivePart(
            operation=f"op{number}",
            group=None,
            group_size=None if number == 2 else 8,
            ranks_recorded=4 + number,
            operations=rng.randint(1, 50),
            message_bytes=None if number == 1 else rng.randint(1, 10**9),
            dtype=None,
            duration_ns=rng.randint(1, 10**9),
            wait_ns=None if number else rng.randint(1, 10**9),
            transfer_ns=None,
            wait_reason="a rank is missing" if number else None,
            last_ranks={"3": 5, "1": 2, "0": 1} if number == 0 else {},
            end_spread_ns=None,
            algorithm_gbps=None,
            bus_gbps=None if number == 2 else rng.uniform(1, 500),
            bandwidth_exactness="lower_bound" if number else "estimate",
            bandwidth_reason=None,
        )
        for number in range(3)
    ]
    operators = [
        TorchOperatorPart(
            **_times(rng, None if number == 2 else f"aten::op{number}"),
            calls=1,
            idle_host_ns=rng.randint(0, 10**6),
            idle_queued_ns=rng.randint(0, 10**6),
            idle_unknown_ns=rng.randint(0, 10**6),
            modelled_calls=0,
            flops=None,
            bytes=None,
        )
        for number in range(13)
    ]
    modules = [
        TorchModulePart(
            **_times(rng, f"m{number}" if number else None), inside_ns=1, inside_share=rng.random()
        )
        for number in range(8)
    ]
    stretches = [
        TorchHostBoundPart(
            process=1,
            agent=0,
            begin_ns=rng.randint(1, 10**9),
            length_ns=rng.randint(10**6, 10**8),
            idle_ns=rng.randint(1, 10**6),
            launches=rng.randint(5, 99),
            operator=None if number == 1 else "aten::copy_",
            operator_idle_ns=1,
            line=None,
        )
        for number in range(7)
    ]
    lines = tuple(
        TorchTimePart(**_times(rng, f"{'x' * 70}/model.py({n}): forward" if n else None)) for n in range(8)
    )
    return TorchPart(
        run=0,
        ranks=(),
        time_ns=10**9,
        path_ns=None,
        path_reason=None,
        shapes_reason=None,
        modules_reason=None,
        lines_reason=None,
        operators=tuple(operators),
        operators_left_out=4,
        modules=tuple(modules),
        modules_left_out=0,
        lines=lines,
        lines_left_out=0,
        shapes=tuple(_shape(rng, number) for number in range(9)),
        shapes_left_out=0,
        unmodelled=tuple(
            TorchUnmodelledPart(operator=f"aten::u{n % 8}", calls=n + 1, time_ns=1, reason="r")
            for n in range(10)
        ),
        modelled_share=rng.random(),
        deciding=TorchDecidingPart(
            kernel="gemm",
            path_ns=rng.randint(1, 10**9),
            operator="aten::mm",
            operator_ns=1,
            module="m1",
            line="a.py(3): f",
            dims="[[2, 3], [], [3, 4]]",
        ),
        kernels=(
            TorchKernelPart(
                kernel="gemm",
                time_ns=1,
                operators=lines[:3],
                modules=tuple(TorchTimePart(**_times(rng, None)) for _ in range(2)),
                lines=lines[2:4],
            ),
        ),
        kernels_left_out=0,
        idle_ns=1,
        host_bound=tuple(stretches),
        host_bound_left_out=0,
        collectives=tuple(collectives),
        work_origin="modelled",
    )


@pytest.fixture(params=range(4))
def shown(request: pytest.FixtureRequest) -> tuple[TorchPart, SectionRequest]:
    part = _part(request.param)
    profile = SimpleNamespace(sections={"torch": attrs.asdict(part)})
    return part, SectionRequest({"profile": profile}, short_names={"gemm": "the gemm"})


def _table(blocks: Any, first: str) -> list[dict[str, str]]:
    (found,) = (one for one in blocks if isinstance(one, Table) and one.columns[0] == first)
    assert set(found.right) <= set(found.columns)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def _said(blocks: Any) -> list[str]:
    return [one.text for one in blocks if isinstance(one, Paragraph)]


def _is_time(text: str, ns: int) -> bool:
    value, unit = text.split(" ")
    return float(value.replace(",", "")) * _NS[unit] == pytest.approx(ns, rel=5.01e-4)


def _is_share(text: str, share: float | None) -> bool:
    return text.endswith("%") and float(text[:-1]) == pytest.approx(100 * (share or 0), abs=0.0501)


def test_operators_modules_and_lines(shown: tuple[TorchPart, SectionRequest]) -> None:
    part, request = shown
    blocks = TorchSection().blocks(request)
    rows = _table(blocks, "operator")
    assert len(rows) == 10
    for row, one in zip(rows, part.operators, strict=False):
        assert row["operator"] == (one.name or "(no operator recorded)")
        assert row["launches"] == str(one.launches)
        assert _is_time(row["time"], one.time_ns)
        assert _is_share(row["share"], one.share)
        assert _is_share(row["path"], one.path_share)
        assert _is_time(row["idle, host"], one.idle_host_ns)
        assert _is_time(row["idle, queued"], one.idle_queued_ns + one.idle_unknown_ns)
    # 13 of which 10 are shown, and 4 that the document lacks.
    assert "7 more operators in profile.json and below." in _said(blocks)
    rows = _table(blocks, "module")
    longest = sorted(part.modules, key=lambda one: -one.time_ns)[:6]
    assert [row["module"] for row in rows] == [one.name or "(outside of modules)" for one in longest]
    for row, one in zip(rows, longest, strict=True):
        assert _is_time(row["own time"], one.time_ns)
        assert _is_share(row["share"], one.share)
        assert _is_share(row["path"], one.path_share)
        assert _is_share(row["with inner"], one.inside_share)
    _check_times(_table(blocks, "Python line"), "Python line", part.lines[:6], "(no line recorded)")


def _check_times(rows: Any, head: str, parts: tuple[TorchTimePart, ...], unknown: str) -> None:
    for row, one in zip(rows, parts, strict=True):
        if one.name is None:
            assert row[head] == unknown
        else:
            assert row[head].startswith("…")
            assert len(row[head]) == 56
            assert one.name.endswith(row[head][1:])
        assert row["launches"] == str(one.launches)
        assert _is_time(row["time"], one.time_ns)
        assert _is_share(row["share"], one.share)
        assert _is_share(row["path"], one.path_share)


def test_what_decides(shown: tuple[TorchPart, SectionRequest]) -> None:
    part, request = shown
    first = _said(TorchSection().blocks(request))[0]
    assert part.deciding is not None
    name, time, rest = re.fullmatch(  # type: ignore[union-attr]
        r"Most time on the critical path: (.*) \((.*)\), launched by (.*)", first
    ).groups()
    assert name == "the gemm"
    assert _is_time(time, part.deciding.path_ns)
    assert rest == "aten::mm in module m1, at a.py(3): f, with shapes [2,3] [3,4]."


def test_shapes_with_their_rates(shown: tuple[TorchPart, SectionRequest]) -> None:
    part, request = shown
    blocks = TorchSection().blocks(request)
    modelled = [one for one in part.shapes if one.reason is None][:6]
    for row, one in zip(_table(blocks, "operator and shapes"), modelled, strict=True):
        number = int(one.operator.removeprefix("aten::op"))
        assert row["operator and shapes"] == f"{one.operator} [{number + 1},3] [5]"
        assert row["calls"] == str(one.calls)
        assert _is_time(row["time"], one.time_ns)
        rates = (row["TFLOP/s"], None if one.gflops is None else one.gflops / 1000), (row["GB/s"], one.gbps)
        for text, rate in rates:
            assert text == "-" if rate is None else float(text) == pytest.approx(rate, rel=5.01e-4)
        if one.bound is None:
            assert row["of peak"] == "-"
            continue
        share, bound, *_ = row["of peak"].split(" ")
        assert bound == one.bound
        assert _is_share(share, one.compute_share if bound == "compute" else one.memory_share)
        assert row["of peak"].endswith("ABOVE PEAK") == one.above_peak
    (modelled_text,) = (text for text in _said(blocks) if text.startswith("Work is modelled"))
    (share,) = re.findall(r"([\d.]+%) of the time has a formula", modelled_text)
    assert _is_share(share, part.modelled_share)
    # Ten kinds of eight operators: the first two have two reasons each.
    assert "without one: aten::u0 (10), aten::u1 (12), aten::u2 (3)" in modelled_text
    assert modelled_text.endswith("aten::u5 (6) and 2 more.")
    assert "Shares of peaks are unknown: reason 0; reason 1." in _said(blocks)


def test_stretches_and_collectives(shown: tuple[TorchPart, SectionRequest]) -> None:
    part, request = shown
    blocks = TorchSection().blocks(request)
    for row, one in zip(_table(blocks, "host-bound"), part.host_bound[:6], strict=True):
        assert _is_time(row["host-bound"], one.length_ns)
        assert _is_time(row["begins at"], one.begin_ns)
        assert row["launches"] == str(one.launches)
        assert _is_time(row["GPU idle"], one.idle_ns)
        assert _is_share(row["of it"], one.idle_ns / one.length_ns)
        assert row["most of it before"] == (one.operator or "(no operator recorded)")
    for row, one in zip(_table(blocks, "collective"), part.collectives, strict=True):
        assert row["collective"] == one.operation
        assert row["ranks"] == f"{one.ranks_recorded} of {one.group_size or '?'}"
        assert row["calls"] == str(one.operations)
        assert row["size"] == ("-" if one.message_bytes is None else f"{one.message_bytes:,} B")
        assert _is_time(row["time"], one.duration_ns)
        assert row["waiting"] == "-" if one.wait_ns is None else _is_time(row["waiting"], one.wait_ns)
        if one.bus_gbps is None:
            assert row["bus GB/s"] == "-"
        else:
            assert row["bus GB/s"].startswith(">= ") == (one.bandwidth_exactness == "lower_bound")
            assert float(row["bus GB/s"].removeprefix(">= ")) == pytest.approx(one.bus_gbps, rel=5.01e-4)
        assert row["last rank"] == ("3 (5x), 1 (2x)" if one.last_ranks else "-")
    assert _said(blocks).count("Waiting is unknown: a rank is missing.") == 1


def test_who_launched_one_kernel(shown: tuple[TorchPart, SectionRequest]) -> None:
    part, request = shown
    blocks = TorchSection().explain(request, "gemm")
    (kernel,) = part.kernels
    head = "launched by operator"
    _check_times(_table(blocks, head), head, kernel.operators, "(no operator recorded)")
    _check_times(_table(blocks, "at line"), "at line", kernel.lines, "(no line recorded)")
    # Nobody knows of modules, so there is no table of them.
    assert len(blocks) == 2
    assert TorchSection().explain(request, "other") == ()
