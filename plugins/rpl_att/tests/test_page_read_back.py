"""The page's section on a drawn trace read back: bars, curves by the marks of their axes, tables, facts.

What is expected are the fields of the block that was drawn. A curve is followed along its path, and its
places are turned into clocks and waves by the two outermost labelled marks of each axis.
"""

from __future__ import annotations

import itertools
import random
import re

import pytest

from rpl_att.contract import AttPart
from rpl_att.report_html import _wave_ticks, thread_traces_html
from rpl_core.interfaces.section import SectionRequest

THIN = "\N{NARROW NO-BREAK SPACE}"
STATES = ("waves exec", "waves wait", "waves stall", "waves idle")


def _curve(rng: random.Random, name: str, first: int) -> dict[str, object]:
    clocks = sorted(rng.sample(range(first, first + 9_000), rng.randint(4, 12)))
    return {"name": name, "clocks": clocks, "values": [rng.randint(0, 9) for _ in clocks[:-1]] + [0]}


def _part(seed: int) -> AttPart:
    rng = random.Random(seed)
    parts = [rng.uniform(0.5, 3) for _ in range(8)]
    _, memory, barrier, other, internal, pipes, startup, idle = (one / sum(parts) for one in parts)
    rows = sorted(
        (
            {
                "line": line,
                "code_object": 1,
                "vaddr": 16 * line,
                "isa": f"v_add_f32 v{line}, v1, v2",
                "kind": "VALU",
                "source": f"/src/a.cpp:{line % 3}",
                "hits": rng.randint(1, 5_000),
                "latency": rng.randint(1_000, 10**6),
                "stall": rng.randint(0, 900),
                "idle": rng.randint(0, 10**5),
                "share": rng.random(),
            }
            for line in range(1, 30)
        ),
        key=lambda row: -(row["latency"] + row["idle"]),
    )
    lines = [
        {
            "source": f"/src/a.cpp:{number}",
            "instructions": 10,
            "hits": rng.randint(1_000, 9_000),
            "latency": rng.randint(1_000, 10**6),
            "idle": rng.randint(0, 10**5),
            "share": rng.random(),
        }
        for number in range(3)
    ]
    waits = [
        {
            "line": rng.randint(1, 99),
            "isa": f"s_waitcnt vmcnt({number})",
            "counter": "vmcnt",
            "hits": 3,
            "latency": rng.randint(1_000, 9_999),
            "share": rng.random(),
            "producers": [
                {"line": 7 + k, "isa": "global_load_dword", "times": 4, "deciding_cycles": 900 - 300 * k}
                for k in range(4)
            ],
        }
        for number in range(3)
    ]
    return AttPart.model_validate(
        {
            "status": "available",
            "level": "waves",
            "folder": "f",
            "kernel": "gemm",
            "shader_engines": [2, 5],
            "compute_units": ["SE2 CU1", "SE5 CU1"],
            "waves": rng.randint(2, 99),
            "instructions": rng.randint(1_000, 10**6),
            "cycles": {"latency": 9, "total": 9},
            "idle_fraction": startup + idle,
            "stall_split": {
                "memory_wait_fraction": memory,
                "barrier_fraction": barrier,
                "other_wait_fraction": other,
                "internal_fraction": internal,
                "pipe_backpressure_fraction": pipes,
                "startup_fraction": startup,
            },
            "waves_per_simd": rng.uniform(0.1, 8),
            "ipc": {"per_simd": rng.random(), "per_cu": 4 * rng.random(), "per_wave": rng.random()},
            "memory_latency": {
                "vmcnt": {"mean": rng.uniform(100, 9_000), "median": 777.4, "max": 12_345, "samples": 5}
            },
            "headroom_fraction": rng.random(),
            "timelines": [_curve(rng, name, 1_000) for name in STATES]
            + [_curve(rng, f"occupancy SE{engine}", 10**6 * engine) for engine in (1, 2, 5, 7)],
            "hot_instructions": rows,
            "hot_lines": lines,
            "waits": waits,
        }
    )


@pytest.fixture(params=range(6))
def shown(request: pytest.FixtureRequest) -> tuple[AttPart, str]:
    part = _part(request.param)
    return part, thread_traces_html([("gemm", part)], SectionRequest({}))


def _number(text: str) -> float:
    return float(text.replace(THIN, "").replace(",", ""))


def test_the_bar_is_the_wave_time_by_cause(shown: tuple[AttPart, str]) -> None:
    part, page = shown
    bar = page.split('aria-label="Where wave time went"')[1].split("</svg>")[0]
    split = part.stall_split
    assert split is not None
    assert part.idle_fraction is not None
    expected = {
        "memory wait": split.memory_wait_fraction,
        "barrier": split.barrier_fraction,
        "other waits and internal": (split.other_wait_fraction or 0) + (split.internal_fraction or 0),
        "pipes busy": split.pipe_backpressure_fraction,
        "start-up": split.startup_fraction,
        "idle": part.idle_fraction - (split.startup_fraction or 0),
    }
    expected = {"issue of pipes": 1 - sum(value or 0 for value in expected.values()), **expected}
    at = 0.0
    rects = re.findall(r'x="([\d.]+)" y="0" width="([\d.]+)".*?<title>(.*?): ([\d.]+) %</title>', bar)
    assert [label for _, _, label, _ in rects] == list(expected)
    for x, width, label, shown_share in rects:
        share = expected[label]
        assert share is not None
        assert float(x) == pytest.approx(at, abs=0.02)
        assert float(width) == pytest.approx(1000 * share, abs=0.01)
        assert float(shown_share) == pytest.approx(100 * share, abs=0.051)
        at += 1000 * share


