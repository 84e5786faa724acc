"""What `rpl replay compare` says of drawn judgements and times, as text and as JSON, against what was drawn.

Fields by docs/REPLAY.md. No replayer runs: the tests of the native part look at the judgements themselves.
"""

from __future__ import annotations

import random
import re
import statistics
from types import SimpleNamespace
from typing import Any

import pytest

from rpl_core.model.metric import Origin
from rpl_vmreplay.cli import replay
from rpl_vmreplay.compare.judge import Control, ControlOutcome, Judgement, OutputResult, Verdict
from rpl_vmreplay.compare.outputs import NOT_A_NUMBER, DataType, Output
from rpl_vmreplay.compare.pair import Turns
from rpl_vmreplay.interfaces import MemoryRange

NOTICED = (ControlOutcome.BY_RESULTS, ControlOutcome.CRASHED)
CHANGING = (*NOTICED, ControlOutcome.SURVIVED, ControlOutcome.ROUNDING)


class Lines:
    """Keeps what a command would print."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.rows: list[dict[str, str]] = []
        self.documents: list[Any] = []

    def line(self, text: str = "") -> None:
        self.lines.append(text)

    note = line

    def table(self, columns, rows, right=()) -> None:
        assert set(right) <= set(columns)
        self.rows += [dict(zip(columns, row, strict=True)) for row in rows]

    def json(self, document: Any) -> None:
        self.documents.append(document)


def drawn_outputs(rng: random.Random) -> tuple[OutputResult, ...]:
    return tuple(
        OutputResult(
            output=Output(
                rng.choice((None, f"out{number}")),
                0x1000 * (number + 1),
                rng.choice(list(DataType)),
                tuple(MemoryRange(0x1000, 8 * rng.randint(1, 99)) for _ in range(rng.randint(1, 3))),
            ),
            spread=rng.randint(0, 3),
            tolerance=rng.randint(0, 9),
            differing=rng.randint(0, 99),
            worst=rng.choice((0, 7, NOT_A_NUMBER - 1, NOT_A_NUMBER)),
            first=rng.choice((None, MemoryRange(0x1008, 4))),
            expected="1.5",
            found="2.5",
            any_order=rng.random() < 0.5,
        )
        for number in range(rng.randint(0, 4))
    )


def drawn(rng: random.Random) -> Judgement:
    return Judgement(
        verdict=rng.choice(list(Verdict)),
        reason="it is so",
        outputs=drawn_outputs(rng),
        outside=tuple(MemoryRange(0x9000, 16 * n) for n in range(1, rng.randint(1, 3))),
        controls=tuple(
            Control(f"edit {n}", rng.choice(list(ControlOutcome))) for n in range(rng.choice((0, 9)))
        ),
        poisoned_bytes=rng.choice((None, 0, 4096)),
        read_first_bytes=12,
        replays=rng.randint(1, 9),
        findings=rng.choice((None, (), ("a race",))),
        usual_findings=rng.choice(((), ("races",))),
    )


def test_every_part_of_a_judgement_is_said():
    for seed in range(60):
        judgement, output = drawn(random.Random(seed)), Lines()
        replayer = SimpleNamespace(name="emu", origin=Origin.MODELLED)
        replay._print_judgement(output, replayer, judgement)
        first, second, *others = output.lines
        assert first == f"{judgement.verdict.value.upper()}: it is so"
        plural = "" if judgement.replays == 1 else "s"
        assert second.endswith(f"replayer emu, {judgement.replays} replay{plural})")
        assert output.rows == [
            {
                "BEHIND": one.output.argument or f"0x{one.output.base:x}",
                "TYPE": one.output.kind.value,
                "BYTES": str(sum(part.size for part in one.output.ranges)),
                "DIFFERING": str(one.differing),
                "WORST": "-" if one.worst == NOT_A_NUMBER else str(one.worst),
                "TOLERANCE": str(one.tolerance),
            }
            for one in judgement.outputs
        ]
        expected = ["first at 0x1008: 2.5 instead of 1.5" for one in judgement.outputs if one.first]
        expected += [f"written beside: {one.size} bytes at 0x9000" for one in judgement.outside]
        if judgement.poisoned_bytes is not None:
            expected.append(f"poisoned: {judgement.poisoned_bytes} bytes; kept, since A reads them first: 12")
        if judgement.controls:
            noticed = sum(one.outcome in NOTICED for one in judgement.controls)
            changing = sum(one.outcome in CHANGING for one in judgement.controls)
            nothing = sum(one.outcome is ControlOutcome.NO_EFFECT for one in judgement.controls)
            share = f"{noticed / changing:.0%}" if changing else "-"
            expected.append(
                f"wrong kernels noticed: {noticed} of 9, {share} of those that change anything; "
                f"{nothing} change nothing with this input"
            )
        expected += [f"found: {text}" for text in judgement.findings or ()]
        expected += [f"A has it, too, so it does not count: {kind}" for kind in judgement.usual_findings]
        survivors = [one.edit for one in judgement.controls if one.outcome is ControlOutcome.SURVIVED]
        expected += [f"not noticed: {edit}" for edit in survivors]
        assert others == expected

        capture = SimpleNamespace(dispatch=SimpleNamespace(demangled_name="k(float*)"))
        document = replay.document(capture, replayer, judgement)
        assert (document["verdict"], document["kernel"]) == (judgement.verdict.value, "k(float*)")
        assert document["replayer"] == {"name": "emu", "origin": "modelled"}
        assert document["survivors"] == survivors
        assert [one["worst_ulps"] for one in document["outputs"]] == [
            None if one.worst == NOT_A_NUMBER else one.worst for one in judgement.outputs
        ]
        for said, one in zip(document["outputs"], judgement.outputs, strict=True):
            assert (said["address"], said["bytes"]) == (one.output.base, one.output.size)
            assert (said["baseline_spread_ulps"], said["tolerance_ulps"]) == (one.spread, one.tolerance)
            assert (said["differing"], said["any_order"]) == (one.differing, one.any_order)
        assert document["findings"] == (None if judgement.findings is None else list(judgement.findings))
        assert document["written_beside"] == [{"address": 0x9000, "size": o.size} for o in judgement.outside]
        assert [one["outcome"] for one in document["controls"]] == [
            c.outcome.value for c in judgement.controls
        ]


@pytest.mark.parametrize("exact", [False, True])
def test_exit_codes(exact):
    """By the table of exit codes: a difference is 1, rounding only where equal bits are asked for."""
    codes = {verdict: replay._exit_code(Judgement(verdict, ""), exact=exact) for verdict in Verdict}
    assert codes == {
        Verdict.EQUAL: 0,
        Verdict.ROUNDING: 1 if exact else 0,
        Verdict.DIFFERENT: 1,
        Verdict.BLIND: 75,
        Verdict.UNDECIDED: 75,
    }


@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_times_of_both(count):
    rng, output = random.Random(count), Lines()
    pairs = tuple((rng.randint(1000, 9000), rng.randint(1000, 9000)) for _ in range(count))
    told = replay._times(Turns(pairs, Origin.MEASURED))
    assert told["a"] == [pytest.approx(a / 1000) for a, _ in pairs]
    assert told["b"] == [pytest.approx(b / 1000) for _, b in pairs]
    ratios = [b / a for a, b in pairs]
    assert (told["unit"], told["origin"], told["problem"]) == ("microseconds", "measured", None)
    assert told["ratio"] == pytest.approx(statistics.median(ratios))
    assert told["a_median"] == pytest.approx(statistics.median(a for a, _ in pairs) / 1000)
    assert told["b_median"] == pytest.approx(statistics.median(b for _, b in pairs) / 1000)
    if count == 1:
        assert told["ratio_quartiles"] is None
        return
    ordered = sorted(ratios)
    places = [(count - 1) * part for part in (0.25, 0.75)]
    quartiles = [
        ordered[int(p)] + (p % 1) * (ordered[min(int(p) + 1, count - 1)] - ordered[int(p)]) for p in places
    ]
    assert told["ratio_quartiles"] == pytest.approx(quartiles)
    replay._print_times(output, Turns(pairs, Origin.MEASURED))
    (line,) = output.lines
    numbers = [float(one) for one in re.findall(r"\d+\.\d+", line)]
    wanted = [told["a_median"], told["b_median"], told["ratio"], *told["ratio_quartiles"]]
    assert numbers == [pytest.approx(one, abs=6e-4) for one in wanted]
    assert line.startswith("times (measured): A ")
    assert line.endswith(f"; {count} pairs")


def test_without_times_the_reason_is_told():
    output = Lines()
    replay._print_times(output, None)
    replay._print_times(output, Turns(problem="none"))
    assert output.lines == ["no times: none"]
    assert replay._times(None) is None
    empty = replay._times(Turns(problem="none"))
    assert (empty["a"], empty["a_median"], empty["ratio"], empty["origin"]) == ([], None, None, None)
