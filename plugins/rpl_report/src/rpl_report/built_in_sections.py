"""The sections that rpl-report brings by its own hook: next steps, speed of light, ranges, GPUs and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_analysis.text import UNKNOWN, duration_ns, marked, percent, with_unit
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.text import counted, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.analysis import NextStepPart
    from rpl_analysis.contracts.profile import (
        CollectivePart,
        CollectiveSharePart,
        GpuTimePart,
        PhasePart,
        PhasesPart,
        RanksPart,
        RankTimePart,
    )
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, LevelPart, RooflineDocument, TypeWorkPart
    from rpl_core.model.metric import Metric


class AdviceSection(ReportSection):
    name = "next-steps"
    summary = "what to do next, in order of expected gain, and what would confirm it"
    title = "Next steps"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        """Nothing of its own: in reports each step stands in the verdict, beside what it is for."""
        _ = request
        return ()

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        analysis: Any = request.documents.get("analysis")
        label = next((entry for entry in getattr(analysis, "kernels", ()) if entry.kernel == kernel), None)
        steps = label.next_steps if label is not None else ()
        return tuple(block for number, step in enumerate(steps, 1) for block in _explained(number, step))


def _command(step: NextStepPart) -> str:
    return f"Run: {(step.command or '').replace('{command}', 'COMMAND')}"


def _explained(number: int, step: NextStepPart) -> Iterator[Block]:
    yield Paragraph(f"{number}. {step.text}")
    for each in step.confirm:
        from_counters = f" (counters {', '.join(each.counters)})" if each.counters else ""
        if each.value is None:
            yield Paragraph(f"   would confirm it: {each.quantity}, not recorded{from_counters}")
        else:
            figure = with_unit(each.value, each.unit, each.exactness, each.upper)
            yield Paragraph(f"   confirmed by: {each.quantity} {figure}{from_counters}")
    if step.command:
        yield Paragraph(f"   {_command(step)}")
    yield Paragraph(f"   source: {step.source}")


_PHASE_NAME_WIDTH = 26
#: Rows of the table; profile.json holds more.
_PHASES_SHOWN = 12
_PHASE_COLUMNS = (
    "range",
    "kernel time",
    "share",
    "dominant kernel",
    "of it",
    "kernels",
    "times",
    "host time",
)
_RIGHT = tuple(column for column in _PHASE_COLUMNS if column not in ("range", "dominant kernel"))


class PhasesSection(ReportSection):
    """Nothing where no range was recorded."""

    name = "phases"
    summary = "GPU time, share and dominant kernel of each roctx range"
    title = "Phases"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        profile: Any = request.documents.get("profile")
        phases: PhasesPart | None = getattr(profile, "phases", None)
        if phases is None:
            return ()
        placed = "that were launched inside" if phases.by == "launch" else "that began meanwhile"
        rows = tuple(_row(phase, request) for phase in phases.phases[:_PHASES_SHOWN])
        said = f"Ranges that the application marked, with the kernels {placed}; nested ranges share theirs."
        rest = len(phases.phases) - len(rows) + phases.phases_left_out
        more = f" {rest} more in profile.json." if rest else ""
        outside = f"Outside of all: {duration_ns(phases.outside_ns)} of kernels.{more}"
        return Paragraph(said), Table(_PHASE_COLUMNS, rows, right=_RIGHT), Paragraph(outside)


def _row(phase: PhasePart, request: SectionRequest) -> tuple[str, ...]:
    kernel = phase.dominant_kernel
    return (
        shorten(phase.name, _PHASE_NAME_WIDTH),
        duration_ns(phase.kernel_ns),
        percent(phase.share),
        UNKNOWN if kernel is None else shorten(request.short_names.get(kernel, kernel), _PHASE_NAME_WIDTH),
        percent(phase.dominant_share),
        f"{phase.launches:,}",
        f"{phase.ranges:,}",
        duration_ns(phase.host_ns),
    )


_RANK_NAME_WIDTH = 48
#: Rows of each table; profile.json holds more.
_SHOWN_RANKS, _SHOWN_KERNELS, _SHOWN_COLLECTIVES = 16, 5, 5
_MARKS = {"lower_bound": ">=", "estimate": "~"}


class RanksSection(ReportSection):
    """Nothing for one GPU of one process that runs no collective."""

    name = "ranks"
    summary = "time of each GPU and rank, imbalance, collectives and who waits for whom"
    title = "GPUs and ranks"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        ranks = _ranks_of(request)
        if ranks is None or (len(ranks.ranks) < 2 and not ranks.collectives):
            return ()
        return (*_ranks(ranks), *_imbalances(ranks, request), *_collectives(ranks, request))


def _ranks_of(request: SectionRequest) -> RanksPart | None:
    profile: Any = request.documents.get("profile")
    ranks: RanksPart | None = getattr(profile, "ranks", None)
    return ranks


def _ranks(told: RanksPart) -> Iterator[Block]:
    makespan = (
        f"in a makespan of {duration_ns(told.makespan_ns)}"
        if told.makespan_ns is not None
        else "on machines whose clocks differ"
    )
    ranks = counted(len(told.ranks) + told.ranks_left_out, "rank")
    gpus = counted(len(told.gpus) + told.gpus_left_out, "GPU")
    yield Paragraph(f"{ranks} on {gpus}: {duration_ns(told.runtime_ns)} of kernels {makespan}.")
    columns = ("rank", "GPU", "kernels", "makespan")
    communicating = ("collectives", "waiting", "comes last", "beside kernels") if told.collectives else ()
    columns = (*columns, *communicating, "GPU busy", "at once", "process")
    rows = tuple(
        (*_rank(rank), *(_communication(told, rank) if communicating else ()), *_load(told, rank))
        for rank in told.ranks[:_SHOWN_RANKS]
    )
    yield Table(columns, rows, right=columns)
    rest = len(told.ranks) - len(rows) + told.ranks_left_out
    if rest:
        yield Paragraph(f"({counted(rest, 'more rank')} in profile.json)")


def _rank(rank: RankTimePart) -> tuple[str, ...]:
    agent = UNKNOWN if rank.agent is None else str(rank.agent)
    return str(rank.rank), agent, duration_ns(rank.kernel_ns), duration_ns(rank.makespan_ns)


def _load(ranks: RanksPart, rank: RankTimePart) -> tuple[str, ...]:
    gpu = _gpu_of(ranks, rank)
    busy = gpu.busy_ns / gpu.makespan_ns if gpu and gpu.makespan_ns else None
    at_once = gpu.concurrency if gpu else None
    return percent(busy), UNKNOWN if at_once is None else f"{at_once:.2f}", str(rank.process)


def _gpu_of(ranks: RanksPart, rank: RankTimePart) -> GpuTimePart | None:
    return next((gpu for gpu in ranks.gpus if (gpu.node, gpu.agent) == (rank.node, rank.agent)), None)


def _communication(ranks: RanksPart, rank: RankTimePart) -> tuple[str, ...]:
    """Time in collectives, the part of it hidden behind other kernels of the GPU, and who waited."""
    gpu = _gpu_of(ranks, rank)
    hidden = gpu.overlapped_ns / gpu.communication_ns if gpu and gpu.communication_ns else None
    operations = sum(share.calls for c in ranks.collectives if c.exactness for share in _of(c, rank.rank))
    last = UNKNOWN if rank.last_arrivals is None else f"{rank.last_arrivals:,} of {operations:,}"
    return duration_ns(rank.collective_ns), _wait(ranks, rank), last, percent(hidden)


def _of(collective: CollectivePart, rank: int) -> list[CollectiveSharePart]:
    return [share for share in collective.shares if share.rank == rank]


def _wait(ranks: RanksPart, rank: RankTimePart) -> str:
    if rank.wait_ns is None:
        return UNKNOWN
    exactness = {c.exactness for c in ranks.collectives if c.exactness and _of(c, rank.rank)}
    mark = "~" if "estimate" in exactness else ">="
    return f"{mark}{duration_ns(rank.wait_ns)}"


def _imbalances(ranks: RanksPart, request: SectionRequest) -> Iterator[Block]:
    shown = ranks.kernels[:_SHOWN_KERNELS]
    if shown:
        rows = tuple(
            (
                _short(kernel.name, request),
                duration_ns(kernel.mean_ns),
                duration_ns(kernel.max_ns),
                str(kernel.slowest_rank),
                f"+{percent(kernel.imbalance)}",
            )
            for kernel in shown
        )
        columns = ("most uneven kernel", "mean", "slowest", "rank", "above mean")
        yield Table(columns, rows, right=columns[1:])


def _collectives(ranks: RanksPart, request: SectionRequest) -> Iterator[Block]:
    shown = ranks.collectives[:_SHOWN_COLLECTIVES]
    if not shown:
        return
    rows = tuple(
        (
            _short(each.name, request),
            each.operation.replace("_", " "),
            f"{max(share.calls for share in each.shares):,}",
            duration_ns(min(share.total_ns for share in each.shares)),
            duration_ns(max(share.total_ns for share in each.shares)),
            _longest_wait(each),
        )
        for each in shown
    )
    columns = ("collective", "operation", "calls", "shortest rank", "longest rank", "longest wait")
    yield Table(columns, rows, right=columns[2:])
    for each in shown:
        if each.wait_reason is not None:
            yield Paragraph(f"Waits in {_short(each.name, request)} are unknown: {each.wait_reason}.")


def _longest_wait(each: CollectivePart) -> str:
    waits = [share.wait_ns for share in each.shares if share.wait_ns is not None]
    return f"{_MARKS.get(each.exactness or '', '')}{duration_ns(max(waits))}" if waits else UNKNOWN


def _short(name: str, request: SectionRequest) -> str:
    return request.short_names.get(name) or shorten(name, _RANK_NAME_WIDTH)


#: Kernels that the page draws, those with most time; ``rpl explain`` draws any.
_SHOWN = 3
_NAME_WIDTH = 60
#: From the cores to memory, with the hit rate of each cache.
_LEVELS = (("lds", "LDS", None), ("vl1d", "vL1D", "vl1d_hit_rate"), ("l2", "L2", "l2_hit_rate"))
_MEMORY = ("hbm", "fabric/HBM", None)
_PIPES = {"valu": "vector", "valu_packed": "packed vector", "mfma": "matrix"}
_COLUMNS = ("unit", "of ceiling", "", "rate", "ceiling", "hit rate", "per launch")
_BAR = 20
_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


class SpeedOfLightSection(ReportSection):
    """``>=`` marks a lower bound and ``~`` an estimate, as in all tables."""

    name = "speed-of-light"
    summary = "compute units by data type, LDS, caches and memory of each kernel beside their ceilings"
    title = "Speed of light"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        document = _document(request)
        if document is None:
            return ()
        return tuple(
            block for kernel in document.kernels[:_SHOWN] for block in _picture(kernel, document, request)
        )

    def text(self, request: SectionRequest) -> str | None:
        """The kernel with most time; `rpl explain` and the page have the others."""
        from rpl_report.documents import AnsweredSection
        from rpl_report.text import section_text

        document = _document(request)
        drawn = (
            tuple(_picture(document.kernels[0], document, request)) if document and document.kernels else ()
        )
        return (
            section_text(AnsweredSection(self.name, self.title, blocks=drawn), request.width)
            if drawn
            else None
        )

    def html(self, request: SectionRequest) -> str | None:
        """Nothing of its own: the page draws the units as boxes, beside its table of kernels."""
        _ = request
        return ""

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        document = _document(request)
        entries = [entry for entry in document.kernels if entry.name == kernel] if document else []
        return tuple(block for entry in entries if document for block in _picture(entry, document, request))


def _document(request: SectionRequest) -> RooflineDocument | None:
    document: Any = request.documents.get("roofline")
    return document if document is not None and document.status == "available" else None


def _picture(
    kernel: KernelRooflineDoc, document: RooflineDocument, request: SectionRequest
) -> Iterator[Block]:
    rows = [*_arithmetic(kernel, document), *_hierarchy(kernel)]
    if rows:
        name = request.short_names.get(kernel.name) or shorten(kernel.name, _NAME_WIDTH)
        yield Paragraph(f"{name}:")
        yield Table(_COLUMNS, tuple(rows), right=("of ceiling", "rate", "ceiling", "per launch", "hit rate"))


def _arithmetic(kernel: KernelRooflineDoc, document: RooflineDocument) -> Iterator[tuple[str, ...]]:
    peaks = {(c.data_type, c.pipe): c.peak_gflops for c in document.ceilings.compute if c.origin == "spec"}
    if not kernel.types:
        known = kernel.flops.value is not None
        yield ("compute units", "0.0%" if known else UNKNOWN, "", "0" if known else UNKNOWN, "", "", "")
    for work in kernel.types:
        yield _unit(f"{work.data_type} {_PIPES.get(work.pipe, work.pipe)}", work, peaks)


def _unit(title: str, work: TypeWorkPart, peaks: dict[tuple[str, Any], float]) -> tuple[str, ...]:
    peak = peaks.get((work.data_type, work.pipe))
    share, drawn = _share(work.gops, peak)
    ceiling = UNKNOWN if peak is None else f"{peak:,.0f} GOP/s"
    return (title, share, drawn, _rate(work.gops, "GOP/s"), ceiling, "", _amount(work.operations, "OP"))


def _hierarchy(kernel: KernelRooflineDoc) -> Iterator[tuple[str, ...]]:
    levels = {level.level: level for level in kernel.levels}
    for name, title, cache in (*_LEVELS, _MEMORY):
        if name in levels and levels[name].bytes.value != 0:
            yield _level(title, levels[name], kernel.caches.get(cache or ""))


def _level(title: str, level: LevelPart, hits: Metric | None) -> tuple[str, ...]:
    peak = level.spec_gbps or level.measured_gbps or level.published_gbps
    share, drawn = _share(level.achieved_gbps, peak)
    ceiling = UNKNOWN if peak is None else f"{peak:,.0f} GB/s"
    hit_rate = "" if hits is None else percent(hits.value)
    rate, moved = _rate(level.achieved_gbps, "GB/s"), _amount(level.bytes, "B")
    return title, share, drawn, rate, ceiling, hit_rate, moved


def _share(rate: Metric, peak: float | None) -> tuple[str, str]:
    """In percent with its exactness, and as a bar; a share above its ceiling is no share, and says so."""
    if rate.value is None or not peak:
        return UNKNOWN, ""
    share = rate.value / peak
    mark = marked(1, rate.exactness)[:-1]
    if rate.upper is not None:
        full = min(round(share * _BAR), _BAR)
        return f"{100 * share:.1f} to {percent(rate.upper / peak)}", "#" * full + "." * (_BAR - full)
    if share > 1:
        return f"{mark}{percent(share)}", "above its ceiling"
    full = round(share * _BAR)
    return f"{mark}{percent(share)}", "#" * full + "." * (_BAR - full)


def _rate(metric: Metric, unit: str) -> str:
    return (
        UNKNOWN if metric.value is None else f"{marked(metric.value, metric.exactness, metric.upper)} {unit}"
    )


def _amount(metric: Metric, unit: str) -> str:
    """With the prefix that leaves few digits."""
    if metric.value is None:
        return UNKNOWN
    prefix, size = next(((p, s) for p, s in _PREFIXES if metric.value >= s), ("", 1.0))
    upper = None if metric.upper is None else metric.upper / size
    return f"{marked(metric.value / size, metric.exactness, upper)} {prefix}{unit}"
