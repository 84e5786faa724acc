"""What ``rpl att`` shows of a trace: the annotated listing, lines of source, a difference, flame graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import attrs

from rpl_analysis.text import shown_names
from rpl_att.analysis import Totals, totals_of, waits
from rpl_att.analysis.att_block import att_block, cost, frames, hot_instructions, hot_lines, instruction
from rpl_att.contract import AttInstruction, AttLoop, AttPart, AttSourceLine, AttWait
from rpl_att.decoded_trace import ThreadTrace
from rpl_att.instruction_class import hottest, waited_for
from rpl_att.reader import EXTRA, ThreadTraceReader
from rpl_att.reading import TraceFolder, place_of, read_source, source_names
from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.ingest import expand
from rpl_core.interfaces.reader import InputSet
from rpl_core.run_directory import MANIFEST, is_run_directory, load_manifest, pass_files, recorded_files
from rpl_core.text import counted, format_table, printable, shorten
from rpl_core.values import frozen

_SHOWN = 5


@frozen(eq=False)
class Chosen:
    """A trace with its block. ``folder`` is where its files are."""

    trace: ThreadTrace
    block: AttPart
    folder: Path

    @property
    def shown_kernel(self) -> str:
        """The kernel's name as reports show it."""
        name = self.block.kernel
        return shown_names([name])[name] if name else "unknown kernel"


def choose_trace(path: Path, kernel: str | None, dispatch: int | None) -> Chosen:
    """The trace in ``path`` that matches; of several dispatches of one kernel that with most instructions."""
    fitting = [c for c in all_traces(path) if _matches(c, kernel, dispatch)]
    if not fitting:
        wanted = [f"kernel {kernel!r}"] * (kernel is not None) + [f"dispatch {dispatch}"] * (
            dispatch is not None
        )
        raise MissingError(
            f"{path} holds no thread trace" + (f" of {' and '.join(wanted)}" if wanted else ""),
            next_step="record one with `rpl profile --deep-analysis`, or name a decoded folder",
        )
    if len({c.block.kernel for c in fitting}) > 1:
        kernels = sorted({c.shown_kernel for c in fitting})
        shown = "; ".join(name[:80] for name in kernels[:_SHOWN])
        raise UsageError(f"{len(kernels)} kernels match: {shown}", next_step="choose one with --kernel NAME")
    return max(fitting, key=lambda c: (c.block.instructions or 0, -(c.block.dispatch_id or 0)))


def all_traces(path: Path) -> Sequence[Chosen]:
    """Every trace in ``path``, read. Raises ``BadDataError`` when there is none."""
    sets = ThreadTraceReader().claim(_files(path))
    if not sets:
        raise BadDataError(
            f"{path} holds no thread trace",
            cause="it was recorded without --deep-analysis, or the decoder wrote nothing",
            next_step="name a run directory or a folder ui_output_agent_*_dispatch_*",
        )
    return [_read(inputs) for inputs in sets]


def _files(path: Path) -> Sequence[Path]:
    if not is_run_directory(path):
        return expand([path])
    manifest = load_manifest(path)
    files = [f for p in manifest.passes if p.role == "thread_trace" for f in pass_files(path, p)]
    for recorded in (file for group in recorded_files(path, manifest) for file in group):
        files += _files(recorded.parent) if recorded.name == MANIFEST else [recorded]
    return files


def _read(inputs: InputSet) -> Chosen:
    (recorded,) = ThreadTraceReader().read(inputs)
    (trace,) = recorded.extras[EXTRA]
    return Chosen(trace, att_block(trace, None), Path(recorded.source.paths[0]).parent)


def _matches(chosen: Chosen, kernel: str | None, dispatch: int | None) -> bool:
    names = (chosen.block.kernel or "", chosen.block.symbol or "", chosen.shown_kernel)
    return (kernel is None or any(kernel in name for name in names)) and (
        dispatch is None or chosen.block.dispatch_id == dispatch
    )


def with_figures(chosen: Chosen) -> Chosen:
    """``chosen`` if it has figures; ``BadDataError`` with the reason if it is empty."""
    if chosen.block.cycles is None or chosen.trace.code is None:
        reason = chosen.block.reason or "it has instructions without their code"
        raise BadDataError(f"the thread trace in {chosen.folder} gives nothing to show: {reason}")
    return chosen


