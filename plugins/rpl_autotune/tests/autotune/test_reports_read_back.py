"""What people see of a search read back: every figure of the text, every dot, step, bar and cell of the
drawings.

The documents are drawn; nothing was searched. Drawings are read by the labels of their axes: between two of
them a scale is even, or even in logarithms where times span more than a factor of four.
"""

from __future__ import annotations

import math
import random
import re
from itertools import accumulate
from typing import Any

import pytest

from rpl_autotune.contracts import (
    AutotuneDocument,
    BestPart,
    ComparisonPart,
    DevicePart,
    EvaluationPart,
    FinalPart,
    ModelPart,
)
from rpl_autotune.report import document_text, section_html

NAME = "<b>"


def _evaluation(rng: random.Random, number: int, spread: float) -> EvaluationPart:
    failed = number and rng.random() < 0.2
    time = round(math.exp(rng.uniform(0, math.log(spread))), 3)
    predicted = round(time * rng.uniform(0.7, 1.4), 3) if rng.random() < 0.7 else None
    parameters = {"BLOCK": rng.choice((32, 64, 128, 1024)), "UNROLL": rng.choice((1, 2, 4)), NAME: "x"}
    return EvaluationPart(
        number=number,
        parameters=parameters,
        phase=rng.choice(("seed", "confirm", "explore")),
        state="failed" if failed else "ok",
        runtime_ms=None if failed else time,
        predicted_ms=predicted,
        predicted_interval_ms=None if predicted is None else (predicted * 0.8, predicted * 1.3),
        reason="it crashed" if failed else None,
    )


def _document(seed: int) -> AutotuneDocument:
    rng = random.Random(seed)
    spread = (2.0, 60.0)[seed % 2]
    evaluations = tuple(_evaluation(rng, number, spread) for number in range(rng.randint(14, 24)))
    good = [item for item in evaluations if item.runtime_ms is not None]
    best = min(good, key=lambda item: item.runtime_ms or 0.0)
    assert best.runtime_ms is not None
    interval = (rng.uniform(1.01, 1.2), rng.uniform(1.5, 1.9))
    comparison = ComparisonPart(ratio=rng.uniform(1.2, 1.5), interval=interval, pairs=7, proven=True)
    undecided = ComparisonPart(ratio=1.01, interval=(0.98, 1.03), pairs=1, proven=False)
    return AutotuneDocument.model_construct(
        time_source="wall",
        origin="synthetic",
        strategy="regression",
        seed=seed,
        search_space_size=rng.randint(100, 999),
        evaluated_configs=len(evaluations),
        failed_configs=len(evaluations) - len(good),
        cached_configs=3,
        termination_reason="budget",
        best_config=BestPart(
            parameters=best.parameters,
            runtime_ms=best.runtime_ms * 1.02,
            fresh=True,
            search_ms=best.runtime_ms,
        ),
        final=FinalPart(
            device="d", rounds=7, measured=(), best_over_runner_up=undecided, best_over_default=comparison
        ),
        final_missing=None,
        model=ModelPart(
            r2=rng.uniform(0.3, 0.99),
            r2_low=0.25,
            residual_std=rng.uniform(0.01, 0.3),
            samples=rng.randint(5, 50),
            trust="clear",
            parameters={"BLOCK": 0.6, "UNROLL": 0.25, NAME: 0.0},
            pairs=(("BLOCK", "UNROLL", 0.11), ("UNROLL", NAME, 0.004)),
        ),
        warning="low_model_confidence",
        remedies=("measure more",),
        devices=(
            DevicePart(name="a", evaluations=5, reference_ms=1.23456789, correction=1.0),
            DevicePart(name="b", evaluations=6, reference_ms=2.5, correction=0.49382716),
        ),
        evaluations=evaluations,
    )


@pytest.fixture(params=range(6))
def document(request: pytest.FixtureRequest) -> AutotuneDocument:
    return _document(request.param)


def _good(document: AutotuneDocument) -> list[tuple[EvaluationPart, float]]:
    return [(item, item.runtime_ms) for item in document.evaluations if item.runtime_ms is not None]


def _words(item: EvaluationPart) -> str:
    return " ".join(f"{name}={value}" for name, value in item.parameters.items())