def _marks(axis: str) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """(number, place) of the labels across and upward; the latter stand 4 below their mark."""
    across = re.findall(r'<text x="([\d.]+)" y="[\d.]+">([\d\u202f]+)</text>', axis)
    upward = re.findall(r'<text class="y" x="[\d.]+" y="([\d.]+)">([\d\u202f]+)</text>', axis)
    return (
        [(_number(label), float(x)) for x, label in across],
        [(_number(label), float(y) - 4) for y, label in upward],
    )


def _at(marks: list[tuple[float, float]], place: float) -> float:
    (low, first), (high, last) = marks[0], marks[-1]
    return low + (high - low) * (place - first) / (last - first)


def _followed(path: str, across: list[tuple[float, float]], upward: list[tuple[float, float]]):
    """(clock, waves) of each step."""
    return [
        (_at(across, float(x)), _at(upward, float(y))) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path)
    ]


def _charts(page: str) -> list[str]:
    return [text.split("</svg>")[0] for text in page.split('class="drawing plot"')[1:]]


@pytest.mark.parametrize("chart", [0, 1])
def test_curves_fill_their_picture_and_stay_inside(shown: tuple[AttPart, str], chart: int) -> None:
    """Marks of an axis would follow a wrong extent: what was drawn beyond the frame nobody sees."""
    frame = shown[1].split('class="drawing plot"')[chart + 1]
    found = re.search(r'viewBox="0 0 (\d+) (\d+)"', frame.split(">")[0] + frame)
    assert found is not None
    width, height = map(int, found.groups())
    paths = re.findall(r'd="(M[^"]*)"><title>', _charts(shown[1])[chart])
    across = [float(x) for path in paths for x in re.findall(r"[MH]([\d.]+)", path)]
    upward = [float(y) for path in paths for y in re.findall(r"V(-?[\d.]+)", path)]
    assert 0 <= min(across) < 0.15 * width
    assert 0.85 * width < max(across) <= width
    assert 0 <= min(upward) < 0.15 * height
    assert 0.7 * height < max(upward) <= height


def _value(curve, clock: int) -> int:
    before = [v for c, v in zip(curve.clocks, curve.values, strict=True) if c <= clock]
    return before[-1] if before else 0


def test_states_are_stacked_at_the_clocks_of_any(shown: tuple[AttPart, str]) -> None:
    part, page = shown
    chart = _charts(page)[0]
    axis, curves = chart.split("</g>", 1)
    across, upward = _marks(axis)
    states = [t for t in part.timelines if t.name.startswith("waves ")]
    clocks = sorted({clock for t in states for clock in t.clocks})
    drawn = re.findall(r'd="(M[^"]*)"><title>(.*?), at most (\d+)</title>', curves)
    assert [name for _, name, _ in drawn] == [t.name for t in reversed(states)]
    extent = clocks[-1] - clocks[0]
    highest = max(sum(_value(t, c) for t in states) for c in clocks)
    assert upward[-1][0] == highest
    assert upward[0][0] == 0
    assert all(label % 1 == 0 for label, _ in across)
    assert 3 <= len(across) <= 8
    for path, name, most in drawn:
        number = [t.name for t in states].index(name)
        assert int(most) == max(states[number].values)
        steps = _followed(path, across, upward)
        assert len(steps) == len(clocks)
        for (clock, waves), exact in zip(steps, clocks, strict=True):
            assert clock == pytest.approx(exact, abs=extent / 738 * 0.06 + 0.01)
            below = sum(_value(t, exact) for t in states[: number + 1])
            assert waves == pytest.approx(below, abs=highest / 155 * 0.06 + 0.01)


def test_occupancy_is_that_of_the_traced_engines_from_their_first_waves_on(
    shown: tuple[AttPart, str],
) -> None:
    part, page = shown
    axis, curves = _charts(page)[1].split("</g>", 1)
    across, upward = _marks(axis)
    drawn = re.findall(r'd="(M[^"]*)"><title>(.*?), at most (\d+)</title>', curves)
    assert [name for _, name, _ in drawn] == ["occupancy SE2", "occupancy SE5"]
    curve_of = {t.name: t for t in part.timelines}
    extent = max(curve_of[name].clocks[-1] - curve_of[name].clocks[0] for _, name, _ in drawn)
    for path, name, most in drawn:
        curve = curve_of[name]
        assert int(most) == max(curve.values)
        steps = _followed(path, across, upward)
        assert [round(waves) for _, waves in steps] == list(curve.values)
        for (clock, _), exact in zip(steps, curve.clocks, strict=True):
            assert clock == pytest.approx(exact - curve.clocks[0], abs=extent / 738 * 0.06 + 0.01)


