"""The annotated ISA listing: what every instruction cost, and what each wait waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rpl_att.analysis.hot_spots import hot_instructions, instruction
from rpl_att.analysis.next_step import hottest, waited_for
from rpl_att.analysis.totals import Totals, totals_of
from rpl_att.analysis.waits import waits
from rpl_att.contract import AttInstruction, AttLoop, AttWait
from rpl_att.showing.choose import Chosen
from rpl_core.text.safety import printable, shorten
from rpl_core.text.table import counted, format_table

_COLUMNS = ("LINE", "ADDRESS", "HITS", "LATENCY", "STALL", "IDLE", "SHARE", "ISA")
_ISA_WIDTH = 76
_SHOWN_PRODUCERS = 2
_SHOWN_HOT = 3


def instructions_of(chosen: Chosen) -> tuple[AttInstruction, ...]:
    """All rows of the code, in order; labels excepted."""
    code, totals = chosen.trace.code, _totals(chosen)
    assert code is not None
    return tuple(instruction(code, totals, r) for r in range(len(code)) if not code.isa[r].startswith("; "))


def waits_of(chosen: Chosen) -> tuple[AttWait, ...]:
    """All waits that were executed; empty without wave files."""
    code, traced = chosen.trace.code, chosen.trace.waves
    if code is None or traced is None:
        return ()
    return waits(code, _totals(chosen), traced.waits, None)


def ordered_instructions(
    chosen: Chosen, order: str = "line", top: int | None = None
) -> tuple[AttInstruction, ...]:
    """All rows by line, or those that were executed by ``order``, largest first; the first ``top``.

    By cycles the start-up of waves is no instruction's cost.
    """
    code = chosen.trace.code
    if order == "cycles" and code is not None:
        return hot_instructions(code, _totals(chosen), top or len(code))
    entries = instructions_of(chosen)
    if order != "line":
        executed = (entry for entry in entries if entry.hits)
        entries = tuple(sorted(executed, key=lambda entry: (-_KEYS[order](entry), entry.line)))
    return entries[:top]


_KEYS: Mapping[str, Callable[[AttInstruction], int]] = {
    "stall": lambda entry: entry.stall or 0,
    "latency": lambda entry: entry.latency,
    "hits": lambda entry: entry.hits,
}


def listing_text(
    chosen: Chosen, order: str = "line", top: int | None = None, width: int | None = None
) -> str:
    """The listing as a table of at most ``width`` characters; stretches that nobody executed are one line."""
    notes = {wait.line: _wait_note(wait) for wait in waits_of(chosen)}
    depth = _LoopDepth(chosen.block.loops if order == "line" else ())
    rows: list[tuple[str, ...]] = []
    skipped = 0
    for entry in ordered_instructions(chosen, order, top):
        if not entry.hits:
            skipped += 1
            continue
        rows += _gap(skipped)
        skipped = 0
        rows.append((*_figures(entry), f"{depth.mark(entry.line)}{shorten(entry.isa, _ISA_WIDTH)}"))
        rows += [
            ("", "", "", "", "", "", "", f"{depth.mark(entry.line)}    {note}")
            for note in notes.get(entry.line, ())
        ]
    rows += _gap(skipped)
    return format_table(_COLUMNS, rows, right=_COLUMNS[:-1], width=width)


def hot_text(chosen: Chosen, width: int | None = None) -> str:
    """The hottest instructions, what each waited for, and what to do about it; the empty text without any."""
    rows = [
        (
            "-" if row.share is None else f"{row.share:.1%}",
            str(row.line),
            printable(shorten(row.isa, _ISA_WIDTH)),
            printable(shorten(waited_for(wait) or row.source or "", _ISA_WIDTH)),
            step,
        )
        for row, wait, step in hottest(chosen.block, _SHOWN_HOT)
    ]
    columns = ("SHARE", "LINE", "HOT INSTRUCTION", "WAITED FOR, OR SOURCE", "NEXT STEP")
    return format_table(columns, rows, right=columns[:2], width=width) if rows else ""


def _totals(chosen: Chosen) -> Totals:
    totals = totals_of(chosen.trace)
    assert totals is not None
    return totals


def _gap(skipped: int) -> list[tuple[str, ...]]:
    if not skipped:
        return []
    return [
        ("", "", "", "", "", "", "", f"... {counted(skipped, 'instruction')} that no traced wave executed")
    ]


def _figures(entry: AttInstruction) -> tuple[str, ...]:
    return (
        str(entry.line),
        f"{entry.vaddr:#x}",
        f"{entry.hits:,}",
        f"{entry.latency:,}",
        _known(entry.stall),
        _known(entry.idle),
        "-" if entry.share is None else f"{entry.share:.1%}",
    )


def _known(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _wait_note(wait: AttWait) -> list[str]:
    """The operations that decided the wait, most cycles first."""
    deciding = [p for p in wait.producers if p.deciding_cycles][:_SHOWN_PRODUCERS]
    rest = len(wait.producers) - len(deciding)
    notes = [
        f"waited {p.deciding_cycles:,} cycles for line {p.line}: {printable(shorten(p.isa, 48))}"
        for p in deciding
    ]
    if rest > 0 and notes:
        notes[-1] += f" (and {rest} older)"
    return notes


class _LoopDepth:
    """Indentation that shows how deep in loops a line is."""

    def __init__(self, loops: tuple[AttLoop, ...]) -> None:
        self._loops = loops

    def mark(self, line: int) -> str:
        return "| " * sum(loop.first_line <= line <= loop.last_line for loop in self._loops)


def summary_lines(chosen: Chosen) -> Iterator[str]:
    """The head of the listing: what was traced, and what is doubtful about it."""
    block = chosen.block
    yield f"kernel      {chosen.shown_kernel}  [{block.joined_by or 'no witness'}]"
    where = ", ".join(block.compute_units) or "compute unit unknown"
    many = f"{block.instructions:,}" if block.instructions is not None else ""
    instructions = counted(block.instructions, "instruction", shown=many)
    yield f"traced      {counted(block.waves, 'wave')} on {where}; {instructions}; level {block.level}"
    shares = [
        f"{name} {value:.1%}"
        for name, value in (
            ("issue", block.issue_fraction),
            ("stall", block.stall_fraction),
            ("idle", block.idle_fraction),
        )
        if value is not None
    ]
    if shares:
        yield f"wave time   {', '.join(shares)}"
    for counter, latency in block.memory_latency.items():
        yield (
            f"latency     {counter}: mean {latency.mean:,.0f}, median {latency.median:,.0f}, "
            f"max {latency.max:,} cycles ({counted(latency.samples, 'wait')})"
        )
    for field, why in sorted(block.unavailable.items()):
        yield f"unknown     {field}: {printable(why)}"
    if block.reason:
        yield f"partial     {printable(block.reason)}"
    for check in block.checks:
        if check.holds is False:
            yield f"doubtful    {check.name}: {check.detail}"