def test_the_text(document: AutotuneDocument) -> None:
    text = document_text(document)
    lines = text.splitlines()
    failed = document.failed_configs
    assert lines[0] == (
        f"{document.evaluated_configs} of {document.search_space_size} configurations measured"
        + (f", {failed} of them failed" if failed else "")
        + f", 3 from the cache (strategy regression, seed {document.seed}; ended by: budget)"
    )
    assert lines[1] == "time: wall clock of the whole process (synthetic)"
    best, final, model = document.best_config, document.final, document.model
    assert best is not None
    assert final is not None
    assert final.best_over_default is not None
    assert final.best_over_default.interval is not None
    (fresh, search) = re.findall(r"      ([\d.]+) ms, measured afresh \(in the search ([\d.]+) ms\)", text)[0]
    assert float(fresh) == pytest.approx(best.runtime_ms, rel=5e-6)
    assert float(search) == pytest.approx(best.search_ms, rel=5e-6)
    (numbers,) = re.findall(
        r"against the default: ([\d.]+) times as fast \(95 % interval ([\d.]+) to ([\d.]+), 7 pairs\)\n", text
    )
    wanted = [final.best_over_default.ratio, *final.best_over_default.interval]
    assert [float(one) for one in numbers] == [pytest.approx(one, rel=5e-4) for one in wanted]
    assert "runner-up: 1.01 times as fast (95 % interval 0.98 to 1.03, 1 pair): no proven difference" in text
    (told,) = re.findall(r"held-out R² ([\d.]+) \(above 0.25 at 19 of 20\), residual ([\d.]+) of", text)
    assert [float(one) for one in told] == [
        pytest.approx(model.r2, abs=5.01e-4),
        pytest.approx(model.residual_std, abs=5.01e-4),
    ]
    assert f"{model.samples} random measurements" in text
    assert f"importance: BLOCK 60%, UNROLL 25%, {NAME} 0%" in text
    assert "together: BLOCK with UNROLL 11%\n" in text
    assert "warning: low_model_confidence; what helps:\n  - measure more\n" in text
    rows = [line.split() for line in lines if re.match(r"[ab] +\d", line)]
    assert rows == [["a", "5", "1.23457", "ms", "1.0000"], ["b", "6", "2.5", "ms", "0.4938"]]


def test_the_table_has_the_ten_fastest_and_three_that_failed(document: AutotuneDocument) -> None:
    text = document_text(document)
    fastest = sorted(_good(document), key=lambda pair: (pair[1], pair[0].number))[:10]
    table = text.split("configuration\n")[1].splitlines()
    for line, (item, time) in zip(table, fastest, strict=False):
        number, shown, rest = re.fullmatch(r" *(\d+) +([\d.]+) ms +(.*)", line).groups()  # type: ignore[union-attr]
        assert int(number) == item.number
        assert float(shown) == pytest.approx(time, rel=5e-6)
        assert re.search(rf"{item.phase} +{re.escape(_words(item))}$", rest)
        if item.predicted_ms is None:
            assert rest.startswith("-  ")
        else:
            assert item.predicted_interval_ms is not None
            predicted = [float(one) for one in re.findall(r"[\d.]+", rest)[:3]]
            wanted = [item.predicted_ms, *item.predicted_interval_ms]
            assert predicted == [pytest.approx(one, rel=5e-4) for one in wanted]
    broken = [item for item in document.evaluations if item.state != "ok"]
    assert text.count("it crashed") == min(3, len(broken))
    for item in broken[:3]:
        assert f"failed: {_words(item)}: it crashed" in text
    assert (f"and {len(broken) - 3} more that failed" in text) == (len(broken) > 3)


# The drawings.

_TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*text-anchor="(\w+)">(.*?)</text>')


def _figures(document: AutotuneDocument) -> dict[str, str]:
    page = section_html(document, "Autotuning")
    assert NAME not in page.replace("&lt;b&gt;", "")
    return {
        re.findall(r'aria-label="(.*?)"', one)[0].split(",")[0]: one for one in page.split("<figure>")[1:]
    }


class _Scale:
    """From places to values by the first and the last of five labels."""

    def __init__(self, labels: list[tuple[float, float]], *, even: bool) -> None:
        (self.first, self.low), (self.last, self.high) = labels[0], labels[-1]
        assert len(labels) == 5
        self.even = even
        for place, value in labels:
            assert value == pytest.approx(self.value(place), rel=6e-3, abs=0.06)

    def value(self, place: float) -> float:
        part = (place - self.first) / (self.last - self.first)
        if self.even:
            return self.low + part * (self.high - self.low)
        return self.low * (self.high / self.low) ** part


def _scales(figure: str, times: list[float], *, across_times: bool) -> tuple[_Scale, _Scale]:
    texts = _TEXT.findall(figure)
    across = [(float(x), float(t)) for x, y, anchor, t in texts if anchor == "middle" and _is_number(t)]
    upward = [(float(y) - 4, float(t)) for x, y, anchor, t in texts if anchor == "end"]
    even = max(times) / min(times) <= 4
    return _Scale(across, even=even or not across_times), _Scale(upward, even=even)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[\d.]+(e[+-]\d+)?", text) is not None


def _dots(figure: str) -> list[tuple[float, float, bool, str]]:
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="3.5" (.*?)><title>(.*?)</title>', figure)
    return [(float(x), float(y), "#c2410c" in fill, title) for x, y, fill, title in found]


