"""The verdict at the beginning of every report: what decides, what it would bring, why, what to do next.

One place makes the sentences, from figures that the documents hold; the text report prints the first of them
in at most ten lines, the page numbers all. Sizes are what the run saves if the subject takes half its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.execution_graph.results.forecasts import most_gain_ns
from rpl_analysis.text import between, duration_ns, percent, with_unit
from rpl_core.text import counted, readable
from rpl_core.values import frozen
from rpl_report.documents import device_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rpl_analysis.contracts.analysis import (
        AnalysisDocument,
        ConfirmationPart,
        KernelAnalysis,
        NextStepPart,
        PriorityPart,
    )
    from rpl_analysis.contracts.dag import ClockDomainPart, DagDocument, ForecastPart, SpeedupForecastPart
    from rpl_analysis.contracts.profile import ProfileDocument, RanksPart
    from rpl_core.interfaces.section import Claim
    from rpl_report.documents import ReportDocuments

    #: How a kernel or a copy direction is called: from its recorded name and its kind.
    Naming = Callable[[str, str], str]

__all__ = [
    "NOTEWORTHY",
    "TRACED_COMMAND",
    "Entry",
    "Verdict",
    "dominance_matters",
    "is_notable",
    "most_speedup",
    "verdict_of",
]

#: A kernel with at least this share of the time and less than that of the path is worth a sentence (chosen).
_MUCH_TIME = 0.05
_LITTLE_PATH = 0.01
#: Idle time from this share of the makespan on is worth a sentence (chosen).
_MUCH_IDLE = 0.05
_MOST_HIDDEN = 3
#: What cannot make the application this much faster is none (chosen).
NOTEWORTHY = 1.005
#: Subjects of next steps beyond those that have an entry (chosen).
_MORE_SUBJECTS = 3
_IDLE, _COPIES, _WAITING = "GPU idle", "copies", "ranks waiting"
_ORIGINS = {
    "synthetic": "Synthetic: written by a test or a demonstration, no measurement.",
    "modelled": "Modelled: computed by an emulator or a formula, not measured on hardware.",
}
#: By this code a collector says what the model knows that its figures are from.
_OF_MODEL = "collect.emulated"
_UNTIMED_STEP = "Record a kernel trace: without one no kernel is timed and no gain is known."
_UNTIMED_COMMAND = "rpl profile -- COMMAND"
_LONE_STEP = "Record the other ranks, too: a collective waits for the last of them, and one rank can't tell."
_LONE_COMMAND = "rpl analyze --ranks RECORDING RECORDING ..."
TRACED_COMMAND = "rpl profile --deep-analysis -- COMMAND"


@frozen
class Entry:
    """One subject. ``head`` says what decides, ``brings`` what it would bring, ``why`` what is behind it.

    ``subject`` is what next steps are listed under, ``section`` the part of the page that shows more.
    ``same_as`` is the number of an earlier entry whose step holds here, too.
    """

    head: str
    brings: str = ""
    why: str = ""
    section: str = "what-if"
    subject: str = ""
    step: str = ""
    confirmed: str = ""
    command: str = ""
    same_as: int | None = None

    def next_step(self) -> str:
        """The step in one sentence; the empty text without one."""
        return f"Next: as for {self.same_as}." if self.same_as else f"Next: {self.step}" if self.step else ""


@frozen
class Verdict:
    """``caution`` is set where the figures are no measurement; ``basis`` says what they rest on."""

    entries: tuple[Entry, ...]
    caution: str
    basis: str


def verdict_of(documents: ReportDocuments, called: Naming, claims: Iterable[Claim] = ()) -> Verdict:
    """``called`` names kernels and copies, ``claims`` are what sections of plugins add to it."""
    profile, dag, analysis = documents.profile, documents.dag, documents.analysis
    claimed = tuple(claims)
    entries = _with_claims(_entries(profile, dag, analysis, called), claimed)
    advised = _advised(_lone_collectives(entries, profile), analysis)
    return Verdict(tuple(advised), _caution(profile), _basis(documents))


def _caution(profile: ProfileDocument) -> str:
    """What the collector says its model knows stands where the figures are read first."""
    origin = profile.provenance.origin if profile.provenance else None
    told = next((noticed.fact for noticed in profile.diagnostics if noticed.code == _OF_MODEL), None)
    if origin == "modelled" and told:
        return f"Modelled: {readable(told, 300)}."
    return _ORIGINS.get(origin or "", "")


def _entries(
    profile: ProfileDocument, dag: DagDocument, analysis: AnalysisDocument, called: Naming
) -> list[Entry]:
    """What can be gained by its size, the ranks behind the first, then what else one should know."""
    if dag.status != "available":
        ranked = list(_of_most_time(profile, dag, analysis, called)) or list(_without_kernels(profile, dag))
        return [*ranked, *_ranks(profile, called)]
    best = (_idle(dag), _best_gain(dag, profile, analysis, called, "copy"))
    known = [gain for gain in (*best, _best_gain(dag, profile, analysis, called, "kernel")) if gain]
    subjects = {entry.subject for _, entry in known} | {_WAITING}
    further = (p for p in analysis.next_steps if _notable(p, dag) and not _is_listed(p, subjects))
    known += [(_most(p), _further(p, dag, profile, analysis, called)) for p in further][:_MORE_SUBJECTS]
    gained = [entry for _, entry in sorted(known, key=lambda gain: -gain[0])]
    ranges = [_ranges(p, dag) for p in analysis.next_steps if p.share is None]
    # Right behind the first gain that is a range: idle time is none.
    place = 2 if gained[:1] and gained[0].subject == _IDLE else 1
    gained[place:place] = ranges
    others = (_shift(dag, called), _hidden(profile, dag, called))
    known_too = [entry for entry in others if entry is not None]
    return [*gained[:1], *_ranks(profile, called), *gained[1:], *known_too]


def _with_claims(entries: Sequence[Entry], claims: Sequence[Claim]) -> list[Entry]:
    """What a trace found out about a kernel stands in its entry; of other kernels in one of its own."""
    of_kernel = {claim.kernel: claim for claim in reversed(claims) if claim.kernel}
    told = [
        attrs.evolve(entry, why=claim.text, step=claim.step, command=claim.command)
        if (claim := of_kernel.get(entry.subject)) is not None
        else entry
        for entry in entries
    ]
    subjects = {entry.subject for entry in entries}
    claimed = [
        Entry(claim.head, why=claim.text, section="thread-traces", step=claim.step, command=claim.command)
        for claim in claims
        if claim.kernel not in subjects
    ]
    return [*claimed, *told] if not any(entry.subject for entry in entries) else [*told, *claimed]


def _lone_collectives(entries: Iterable[Entry], profile: ProfileDocument) -> Iterator[Entry]:
    """A collective of one rank: neither counters nor its own speed tell why it takes long."""
    ranks = profile.ranks
    alone = ranks is not None and len(ranks.ranks) + ranks.ranks_left_out < 2
    names = {collective.name for collective in ranks.collectives} if ranks is not None and alone else set()
    for entry in entries:
        yield attrs.evolve(entry, step=_LONE_STEP, command=_LONE_COMMAND) if entry.subject in names else entry


def _of_most_time(
    profile: ProfileDocument, dag: DagDocument, analysis: AnalysisDocument, called: Naming
) -> Iterator[Entry]:
    """Where no gain is known: the kernels that take the most time."""
    reason = readable((dag.reason or "there is no critical path").partition(": ")[0], 120)
    labels = {kernel.kernel: kernel for kernel in analysis.kernels}
    timed = sorted((k for k in profile.kernels if k.time_share), key=lambda k: -(k.runtime_ms or 0.0))
    for kernel in timed[:_MORE_SUBJECTS]:
        yield Entry(
            f"{called(kernel.name, 'kernel')}: {percent(kernel.time_share)} of kernel time.",
            f"What a faster one brings the run is unknown: {reason}.",
            _why_slow(labels.get(kernel.name)) or "What limits it is unknown.",
            "kernels",
            kernel.name,
        )


def _without_kernels(profile: ProfileDocument, dag: DagDocument) -> Iterator[Entry]:
    """A recording without any kernel that is timed."""
    reason = readable(dag.reason or "unknown", 400)
    if profile.untimed_thread_traces and not profile.kernels:
        # A page of thread traces alone has no section of the path to lead to.
        empty = [part for part in profile.untimed_thread_traces if part.get("status") == "empty"]
        nothing = len(empty) == len(profile.untimed_thread_traces)
        reason = readable(str(empty[0].get("reason") or "unknown"), 200) if nothing else ""
        yield Entry(
            "No kernel is timed, so no gain is known.",
            f"The thread trace gives nothing: {reason}." if nothing else "",
            section="thread-traces",
            step="Record a kernel trace beside the thread trace.",
            command=TRACED_COMMAND,
        )
        return
    time = f" The process took {duration_ns(profile.runtime_ms * 1e6)}." if profile.runtime_ms else ""
    yield Entry(
        f"No critical path: {reason}.", time.strip(), "", "path", "", _UNTIMED_STEP, "", _UNTIMED_COMMAND
    )


def _is_listed(priority: PriorityPart, subjects: set[str]) -> bool:
    """Whether an entry is about it; idle time is one entry whatever its causes are."""
    return any(subject and priority.subject.startswith(subject) for subject in subjects)


def _most(priority: PriorityPart) -> int:
    return priority.gain_ns if priority.gain_at_most_ns is None else priority.gain_at_most_ns


def _notable(priority: PriorityPart, dag: DagDocument) -> bool:
    """Whether the run gets noticeably faster at all; half of it is what the priority counts."""
    return priority.share is not None and 2 * _most(priority) >= (NOTEWORTHY - 1) * (dag.makespan_ns or 0)


def _ranges(priority: PriorityPart, dag: DagDocument) -> Entry:
    """What the recording lacks where gains are ranges without it."""
    what = "the order of streams" if dag.lanes < 2 else f"which of {dag.lanes} streams waited for which"
    return Entry(
        f"Not recorded: {what}; gains are known to within {duration_ns(priority.gain_at_most_ns)} only.",
        subject=priority.subject,
        command=next(
            (step.command.replace("{command}", "COMMAND") for step in priority.steps if step.command), ""
        ),
    )


def _further(
    priority: PriorityPart,
    dag: DagDocument,
    profile: ProfileDocument,
    analysis: AnalysisDocument,
    called: Naming,
) -> Entry:
    """Another subject of the ranking."""
    of_kernel = priority.kind == "kernel"
    subject = called(priority.subject, "kernel") if of_kernel else readable(priority.subject, 80)
    most = priority.share if priority.share_at_most is None else priority.share_at_most
    less = between(duration_ns(priority.gain_ns), duration_ns(_most(priority)))
    part = between(percent(priority.share), percent(most))
    label = next(
        (entry for entry in analysis.kernels if of_kernel and entry.kernel == priority.subject), None
    )
    head = f"{subject}{_time_share(profile, priority.subject)}."
    head = head if of_kernel else head[:1].upper() + head[1:]
    cost = f"In half its time the run takes {_up_to(dag)}{less} less ({part})."
    return Entry(head, cost, _why_slow(label), subject=priority.subject)


def _time_share(profile: ProfileDocument, name: str) -> str:
    kernel = next((k for k in profile.kernels if k.name == name), None)
    return f": {percent(kernel.time_share)} of kernel time" if kernel and kernel.time_share else ""


def _words(label: str | None) -> str:
    """A label in words; one of a plugin (``plugin:label``) says so."""
    plugin, _, label_name = (label or "").rpartition(":")
    return readable(f"{label_name.replace('_', ' ')}{f' (by {plugin})' if plugin else ''}", 80)


def _up_to(dag: DagDocument) -> str:
    """Without calls a gap counts as the time of what came before it: the host may have needed it anyway."""
    return "up to " if dag.order_known and dag.sync_info == "none" else ""


def _advised(entries: Iterable[Entry], analysis: AnalysisDocument) -> Iterator[Entry]:
    """Each with the first step for its subject; one that stands at an earlier entry already is named."""
    told: dict[str, int] = {}
    for number, entry in enumerate(entries, 1):
        matching = (p for p in analysis.next_steps if entry.subject and p.subject.startswith(entry.subject))
        steps = next((p.steps for p in matching if p.steps), ())
        labelled = (k.next_steps for k in analysis.kernels if k.kernel == entry.subject)
        step = next(iter(steps or next(labelled, ())), None)
        if step is None or entry.step or entry.command:
            yield entry
        elif step.advice in told:
            yield attrs.evolve(entry, same_as=told[step.advice])
        else:
            told[step.advice] = number
            yield attrs.evolve(entry, **_parts(step))


def _parts(step: NextStepPart) -> Mapping[str, Any]:
    confirming = "; ".join(_confirmation(each) for each in step.confirm)
    return {
        "step": readable(step.text, 500),
        "confirmed": readable(confirming, 400),
        "command": readable((step.command or "").replace("{command}", "COMMAND"), 300),
    }


def _confirmation(each: ConfirmationPart) -> str:
    counters = f" ({', '.join(each.counters)})" if each.counters else ""
    if each.value is None:
        return f"{each.quantity}, not recorded{counters}"
    return f"{each.quantity} {with_unit(each.value, each.unit, each.exactness, each.upper)}"


def _best_gain(
    dag: DagDocument, profile: ProfileDocument, analysis: AnalysisDocument, called: Naming, kind: str
) -> tuple[int, Entry] | None:
    """The kernel or copy direction with the largest gain, and how much it is if it cost nothing."""
    best = next((entry for entry in dag.forecasts if entry.kind == kind), None)
    if best is None:
        return None
    twice, free = _at(best, 2.0), _at(best, None)
    if twice is None or free is None or (most_speedup(free) or 2.0) < NOTEWORTHY:
        return None
    label = next((entry for entry in analysis.kernels if entry.kernel == best.name), None)
    head = called(best.name, kind)
    head = f"Copies ({head})" if kind == "copy" else head
    unknown = kind == "kernel" and (label is None or label.bottleneck == "unclassified")
    entry = Entry(
        f"{head}{_shares(best, dag, profile)}{', its limit unknown' if unknown else ''}.",
        f"In half its time the run takes {_up_to(dag)}{_less(twice)} less ({_part(twice, dag)}); "
        f"at no cost {_limit(free, dag)}.",
        " ".join(part for part in (*_peculiar(best, dag, profile), _why_slow(label)) if part),
        subject=_COPIES if kind == "copy" else best.name,
    )
    return most_gain_ns(twice), entry


def _peculiar(work: ForecastPart, dag: DagDocument, profile: ProfileDocument) -> Iterator[str]:
    """What else its launches show: one that takes much longer than the others, memory behind registers."""
    kernel = next((k for k in profile.kernels if work.kind == "kernel" and k.name == work.name), None)
    if kernel is None:
        return
    longest, median = kernel.max_ns, kernel.median_ns
    if (
        longest
        and median
        and longest >= 2 * median
        and longest - median >= _MUCH_IDLE * (dag.makespan_ns or 0)
    ):
        yield f"One launch takes {duration_ns(longest)}, {longest / median:.1f} times the median."
    if kernel.resources is not None and kernel.resources.scratch_bytes:
        yield f"{kernel.resources.scratch_bytes:,} bytes of scratch memory per work-item."


def _shares(work: ForecastPart, dag: DagDocument, profile: ProfileDocument) -> str:
    """Of kernel time and of the critical path; one figure where they read alike."""
    on_path = next((symbol.criticality_weight for symbol in dag.symbols if symbol.name == work.name), None)
    of_time = _time_share(profile, work.name) if work.kind == "kernel" else ""
    if on_path is None:
        return of_time
    if of_time.startswith(f": {percent(on_path)} "):
        return f"{of_time} and of the critical path"
    return f"{of_time}{',' if of_time else ':'} {percent(on_path)} of the critical path"


def _less(answer: SpeedupForecastPart) -> str:
    return between(duration_ns(answer.application_gain_ns), duration_ns(most_gain_ns(answer)))


def _part(answer: SpeedupForecastPart, dag: DagDocument) -> str:
    makespan = dag.makespan_ns or 1
    gains = (answer.application_gain_ns, most_gain_ns(answer))
    return between(*(percent(gain / makespan) for gain in gains))


def _limit(free: SpeedupForecastPart, dag: DagDocument) -> str:
    """How fast the application is at most without this; both ends where the order of streams is unknown."""
    least, most = free.application_speedup, most_speedup(free)
    if least is None:
        return "nothing of it would be left"
    upper = "without limit" if most is None else _times(most)
    at_most = "at most " if _up_to(dag) else ""
    return f"the run would be {at_most}{between(_times(least), upper)} as fast"


def _times(speedup: float) -> str:
    return f"{speedup:.3f}x" if speedup < 10 else f"{speedup:,.1f}x" if speedup < 1000 else f"{speedup:,.0f}x"


def most_speedup(answer: SpeedupForecastPart) -> float | None:
    """The upper end; ``None``: nothing may be left."""
    if answer.application_gain_at_most_ns is None:
        return answer.application_speedup
    makespan = answer.application_ns + answer.application_gain_ns
    left = makespan - answer.application_gain_at_most_ns
    return makespan / left if left > 0 else None


def is_notable(forecast: ForecastPart) -> bool:
    """Whether the application can become noticeably faster by it: rows that say 1.000x say nothing."""
    limits = (most_speedup(answer) for answer in forecast.speedups)
    return any(limit is None or limit >= NOTEWORTHY for limit in limits)


def dominance_matters(dag: DagDocument) -> bool:
    """Whether it decides anything who dominates the critical path."""
    first = dag.dominant_work
    return first is not None and any(f.name == first.name and is_notable(f) for f in dag.forecasts)


def _why_slow(label: KernelAnalysis | None) -> str:
    """Why a kernel takes its time, with the figures that decided."""
    if label is None or label.bottleneck == "unclassified":
        return ""
    rule = next((rule for rule in label.evidence if rule.label == label.bottleneck), None)
    figures = [
        f"{c.quantity} {with_unit(c.value, 'fraction' if abs(c.value) <= 1 else None, c.exactness, c.upper)}"
        for c in (rule.conditions if rule else ())
        if c.value is not None
    ]
    because = f": {', '.join(figures)}" if figures else ""
    return f"Why: {_words(label.bottleneck)}, {label.confidence} confidence{because}."


def _at(forecast: ForecastPart, speedup: float | None) -> SpeedupForecastPart | None:
    return next((entry for entry in forecast.speedups if entry.speedup == speedup), None)


def _shift(dag: DagDocument, called: Naming) -> Entry | None:
    first = dag.dominant_work
    if dag.dominance_shift_at is None or first is None or not dominance_matters(dag):
        return None
    kinds = {symbol.name: symbol.kind for symbol in dag.symbols}
    after = next(
        (step.dominant_symbol for step in dag.dominance if step.dominant_symbol not in (None, first.name)),
        None,
    )
    if after is None:
        return None
    return Entry(
        f"What dominates the path changes at {_times(dag.dominance_shift_at)}.",
        f"Once {called(first.name, first.kind)} is faster than that, "
        f"{called(after, kinds.get(after, 'kernel'))} dominates.",
    )


def _idle(dag: DagDocument) -> tuple[int, Entry] | None:
    domain = max(dag.clock_domains, key=lambda part: part.critical_path_ns, default=None)
    if domain is None or not domain.busy_ns or domain.idle_ns / domain.makespan_ns < _MUCH_IDLE:
        return None
    several = len(dag.devices) + dag.devices_left_out > 1
    # Without a copy in the recording nobody knows whether the GPU copied meanwhile.
    copies = any(symbol.kind == "copy" for symbol in dag.symbols)
    idle = "No GPU works" if several else "The GPU is idle"
    who = idle if copies else f"No kernel runs{' on any GPU' if several else ''}"
    unseen = domain.idle is not None and domain.idle.unattributed_ns > domain.idle_ns / 2
    who = f"No recorded work runs{' on any GPU' if several else ''}" if copies and unseen else who
    who += f" on {readable(domain.node, 40)}" if len(dag.clock_domains) > 1 else ""
    share = domain.idle_ns / domain.makespan_ns
    head = f"{who} for {percent(share)} of the run: {duration_ns(domain.idle_ns)} of "
    bound = _most_of_any_kernel(dag)
    # The sentence must hold for kernels that are not listed, too: see ``_most_of_any_kernel``.
    little = bound is not None and dag.makespan_ns and bound / dag.makespan_ns < NOTEWORTHY - 1
    brings = f"Without these gaps it would be {_times(domain.makespan_ns / domain.busy_ns)} as fast at most"
    brings += f"; no kernel alone brings {NOTEWORTHY - 1:.1%}." if little else "."
    entry = Entry(f"{head}{duration_ns(domain.makespan_ns)}.", brings, _causes(domain), "path", _IDLE)
    return domain.idle_ns // 2, entry


def _most_of_any_kernel(dag: DagDocument) -> int | None:
    """What no kernel saves more of, in ns, those that are not listed included.

    The list is ranked by the gain at twice the speed. A run is the longest of many sums of durations, so what
    is gained grows ever slower with what is taken away: at no cost it is at most twice the gain of half.
    """
    free = [answer for entry in dag.forecasts if (answer := _at(entry, None)) is not None]
    twice = [answer for entry in dag.forecasts[-1:] if (answer := _at(entry, 2.0)) is not None]
    gains = [*(most_gain_ns(answer) for answer in free), *(2 * most_gain_ns(answer) for answer in twice)]
    return max(gains, default=None)


def _causes(domain: ClockDomainPart) -> str:
    if domain.idle is None:
        return ""
    parts = {
        "probably copies, not recorded": domain.idle.copying_ns,
        "nothing submitted by the host": domain.idle.host_ns,
        "synchronisation": domain.idle.sync_ns,
        "launch latency": domain.idle.launch_ns,
        "cause not recorded": domain.idle.unattributed_ns,
    }
    named = [
        f"{name} {percent(ns / domain.makespan_ns)}"
        for name, ns in sorted(parts.items(), key=lambda part: -part[1])
        if ns / domain.makespan_ns >= _LITTLE_PATH
    ]
    return f"Why: {'; '.join(named)}." if named else ""


def _ranks(profile: ProfileDocument, called: Naming) -> Iterator[Entry]:
    """Several ranks: the collective with the most time, who waits, who comes last, and the uneven kernel."""
    ranks = profile.ranks
    if ranks is None or len(ranks.ranks) < 2:
        return
    total = sum(rank.kernel_ns for rank in ranks.ranks)
    number = counted(len(ranks.ranks) + ranks.ranks_left_out, "rank")
    if ranks.collectives and total:
        spent = {c.name: sum(share.total_ns for share in c.shares) for c in ranks.collectives}
        most = max(spent, key=lambda name: spent[name])
        head = (
            f"{number}: collectives take {percent(sum(spent.values()) / total)} of their kernel time, "
            f"{called(most, 'kernel')} {percent(spent[most] / total)}."
        )
        yield Entry(head, _waits(ranks), _uneven(ranks, called), "section-ranks", _WAITING)
    elif uneven := _uneven(ranks, called):
        yield Entry(f"{number}, no collective was recorded.", uneven, "", "section-ranks", _WAITING)


def _waits(ranks: RanksPart) -> str:
    """Who waits longest, and who comes last most often; both only where they are known."""
    waiting = [rank for rank in ranks.ranks if rank.wait_ns is not None]
    if not waiting:
        reasons = [c.wait_reason for c in ranks.collectives if c.wait_reason]
        return f"How long ranks wait is unknown: {readable(reasons[0], 200)}." if reasons else ""
    longest = max(waiting, key=lambda rank: rank.wait_ns or 0)
    estimated = any(c.exactness == "estimate" for c in ranks.collectives)
    share = (
        f" ({percent((longest.wait_ns or 0) / ranks.makespan_ns)} of the run)" if ranks.makespan_ns else ""
    )
    mark = "~" if estimated else ">="
    listed = " of those listed" if ranks.ranks_left_out else ""
    text = f"Rank {longest.rank} waits longest{listed}, {mark}{duration_ns(longest.wait_ns)}{share}"
    last = sorted(
        (r for r in ranks.ranks if r.last_arrivals is not None), key=lambda r: -(r.last_arrivals or 0)
    )
    if (
        last
        and last[0].last_arrivals
        and last[0].last_arrivals > sum(r.last_arrivals or 0 for r in last[1:2])
    ):
        times = sum(rank.last_arrivals or 0 for rank in last)
        text += f"; rank {last[0].rank} comes last most often ({last[0].last_arrivals} of {times} times)"
    return f"{text}."


def _uneven(ranks: RanksPart, called: Naming) -> str:
    """The kernel with the most time above the mean on one rank."""
    worst = max(ranks.kernels, key=lambda kernel: kernel.max_ns - kernel.mean_ns, default=None)
    if worst is None or worst.imbalance < _MUCH_IDLE:
        return ""
    return (
        f"Most uneven: {called(worst.name, 'kernel')} takes rank {worst.slowest_rank} "
        f"{percent(worst.imbalance)} longer than the mean."
    )


def _hidden(profile: ProfileDocument, dag: DagDocument, called: Naming) -> Entry | None:
    gaining = {
        forecast.name
        for forecast in dag.forecasts
        if (free := _at(forecast, None)) is None or (most_speedup(free) or 2.0) >= NOTEWORTHY
    }
    # Where the order is unknown only an upper end tells that nothing is gained.
    told = {forecast.name for forecast in dag.forecasts if forecast.kind == "kernel"}
    hidden = [
        kernel
        for kernel in profile.kernels
        if kernel.name not in gaining
        and (dag.order_known or kernel.name in told)
        and kernel.time_share is not None
        and kernel.time_share >= _MUCH_TIME
        and kernel.criticality_weight is not None
        and kernel.criticality_weight < _LITTLE_PATH
    ][:_MOST_HIDDEN]
    if not hidden:
        return None
    listed = ", ".join(
        f"{called(kernel.name, 'kernel')} ({percent(kernel.time_share)} of the time)" for kernel in hidden
    )
    return Entry(
        "Much time, nothing to gain.",
        f"Off the critical path: {listed}. A faster version alone would not shorten the run.",
        section="kernels",
    )


def _basis(documents: ReportDocuments) -> str:
    """What the sentences rest on and what they do without."""
    profile, dag, roofline = documents.profile, documents.dag, documents.roofline
    stability = profile.stability
    parts = [device_names(profile) or "device unknown"]
    if stability.runs:
        spread = f", CV {percent(stability.cv, 2)}" if stability.cv is not None else ""
        parts.append("one run" if stability.runs == 1 else f"{stability.runs} runs{spread}")
    if (profile.runtime_source or "").startswith("modelled"):
        parts.append("times are modelled")
    elif profile.runtime_exactness == "estimate":
        parts.append("times are estimates from counter passes")
    if dag.status == "available" and dag.sync_info in ("none", "api_names"):
        parts.append("no API calls" if dag.sync_info == "none" else "API calls without arguments")
    if roofline.status != "available" and profile.kernels:
        parts.append("no counters" if roofline.status == "not_collected" else "counters that can't be used")
    if profile.range:
        parts.append(f"only work of the ranges {readable(profile.range, 40)!r}")
    if profile.incomplete:
        parts.append(f"incomplete: {readable(profile.incomplete, 80)}")
    return f"Basis: {'; '.join(parts)}."