# The annotated ISA listing: what every instruction cost, and what each wait waited for.

_LISTING_COLUMNS = ("LINE", "ADDRESS", "HITS", "LATENCY", "STALL", "IDLE", "SHARE", "ISA")
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
        rows.append(
            (*_instruction_figures(entry), f"{depth.mark(entry.line)}{shorten(entry.isa, _ISA_WIDTH)}")
        )
        rows += [
            ("", "", "", "", "", "", "", f"{depth.mark(entry.line)}    {note}")
            for note in notes.get(entry.line, ())
        ]
    rows += _gap(skipped)
    return format_table(_LISTING_COLUMNS, rows, right=_LISTING_COLUMNS[:-1], width=width)


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


def _instruction_figures(entry: AttInstruction) -> tuple[str, ...]:
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


# Cycles by line of source, with the text of the line where a copy of the file was kept.

_SOURCE_COLUMNS = ("SHARE", "LATENCY", "STALL", "IDLE", "HITS", "LINE", "SOURCE")
_TEXT_WIDTH = 80


def source_lines(chosen: Chosen) -> tuple[AttSourceLine, ...]:
    """All executed lines by descending cycles. Raises ``BadDataError`` without debug information."""
    totals = totals_of(chosen.trace)
    assert totals is not None
    assert chosen.trace.code is not None
    hot = hot_lines(chosen.trace.code, totals, None)
    if not hot:
        raise BadDataError(
            f"the traced code in {chosen.folder} has no line information",
            next_step="build with -g and record again",
        )
    return hot


def source_text(chosen: Chosen, width: int | None = None) -> str:
    """The lines as a table, of at most ``width`` characters."""
    folder = TraceFolder.at(chosen.folder)
    try:
        names = source_names(folder)
    except BadDataError:
        names = {}  # a damaged index of copies costs the texts of lines, not their figures
    texts: dict[str, list[str] | None] = {}
    rows = []
    for line in source_lines(chosen):
        path, number = place_of(line.source)
        if path not in texts:
            texts[path] = read_source(folder, names, path)
        rows.append((*_line_figures(line), shorten(line.source, 60), _line_text(texts[path], number)))
    return format_table(_SOURCE_COLUMNS, rows, right=_SOURCE_COLUMNS[:-2], width=width)


def _line_text(lines: list[str] | None, number: int | None) -> str:
    if lines is None or number is None or not 0 < number <= len(lines):
        return ""
    return printable(shorten(lines[number - 1].strip(), _TEXT_WIDTH))


def _line_figures(line: AttSourceLine) -> tuple[str, ...]:
    return (
        "-" if line.share is None else f"{line.share:.1%}",
        f"{line.latency:,}",
        "-" if line.stall is None else f"{line.stall:,}",
        "-" if line.idle is None else f"{line.idle:,}",
        f"{line.hits:,}",
    )


# Two traces side by side: fractions, and the instructions whose cycles per wave changed most.
#
# Traces of different length are compared per wave. Instructions are matched by their text in order, so that
# inserted and removed ones are seen as such.

_FIGURES = (
    "issue_fraction",
    "stall_fraction",
    "idle_fraction",
    "headroom_fraction",
    "waves_per_simd",
    "avg_memory_latency",
)


@frozen
class ChangedRow:
    """One instruction in both traces, or in one of them; cycles are latency + idle per wave."""

    isa: str
    line_before: int | None
    line_after: int | None
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        return (self.after or 0.0) - (self.before or 0.0)


@frozen
class Difference:
    """``figures``: name -> (before, after); ``rows`` by descending size of the change."""

    figures: dict[str, tuple[float | None, float | None]]
    rows: tuple[ChangedRow, ...]

    def plain(self) -> dict[str, Any]:
        return {
            "figures": {name: {"before": a, "after": b} for name, (a, b) in self.figures.items()},
            "instructions": [attrs.asdict(row) | {"change": row.change} for row in self.rows],
        }


def difference(before: Chosen, after: Chosen) -> Difference:
    """Compare two traces. Raises ``BadDataError`` when their waves can't be counted."""
    for chosen in (before, after):
        if not chosen.block.waves:
            raise BadDataError(
                f"the thread trace in {chosen.folder} can't be compared: it has no wave files",
                next_step="keep the se*_wv*.json files of the decoded folder",
            )
    return Difference(_compared_figures(before.block, after.block), _rows(before, after))