def test_each_evaluation_is_a_dot_and_the_line_is_the_best_so_far(document: AutotuneDocument) -> None:
    figure = _figures(document)["Time of each evaluation"]
    good = _good(document)
    times = [time for _, time in good]
    x, y = _scales(figure, times, across_times=False)
    dots = _dots(figure)
    assert len(dots) == len(good)
    for (across, upward, strong, title), (item, time) in zip(dots, good, strict=True):
        assert x.value(across) == pytest.approx(item.number, abs=0.06)
        assert y.value(upward) == pytest.approx(time, rel=0.02)
        assert strong == (item.phase == "confirm")
        assert title.startswith(f"{item.number}: ")
        assert title.endswith(f"{time:.6g} ms ({item.phase})")
    (points,) = re.findall(r'<polyline points="(.*?)"', figure)
    steps = [tuple(map(float, point.split(","))) for point in points.split(" ")]
    assert [y.value(place) for _, place in steps] == [
        pytest.approx(b, rel=0.02) for b in accumulate(times, min)
    ]
    assert [across for across, _ in steps] == [across for across, *_ in dots]


def test_predictions_stand_beside_measurements(document: AutotuneDocument) -> None:
    both = [(item, time) for item, time in _good(document) if item.predicted_ms is not None]
    figure = _figures(document)["Predicted against measured"]
    every = [value for item, time in both for value in (time, item.predicted_ms or 0.0)]
    x, y = _scales(figure, every, across_times=True)
    for (across, upward, _, _), (item, time) in zip(_dots(figure), both, strict=True):
        assert x.value(across) == pytest.approx(item.predicted_ms, rel=0.02)
        assert y.value(upward) == pytest.approx(time, rel=0.02)
    # The line on which both are equal.
    (points,) = re.findall(r'<polyline points="(.*?)"', figure)
    ends = [tuple(map(float, point.split(","))) for point in points.split(" ")]
    for (across, upward), value in zip(ends, (min(every), max(every)), strict=True):
        assert x.value(across) == pytest.approx(value, rel=0.02)
        assert y.value(upward) == pytest.approx(value, rel=0.02)


def test_bars_of_importance_are_in_proportion(document: AutotuneDocument) -> None:
    figure = _figures(document)["Importance of parameters by the model"]
    bars = re.findall(r'<rect x="240" y="([\d.]+)" width="([\d.]+)"', figure)
    parts = [("BLOCK", 0.6), ("UNROLL", 0.25), ("BLOCK with UNROLL", 0.11), ("&lt;b&gt;", 0.0)]
    texts = _TEXT.findall(figure)
    names = [text for _, _, anchor, text in texts if anchor == "end"]
    shares = [text for _, _, anchor, text in texts if anchor == "start"]
    assert names == [name for name, _ in parts]
    assert shares == [f"{100 * part:.0f}%" for _, part in parts]
    widths = [float(width) for _, width in bars]
    assert widths == [pytest.approx(320 * part / 0.6, abs=0.06) for _, part in parts]
    tops = [float(top) for top, _ in bars]
    assert tops == sorted(set(tops))


def test_cells_are_the_best_time_of_both_values_and_darker_where_it_is_shorter(
    document: AutotuneDocument,
) -> None:
    figure = next(one for name, one in _figures(document).items() if name.startswith("Best measured time by"))
    best: dict[tuple[Any, Any], float] = {}
    for item, time in _good(document):
        key = item.parameters["BLOCK"], item.parameters["UNROLL"]
        best[key] = min(best.get(key, math.inf), time)
    texts = _TEXT.findall(figure)
    columns = sorted({item.parameters["BLOCK"] for item in document.evaluations})
    rows = sorted({item.parameters["UNROLL"] for item in document.evaluations})
    across = {text: float(x) for x, _, anchor, text in texts if anchor == "middle"}
    down = {text: float(y) for _, y, anchor, text in texts if anchor == "end"}
    assert (list(across), list(down)) == ([str(c) for c in columns], [str(r) for r in rows])
    cells = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="20"'
        r'[^>]*fill-opacity="([\d.]+)"><title>(\S+) ms',
        figure,
    )
    assert len(cells) == len(best)
    shades = []
    for x, y, width, opacity, shown in cells:
        column = min(across, key=lambda name: abs(across[name] - float(x) - float(width) / 2))
        row = min(down, key=lambda name: abs(down[name] - float(y) - 16))
        time = best[int(column), int(row)]
        assert float(shown) == pytest.approx(time, rel=5e-6)
        shades.append((time, float(opacity)))
    shades.sort()
    opacities = [opacity for _, opacity in shades]
    assert opacities == sorted(opacities, reverse=True)
    assert (opacities[0], opacities[-1]) == (0.95, 0.08)
