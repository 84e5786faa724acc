"""Which kernel a trace is of: agent handle and dispatch id, looked up in the profiler's own results.

Never the newest folder and never a name alone. The label rows of the code are the second witness; when the
two disagree, the results are not believed (they are of another run).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import ijson

from rpl_att.reading.code_table import CodeTable
from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.raw_files import files_beside, process_prefix, raw_files_of
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

_TOOL = "rocprofiler-sdk-tool.item"
_DISPATCHES = f"{_TOOL}.buffer_records.kernel_dispatch.item"
_SYMBOLS = f"{_TOOL}.kernel_symbols.item"
#: Suffix that the runtime adds to the symbol of a kernel descriptor.
_DESCRIPTOR = ".kd"
_MAX_CSV_ROWS = 10_000_000


@frozen
class TracedKernel:
    """``name`` as displayed, ``symbol`` mangled, ``witness`` what says so; all ``None`` if unknown.

    ``tied``: the witness is of the traced run, by agent handle or by the process in its file name.
    """

    name: str | None = None
    symbol: str | None = None
    witness: str | None = None
    problem: str | None = None
    tied: bool = True


def find_kernel(folder: TraceFolder, code: CodeTable | None, symbols: Mapping[int, str]) -> TracedKernel:
    """The kernel of the dispatch that ``folder`` holds; ``symbols`` are those of its occupancy events."""
    label = _label(code) or _only_symbol(symbols) or TracedKernel()
    refused: list[str] = []
    for candidate in _from_results(folder, refused):
        if _agree(candidate, label) and (candidate.tied or _same_function(candidate, label)):
            return attrs.evolve(candidate, symbol=candidate.symbol or label.symbol)
        named = candidate.symbol or candidate.name
        fact = f"{candidate.witness} names {named}"
        if _agree(candidate, label):
            refused.append(f"{fact}, but nothing ties that file to this trace")
        else:
            refused.append(f"{fact}, the traced code is of {label.symbol}")
    return attrs.evolve(label, problem="; ".join(refused) or None)


def _agree(kernel: TracedKernel, label: TracedKernel) -> bool:
    """Whether both may be the same kernel: by symbol, by name, or because one of them has no comparable name.

    A label without debug information has a mangled name only, which says nothing about a demangled one.
    """
    if label.symbol is None or label.symbol in (kernel.symbol, kernel.name) or label.name == kernel.name:
        return True
    return kernel.symbol is None and label.name == label.symbol


def _same_function(kernel: TracedKernel, label: TracedKernel) -> bool:
    """Whether the label names the kernel of a file that may be of any run: both names say the same function.

    Of a mangled label it is enough that it holds the function's own name with its length in front.
    """
    if label.symbol is None or kernel.name is None:
        return False
    if kernel.name in (label.symbol, label.name):
        return True
    own = re.split(r"[<(\[]", kernel.name, maxsplit=1)[0].split()[-1:]
    function = own[0].split("::")[-1] if own else ""
    return bool(function) and f"{len(function)}{function}" in label.symbol


def _only_symbol(symbols: Mapping[int, str]) -> TracedKernel | None:
    """The one symbol that was resolved; "3 / 0x1700" and id 0 are no symbols.

    See docs/reference/thread-trace.md, 2.7.
    """
    named = {symbol for number, symbol in symbols.items() if number and symbol and " / 0x" not in symbol}
    if len(named) != 1:
        return None
    (symbol,) = named
    return TracedKernel(symbol, symbol, "symbol in the occupancy events")


def _label(code: CodeTable | None) -> TracedKernel | None:
    """The label row with the most cycles behind it: symbol from its text, name from its source column."""
    if code is None:
        return None
    labels = [row for row in code.labels if code.isa[row] != "; Begin ATT ASM"]
    if not labels:
        return None
    ends = [*labels[1:], len(code)]
    cycles = [int(code.latency[a:b].sum()) for a, b in zip(labels, ends, strict=True)]
    best = labels[cycles.index(max(cycles))]
    symbol = code.isa[best].removeprefix("; ").strip()
    return TracedKernel(code.source[best] or symbol, symbol, "label in the traced code")


def _from_results(folder: TraceFolder, refused: list[str]) -> Iterator[TracedKernel]:
    if folder.dispatch_id is None:
        return
    for path in files_beside(folder.path.resolve().parent):
        try:
            if path.name.endswith("_results.json"):
                yield from _from_json(path, folder)
            elif path.name.endswith("_kernel_trace.csv"):
                yield from _from_csv(path, folder)
        except (BadDataError, OSError, UnicodeDecodeError, csv.Error) as error:
            refused.append(f"{path.name} can't be read: {error}")


def _from_json(path: Path, folder: TraceFolder) -> Iterator[TracedKernel]:
    """Streamed: a results file may be large. Agent handle and dispatch id must both agree."""
    kernel_id = None
    for record in _items(path, _DISPATCHES):
        info = record.get("dispatch_info") if isinstance(record, dict) else None
        if not isinstance(info, dict) or info.get("dispatch_id") != folder.dispatch_id:
            continue
        agent = info.get("agent_id")
        if isinstance(agent, dict) and agent.get("handle") == folder.agent_handle:
            kernel_id = info.get("kernel_id")
    if kernel_id is None:
        return
    for symbol in _items(path, _SYMBOLS):
        if isinstance(symbol, dict) and symbol.get("kernel_id") == kernel_id:
            yield _named(symbol, path)


def _named(symbol: dict[str, Any], path: Path) -> TracedKernel:
    mangled = str(symbol.get("kernel_name") or "").removesuffix(_DESCRIPTOR) or None
    shown = symbol.get("formatted_kernel_name") or symbol.get("demangled_kernel_name") or mangled
    return TracedKernel(
        str(shown).removesuffix(_DESCRIPTOR) if shown else None,
        mangled,
        f"agent handle and dispatch id in {path.name}",
    )


def _items(path: Path, prefix: str) -> Iterator[Any]:
    with path.open("rb") as stream:
        try:
            yield from ijson.items(stream, prefix, use_float=True)
        except (ijson.JSONError, ValueError, RecursionError) as error:
            raise BadDataError(f"{path.name} is not valid JSON: {error}") from None


def _from_csv(path: Path, folder: TraceFolder) -> Iterator[TracedKernel]:
    """A kernel trace has no agent handle; dispatch ids count over all agents of the process.

    It is of the traced run if its name begins as that of the raw traces does.
    """
    prefixes = {process_prefix(raw.name) for raw in raw_files_of(folder)} - {""}
    tied = any(path.name.startswith(prefix) for prefix in prefixes)
    with path.open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream)):
            if number > _MAX_CSV_ROWS:
                return
            if row.get("Dispatch_Id") == str(folder.dispatch_id) and row.get("Kernel_Name"):
                name = row["Kernel_Name"].removesuffix(_DESCRIPTOR)
                yield TracedKernel(name, None, f"dispatch id in {path.name}", tied=tied)