def _compared_figures(before: AttPart, after: AttPart) -> dict[str, tuple[float | None, float | None]]:
    figures = {name: (getattr(before, name), getattr(after, name)) for name in _FIGURES}
    figures["instructions_per_wave"] = (
        _per_wave(before, before.instructions),
        _per_wave(after, after.instructions),
    )
    figures["cycles_per_wave"] = (_per_wave(before, _total(before)), _per_wave(after, _total(after)))
    for name in ("memory_wait_fraction", "barrier_fraction", "pipe_backpressure_fraction"):
        figures[name] = tuple(getattr(p.stall_split, name, None) for p in (before, after))  # type: ignore[assignment]
    return dict(sorted(figures.items()))


def _total(part: AttPart) -> int | None:
    return part.cycles.total if part.cycles else None


def _per_wave(part: AttPart, value: int | None) -> float | None:
    return None if value is None else value / part.waves


def _rows(before: Chosen, after: Chosen) -> tuple[ChangedRow, ...]:
    old = [entry for entry in instructions_of(before) if entry.hits]
    new = [entry for entry in instructions_of(after) if entry.hits]
    matcher = SequenceMatcher(None, [e.isa for e in old], [e.isa for e in new], autojunk=False)
    changed_rows: list[ChangedRow] = []
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            changed_rows += [_row(a, b, before, after) for a, b in zip(old[i1:i2], new[j1:j2], strict=True)]
        else:
            changed_rows += [_row(a, None, before, after) for a in old[i1:i2]]
            changed_rows += [_row(None, b, before, after) for b in new[j1:j2]]
    changed = [row for row in changed_rows if row.change]
    return tuple(sorted(changed, key=lambda r: (-abs(r.change), r.line_before or 0, r.line_after or 0)))


def _row(old: AttInstruction | None, new: AttInstruction | None, before: Chosen, after: Chosen) -> ChangedRow:
    some = old or new
    assert some is not None
    return ChangedRow(
        isa=some.isa,
        line_before=old.line if old else None,
        line_after=new.line if new else None,
        before=_cycles(old, before.block.waves),
        after=_cycles(new, after.block.waves),
    )


def _cycles(entry: AttInstruction | None, waves: int) -> float | None:
    return None if entry is None else (entry.latency + (entry.idle or 0)) / waves


# Cycles by call chain for flame graphs: collapsed stacks and speedscope documents.
#
# A stack is the kernel, then the inline chain of an instruction from the outermost frame inwards, then the
# instruction itself. Weights are cycles (latency + idle) summed over the traced waves; nothing is sampled.

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def stacks(chosen: Chosen) -> tuple[tuple[tuple[str, ...], int], ...]:
    """(frames from the kernel to the instruction, cycles) of every executed row, in order of the code."""
    totals, code = totals_of(chosen.trace), chosen.trace.code
    assert totals is not None
    assert code is not None
    cycles = cost(totals)
    kernel = chosen.block.kernel or "unknown kernel"
    return tuple(
        (
            (kernel, *reversed(frames(code.source[row])), f"{code.isa[row]} [line {code.line[row]}]"),
            int(cycles[row]),
        )
        for row in range(len(code))
        if totals.hit[row] and cycles[row]
    )


def collapsed(chosen: Chosen) -> str:
    """One line per stack, frames separated by semicolons, as flamegraph.pl reads it."""
    lines = (
        f"{';'.join(_frame_text(frame) for frame in stack)} {cycles}\n" for stack, cycles in stacks(chosen)
    )
    return "".join(lines)


def _frame_text(frame: str) -> str:
    """A frame without what separates frames and lines."""
    return " ".join(frame.replace(";", ",").split())


def speedscope(chosen: Chosen) -> dict[str, Any]:
    """A speedscope document with one profile. Cycles have no unit there, so it is "none"."""
    numbers: dict[str, int] = {}
    samples, weights = [], []
    for stack, cycles in stacks(chosen):
        samples.append([numbers.setdefault(frame, len(numbers)) for frame in stack])
        weights.append(cycles)
    return {
        "$schema": _SCHEMA,
        "name": f"{chosen.block.kernel or 'unknown kernel'}, thread trace, shader clocks",
        "exporter": "rpl",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": chosen.block.folder,
                "unit": "none",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
