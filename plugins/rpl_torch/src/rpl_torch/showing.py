"""What torch.profiler traces add to ``profile.json``, to the reports and to ``explain``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.text import UNKNOWN, duration_ns, percent
from rpl_core.interfaces.document import DocumentSection
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.text import counted, shorten
from rpl_torch.model import TORCH_REPORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import BaseModel

    from rpl_core.interfaces.document import DocumentContext
    from rpl_torch.contracts import TorchKernelPart, TorchPart, TorchShapePart, TorchTimePart

__all__ = ["TorchInProfile", "TorchSection"]

_FIELD = "torch"
_ROWS, _FEW_ROWS = 10, 6
_SHORT, _NAME, _LONG = 34, 44, 56
_NOBODY = "(no operator recorded)"
_OUTSIDE = "(outside of modules)"
_NO_LINE = "(no line recorded)"


class TorchInProfile(DocumentSection):
    name = "torch"
    summary = "time, path share and modelled work per operator, module, Python line and shape; collectives"
    document, field = "profile", _FIELD

    def model(self) -> type[BaseModel]:
        from rpl_analysis.contracts import contract_of
        from rpl_torch.contracts import TorchPart

        return contract_of(TorchPart)

    def draft(self, context: DocumentContext) -> BaseModel | None:
        part = context.facts.get(TORCH_REPORT)
        if part is None:
            return None
        return self.model().model_validate(attrs.asdict(part))


class TorchSection(ReportSection):
    """In the order of decisions: what decides, where time goes, what work it was, who waits."""

    name = "torch"
    summary = "time per operator, module, line and shape, modelled work, idle time and collectives of PyTorch"
    title = "PyTorch"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        part = _part(request)
        return () if part is None else tuple(_blocks(part, request))

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        part = _part(request)
        kernels = () if part is None else [k for k in part.kernels if k.kernel == kernel]
        return tuple(block for kernel_part in kernels for block in _explained(kernel_part))


def _part(request: SectionRequest) -> TorchPart | None:
    profile: Any = request.documents.get("profile")
    content = getattr(profile, "sections", {}).get(_FIELD)
    if not content:
        return None
    from rpl_analysis.contracts import contract_of
    from rpl_torch.contracts import TorchPart

    model: Any = contract_of(TorchPart)
    part: TorchPart = model.model_validate(content)
    return part


def _blocks(part: TorchPart, request: SectionRequest) -> Iterator[Block]:
    if part.deciding is not None:
        deciding = part.deciding
        kernel = request.short_names.get(deciding.kernel, shorten(deciding.kernel, _LONG))
        where = [f"in module {deciding.module}"] if deciding.module else []
        where += [f"at {deciding.line}"] if deciding.line else []
        where += [f"with shapes {shorten(_tensors(deciding.dims), _LONG)}"] if deciding.dims else []
        yield Paragraph(
            f"Most time on the critical path: {kernel} ({duration_ns(deciding.path_ns)}), launched by "
            f"{deciding.operator or 'no operator that is recorded'}{' ' if where else ''}{', '.join(where)}."
        )
    rows = tuple(
        (
            _shown(o.name, _NOBODY),
            str(o.launches),
            duration_ns(o.time_ns),
            percent(o.share),
            percent(o.path_share),
            duration_ns(o.idle_host_ns),
            duration_ns(o.idle_queued_ns + o.idle_unknown_ns),
        )
        for o in part.operators[:_ROWS]
    )
    yield Table(
        ("operator", "launches", "time", "share", "path", "idle, host", "idle, queued"),
        rows,
        right=("launches", "time", "share", "path", "idle, host", "idle, queued"),
    )
    yield from _left_out(len(part.operators) - _ROWS + part.operators_left_out, "operator")
    yield from _modules(part)
    yield from _times("Python line", part.lines, part.lines_reason, _NO_LINE)
    yield from _shapes(part)
    yield from _idle(part)
    yield from _collectives(part)


def _shown(name: str | None, unknown: str) -> str:
    return unknown if name is None else shorten(name, _NAME)


def _left_out(count: int, what: str) -> Iterator[Block]:
    if count > 0:
        yield Paragraph(f"{counted(count, f'more {what}')} in profile.json and below.")


def _modules(part: TorchPart) -> Iterator[Block]:
    if part.modules_reason is not None:
        yield Paragraph(f"Modules are unknown: {part.modules_reason}.")
        return
    modules = sorted(part.modules, key=lambda m: (-m.time_ns, m.name or ""))[:_FEW_ROWS]
    rows = tuple(
        (
            _shown(m.name, _OUTSIDE),
            duration_ns(m.time_ns),
            percent(m.share),
            percent(m.path_share),
            percent(m.inside_share),
        )
        for m in modules
    )
    yield Table(
        ("module", "own time", "share", "path", "with inner"),
        rows,
        right=("own time", "share", "path", "with inner"),
    )


def _times(
    what: str, times: Sequence[TorchTimePart], reason: str | None, unknown: str, rows: int = _FEW_ROWS
) -> Iterator[Block]:
    if reason is not None:
        yield Paragraph(f"{what}s are unknown: {reason}.")
        return
    lines = tuple(
        (
            _end(t.name, unknown),
            str(t.launches),
            duration_ns(t.time_ns),
            percent(t.share),
            percent(t.path_share),
        )
        for t in times[:rows]
    )
    yield Table(
        (what, "launches", "time", "share", "path"), lines, right=("launches", "time", "share", "path")
    )


def _end(name: str | None, unknown: str) -> str:
    """Files say most at their end."""
    if name is None:
        return unknown
    return name if len(name) <= _LONG else f"…{name[1 - _LONG :]}"


def _shapes(part: TorchPart) -> Iterator[Block]:
    if part.shapes_reason is not None:
        yield Paragraph(f"Shapes are unknown: {part.shapes_reason}.")
        return
    modelled = [shape for shape in part.shapes if shape.reason is None][:_FEW_ROWS]
    if modelled:
        yield Table(
            ("operator and shapes", "calls", "time", "TFLOP/s", "GB/s", "of peak"),
            tuple(
                (
                    f"{shorten(s.operator, _NAME)} {shorten(_tensors(s.dims), _NAME)}",
                    str(s.calls),
                    duration_ns(s.time_ns),
                    UNKNOWN if s.gflops is None else f"{s.gflops / 1e3:.4g}",
                    UNKNOWN if s.gbps is None else f"{s.gbps:.4g}",
                    _of_peak(s),
                )
                for s in modelled
            ),
            right=("calls", "time", "TFLOP/s", "GB/s"),
        )
    yield Paragraph(
        f"Work is modelled from shapes, not counted: {percent(part.modelled_share)} of the time has a formula"
        + (f"; without one: {_without(part)}." if part.unmodelled else ".")
    )
    reasons = dict.fromkeys(s.ceiling_reason for s in modelled if s.ceiling_reason)
    if reasons:
        yield Paragraph(f"Shares of peaks are unknown: {'; '.join(reasons)}.")


def _tensors(dims: str) -> str:
    """The shapes without the places of arguments that are no tensors."""
    shapes = json.loads(dims) if dims else []
    return " ".join(str(shape).replace(" ", "") for shape in shapes if shape)


def _of_peak(shape: TorchShapePart) -> str:
    if shape.bound is None:
        return UNKNOWN
    share = shape.compute_share if shape.bound == "compute" else shape.memory_share
    return f"{percent(share)} {shape.bound}{' ABOVE PEAK' if shape.above_peak else ''}"


def _without(part: TorchPart) -> str:
    calls: dict[str, int] = {}
    for call in part.unmodelled:
        calls[call.operator] = calls.get(call.operator, 0) + call.calls
    shown = [f"{shorten(name, _NAME)} ({n})" for name, n in list(calls.items())[:_FEW_ROWS]]
    return ", ".join(shown) + (f" and {len(calls) - _FEW_ROWS} more" if len(calls) > _FEW_ROWS else "")


def _idle(part: TorchPart) -> Iterator[Block]:
    if not part.host_bound:
        return
    yield Table(
        ("host-bound", "begins at", "launches", "GPU idle", "of it", "most of it before"),
        tuple(
            (
                duration_ns(s.length_ns),
                duration_ns(s.begin_ns),
                str(s.launches),
                duration_ns(s.idle_ns),
                percent(s.idle_ns / s.length_ns if s.length_ns else 0.0),
                shorten(s.operator or _NOBODY, _SHORT),
            )
            for s in part.host_bound[:_FEW_ROWS]
        ),
        right=("host-bound", "begins at", "launches", "GPU idle", "of it"),
    )


def _collectives(part: TorchPart) -> Iterator[Block]:
    if not part.collectives:
        return
    yield Table(
        ("collective", "ranks", "calls", "size", "time", "waiting", "bus GB/s", "last rank"),
        tuple(
            (
                c.operation,
                f"{c.ranks_recorded} of {c.group_size or '?'}",
                str(c.operations),
                UNKNOWN if c.message_bytes is None else f"{c.message_bytes:,} B",
                duration_ns(c.duration_ns),
                duration_ns(c.wait_ns),
                UNKNOWN
                if c.bus_gbps is None
                else f"{'>= ' if c.bandwidth_exactness == 'lower_bound' else ''}{c.bus_gbps:.4g}",
                ", ".join(f"{rank} ({n}x)" for rank, n in list(c.last_ranks.items())[:2]) or UNKNOWN,
            )
            for c in part.collectives[:_ROWS]
        ),
        right=("ranks", "calls", "size", "time", "waiting", "bus GB/s"),
    )
    for reason in dict.fromkeys(c.wait_reason for c in part.collectives if c.wait_reason):
        yield Paragraph(f"Waiting is unknown: {reason}.")


def _explained(kernel: TorchKernelPart) -> Iterator[Block]:
    yield from _times("launched by operator", kernel.operators, None, _NOBODY)
    if any(part.name for part in kernel.modules):
        yield from _times("in module", kernel.modules, None, _OUTSIDE)
    if any(part.name for part in kernel.lines):
        yield from _times("at line", kernel.lines, None, _NO_LINE)
