"""The page's section on drawn samples read back: bar, facts, and every cell of the table."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from rpl_core.interfaces.section import SectionRequest
from rpl_pcsampling.contract import SampledKernel
from rpl_pcsampling.report_html import samples_html

THIN = "\N{NARROW NO-BREAK SPACE}"
REASONS = ("waitcnt", "barrier_wait", "alu_dependency", "arbiter_not_win", "other_wait")


def _sampled(rng: random.Random, samples: int, *, few: bool = False) -> dict[str, Any]:
    stalled = rng.randint(1, samples)
    reason = rng.choice(REASONS)
    return {
        "samples": samples,
        "share": rng.uniform(0.2, 0.6),
        "share_low": rng.uniform(0.05, 0.19),
        "share_high": rng.uniform(0.61, 0.9),
        "too_few": few,
        "issued": samples - stalled,
        "stalled": stalled,
        "stalls": {reason: stalled},
        "lanes": rng.uniform(1, 64),
        "waves": rng.uniform(1, 32),
    }


def _stall(rng: random.Random, reason: str, samples: int, share: float) -> dict[str, Any]:
    ends = {"share_low": share * rng.uniform(0.5, 0.9), "share_high": min(1.0, share * rng.uniform(1.1, 1.5))}
    return {"reason": reason, "samples": samples, "share": share, "too_few": False, **ends}


def _kernel(seed: int, *, traced: bool, emulated: bool) -> SampledKernel:
    rng = random.Random(seed)
    lines = [
        {
            **_sampled(rng, rng.randint(1_000, 9_999), few=number == 1),
            "source": f"/home/x/a.cpp:{10 + number}",
            "instructions": 4,
            "executed": rng.randint(10_000, 99_999) if emulated else None,
        }
        for number in range(3)
    ]
    places = [
        {
            **_sampled(rng, rng.randint(10, 9_999)),
            "instruction": f"v_add_f32 v{number}, v1, v2",
            # The innermost frame is named first; the last two have no line.
            "source": f"/home/x/a.cpp:{10 + number % 3} -> /home/x/main.cpp:7" if number < 9 else None,
            "code_object": 1,
            "offset": 8 * rng.randint(0, 500),
            "executed": rng.randint(1_000, 99_999) if emulated else None,
            "trace": {"share": rng.random(), "hits": rng.randint(1_000, 9_999), "latency": 5, "stall": 1}
            if traced
            else None,
        }
        for number in range(11)
    ]
    issue = rng.uniform(0.1, 0.4)
    shares = [issue, *((1 - issue) * part for part in (0.5, 0.3, 0.2))]
    states = [_stall(rng, name, 100 + i, shares[i]) for i, name in enumerate(("issued", *REASONS[:3]))]
    return SampledKernel.model_validate(
        {
            "kernel": "gemm",
            "method": "stochastic",
            "position": "offset",
            "origin": "measured",
            "sampled_every": 65_536,
            "sampled_unit": "cycles",
            "status": "available",
            "samples": rng.randint(10_000, 99_999),
            "dispatches": rng.randint(2, 2_000),
            "ticks": 5,
            "undecoded": 1_234,
            "issued": 5,
            "stalled": 5,
            "issue_share": states[0],
            "stalls": [*states[1:], _stall(rng, "never", 0, 0.0)],
            "instruction_types": {"valu": 30, "matrix": 50, "lds": 20},
            "lanes": rng.uniform(1, 64),
            "waves": rng.uniform(1, 32),
            "lines": lines,
            "places": places,
            "places_left_out": 7,
        }
    )


@pytest.fixture(params=[(0, False, False), (1, True, False), (2, False, True), (3, True, True)])
def shown(request: pytest.FixtureRequest) -> tuple[SampledKernel, str]:
    seed, traced, emulated = request.param
    kernel = _kernel(seed, traced=traced, emulated=emulated)
    return kernel, samples_html([kernel], SectionRequest({}))


def _number(text: str) -> float:
    return float(text.replace(THIN, "").replace(",", ""))


def _shares(text: str) -> list[float]:
    return [float(one) / 100 for one in re.findall(r"([\d.]+) ?%", text)]


def _near(shares: tuple[float | None, ...], digits: int = 1) -> list[Any]:
    assert None not in shares
    return [pytest.approx(share, abs=0.5001 * 10.0 ** -(2 + digits)) for share in shares]


def test_the_bar_holds_all_samples_by_state(shown: tuple[SampledKernel, str]) -> None:
    kernel, page = shown
    assert kernel.issue_share is not None
    states = [kernel.issue_share, *(one for one in kernel.stalls or () if one.samples)]
    rects = re.findall(r'x="([\d.]+)" y="0" width="([\d.]+)" height="34"><title>(.*?): (.*?)</title>', page)
    assert [label for _, _, label, _ in rects] == [one.reason.replace("_", " ") for one in states]
    at = 0.0
    for (x, width, _, text), state in zip(rects, states, strict=True):
        assert float(x) == pytest.approx(at, abs=0.02)
        assert float(width) == pytest.approx(1000 * state.share, abs=0.01)
        assert _shares(text) == _near((state.share, state.share_low, state.share_high))
        at += 1000 * state.share
    assert at == pytest.approx(1000)


def test_facts_and_summary(shown: tuple[SampledKernel, str]) -> None:
    kernel, page = shown
    summary = re.findall(r'<p class="note">(.*?)</p>', page)[0]
    assert summary == (
        f"{kernel.samples:,} samples (stochastic every 65,536 cycles, measured) "
        f"in {kernel.dispatches:,} launches"
    )
    facts = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", page))
    assert _number(facts["Active lanes"].split(" ")[0]) == pytest.approx(kernel.lanes, rel=5e-4)
    assert _number(facts["Waves"].split(" ")[0]) == pytest.approx(kernel.waves, rel=5e-4)
    assert facts["Issued instructions"] == "valu 30 %, matrix 50 %, lds 20 %"
    assert "could not be decoded: 1,234" in page
    # All instructions are shown, so that only those that the document lacks are left out.
    assert re.findall(r'<p class="note">(\d+) more', page) == ["7"]


def test_every_row_of_lines_and_instructions(shown: tuple[SampledKernel, str]) -> None:
    kernel, page = shown
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page)
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page)
    expected: list[Any] = []
    for line in kernel.lines:
        expected.append(line)
        own = [one for one in kernel.places if (one.source or "").startswith(f"{line.source} ")]
        expected += sorted(own, key=lambda one: one.offset or 0)
    unplaced = [one for one in kernel.places if one.source is None]
    expected += [None, *sorted(unplaced, key=lambda one: one.offset or 0)]
    assert len(rows) == len(expected) == 3 + 11 + 1
    for (head, tail), one in zip(rows, expected, strict=True):
        cells = dict(zip(heads[1:], re.findall(r'<td class="n">(.*?)</td>', tail), strict=True))
        text = re.sub("<.*?>|&nbsp;", "", head)
        if one is None:
            assert text == "no source line"
            assert set(cells.values()) == {""}
            continue
        is_line = one in kernel.lines
        assert text == (one.source.rpartition("/")[2] if is_line else one.instruction)
        assert _number(cells["Samples"]) == one.samples
        if one.too_few:
            assert cells["Share"].startswith("too few samples")
            assert _shares(cells["Share"]) == _near((one.share_high,))
        else:
            assert _shares(cells["Share"]) == _near((one.share, one.share_low, one.share_high))
        assert re.fullmatch(r"\d+ %", cells["Issued"])
        assert _shares(cells["Issued"]) == _near((one.issued / one.samples,), 0)
        ((reason, stalled),) = one.stalls.items()
        assert re.fullmatch(rf"{reason} \d+%", cells["Main stall"])
        assert _shares(cells["Main stall"]) == _near((stalled / one.samples,), 0)
        assert _number(cells["Lanes"]) == pytest.approx(one.lanes, rel=5e-4)
        assert _number(cells["Waves"]) == pytest.approx(one.waves, rel=5e-4)
        assert cells["Position"] == ("" if is_line else f"0x{one.offset:x}")
        assert ("Traced hits" in cells) == (kernel.places[0].trace is not None)
        if "Traced hits" in cells and not is_line:
            assert _number(cells["Traced hits"]) == one.trace.hits
            assert _shares(cells["Traced cycles"]) == _near((one.trace.share,))
        assert ("Executed (emulator)" in cells) == (kernel.places[0].executed is not None)
        if "Executed (emulator)" in cells:
            assert _number(cells["Executed (emulator)"]) == one.executed