def test_rows_of_instructions_lines_and_waits_are_those_of_the_block(shown: tuple[AttPart, str]) -> None:
    part, page = shown
    table = page.split("Hottest instructions</h4>")[1].split("</table>")[0]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    assert len(rows) == 25
    most = max(row.latency + (row.idle or 0) for row in part.hot_instructions)
    for cells, row in zip(rows, part.hot_instructions, strict=False):
        line, share, isa, *figures, source = cells
        assert int(line) == row.line
        assert share == f"{100 * (row.share or 0):.1f} %"
        assert f"<code>{row.isa}</code>" in isa
        (heat,) = re.findall(r'<rect width="([\d.]+)"', isa)
        assert float(heat) == pytest.approx(100 * (row.latency + (row.idle or 0)) / most, abs=0.006)
        assert [_number(text) for text in figures] == [row.latency, row.stall, row.idle, row.hits]
        assert source == f"<code>{row.source}</code>"
    groups = page.split('<div class="beside">')[1:]
    assert len(groups) == len(part.hot_lines)
    hottest = max(line.latency + (line.idle or 0) for line in part.hot_lines)
    for group, line in zip(groups, part.hot_lines, strict=True):
        assert f'<code class="place">{line.source}</code>' in group
        (told,) = re.findall(r'</code> <span class="soft">(.*?)</span></p>', group)
        share, cycles, hits = re.fullmatch(
            r"([\d.]+) %, ([\d\u202f]+) cycles, ([\d\u202f]+) hits", told
        ).groups()  # type: ignore[union-attr]
        assert float(share) == pytest.approx(100 * (line.share or 0), abs=0.051)
        assert (_number(cycles), _number(hits)) == (line.latency, line.hits)
        heats = [float(width) for width in re.findall(r'<rect width="([\d.]+)"', group.split("</div>")[0])]
        assert heats == [pytest.approx(100 * (line.latency + (line.idle or 0)) / hottest, abs=0.006)]
        own = [row for row in part.hot_instructions if row.source == line.source]
        numbers = re.findall(r'<span class="soft">(\d+)</span> <b>', group)
        assert [int(number) for number in numbers] == [row.line for row in own[:6]]
        assert f"{line.instructions - len(own[:6])} more" in group
    table = page.split("Waits and what they waited for</h4>")[1].split("</table>")[0]
    for row, wait in zip(table.split("<tr>")[2:], part.waits, strict=True):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert [int(cells[0]), cells[1], _number(cells[2])] == [
            *(wait.line, f"{100 * (wait.share or 0):.1f} %", wait.latency)
        ]
        assert cells[3] == f"<code>{wait.isa}</code>"
        # The two that decided most.
        assert (
            cells[4]
            == "<code>line 7 global_load_dword (900 cycles); line 8 global_load_dword (600 cycles)</code>"
        )


def test_facts_and_summary_are_those_of_the_block(shown: tuple[AttPart, str]) -> None:
    part, page = shown
    summary = re.findall(r'<p class="note">(.*?)</p>', page)[0]
    waves, instructions = re.fullmatch(  # type: ignore[union-attr]
        r"([\d\u202f]+) waves on SE2 CU1, SE5 CU1, ([\d\u202f]+) instructions", summary
    ).groups()
    assert (_number(waves), _number(instructions)) == (part.waves, part.instructions)
    facts = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", page))
    assert part.ipc is not None
    assert _number(facts["Waves per SIMD"]) == pytest.approx(part.waves_per_simd, rel=5e-4)
    per_simd, per_cu = re.findall(r"[\d.]+", facts["Instructions per cycle"])
    assert float(per_simd) == pytest.approx(part.ipc.per_simd, rel=5e-4)
    assert float(per_cu) == pytest.approx(part.ipc.per_cu, rel=5e-4)
    latency = part.memory_latency["vmcnt"]
    assert facts["Latency (vmcnt)"] == f"mean {latency.mean:,.0f}, median 777, max 12,345 cycles"
    assert facts["Headroom"] == f"{100 * (part.headroom_fraction or 0):.1f} % (memory wait + idle)"


def test_marks_of_waves_are_whole_and_stand_apart() -> None:
    """From none to the highest number, which is always told; closer than half of a step, labels touch."""
    for peak in range(1, 300):
        marks = [(_number(label), place) for place, label in _wave_ticks(peak)]
        assert (marks[0][0], marks[-1][0]) == (0, peak)
        assert 2 <= len(marks) <= 5
        gaps = [high[0] - low[0] for low, high in itertools.pairwise(marks)]
        assert all(gap == int(gap) >= 1 for gap in gaps)
        assert 2 * min(gaps) >= max(gaps[:-1] or gaps)
        places = [low[1] - high[1] for low, high in itertools.pairwise(marks)]
        assert [place / gap for place, gap in zip(places, gaps, strict=True)] == pytest.approx(
            [places[0] / gaps[0]] * len(gaps)
        )
