"""The samples of one kernel as counts: of the kernel, of its source lines, of its instructions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rpl_analysis.contracts import plain_values
from rpl_core.contracts.common import MetricDoc
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_pcsampling.contract import SampledKernel, SampledLine, SampledPlace, StallShare, TracedInstruction
from rpl_pcsampling.samples import INSTRUCTION_TYPES, STALL_REASONS, UNKNOWN, Method, PcSamples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from rpl_analysis.counters.quantities import KernelQuantities
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Float64Column, Int64Column

# How far the share of an instruction may be from what infinitely many samples would show.
#
# The interval is Wilson's score interval at 95 % (E. B. Wilson, JASA 22 (1927) 209-212; recommended for
# small numbers by Brown, Cai and DasGupta, Statistical Science 16 (2001) 101-133), with the number of
# samples replaced by the effective one. Samples that compute units take at one moment are not independent:
# waves of one kernel run in step. So each timestamp is a cluster. The variance of a share over clusters is
# that of a ratio (Cochran, Sampling Techniques, 3rd ed. 1977, chapter 3 on proportions in clusters), its
# quotient to the variance of independent samples the design effect (Kish, Survey Sampling, 1965), and the
# effective number is samples / design effect (Dean and Pagano, J. Survey Statistics and Methodology 3
# (2015) 484-503). A design effect below 1 counts as 1.
#
# Not covered: kernels that behave otherwise in other launches or on other inputs.

CONFIDENCE: Final = 0.95
_Z: Final = 1.959963984540054  # of the normal distribution, two-sided
METHOD: Final = "Wilson score interval, effective number of samples by timestamp clusters"
#: A share of one half is known to 10 points then: n = z^2 p (1 - p) / 0.1^2 (Cochran 1977, chapter 4).
MIN_SAMPLES: Final = 97


def wilson(share: Float64Column, samples: Float64Column) -> tuple[Float64Column, Float64Column]:
    """Lower and upper end for shares of so many independent samples."""
    scale = _Z**2 / samples
    centre = (share + scale / 2) / (1 + scale)
    half = _Z / (1 + scale) * np.sqrt(share * (1 - share) / samples + scale / (4 * samples))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


@frozen(eq=False)
class Ticks:
    """The moments at which a kernel was sampled: the cluster of each sample, and the size of each cluster."""

    of_sample: Int64Column
    size: Int64Column

    @classmethod
    def of(cls, timestamp_ns: Int64Column) -> Ticks:
        _, cluster, size = np.unique(timestamp_ns, return_inverse=True, return_counts=True)
        return cls(cluster.reshape(-1).astype(np.int64), size.astype(np.int64))


@frozen(eq=False)
class Shares:
    """Of each class of samples: its part of all, and the ends of its interval.

    ``too_few``: the interval is wider than the share, so the share says little but that it is not zero.
    """

    samples: Int64Column
    share: Float64Column
    low: Float64Column
    high: Float64Column

    @property
    def too_few(self) -> list[bool]:
        return [bool(wide) for wide in self.high - self.low > self.share]


def shares_of(classes: Int64Column, count: int, ticks: Ticks) -> Shares:
    """Shares of the classes 0 to ``count`` - 1 among all samples; a negative class counts in none."""
    total = len(classes)
    inside = np.flatnonzero(classes >= 0)
    samples = np.bincount(classes[inside], minlength=count).astype(np.int64)
    share = samples / total
    effective = total / _design_effect(classes[inside], ticks.of_sample[inside], share, ticks.size)
    low, high = wilson(share, effective)
    return Shares(samples, share, low, high)


def _design_effect(
    classes: Int64Column, cluster: Int64Column, share: Float64Column, size: Int64Column
) -> Float64Column:
    """Of each class. Where samples can't tell (one cluster, or a share of 0 or 1) it is the largest one.

    That is the mean size of the cluster that a sample is in: its samples all tell the same.
    """
    total, clusters = float(size.sum()), len(size)
    largest = float((size.astype(np.float64) ** 2).sum()) / total
    effect = np.full(len(share), max(1.0, largest))
    if clusters < 2:
        return effect
    pair, times = np.unique(classes.astype(np.int64) * clusters + cluster, return_counts=True)
    of_class, of_cluster = pair // clusters, pair % clusters
    squares = np.bincount(of_class, times.astype(np.float64) ** 2, minlength=len(share))
    products = np.bincount(of_class, times * size[of_cluster].astype(np.float64), minlength=len(share))
    # Sum over clusters of (samples of the class - share * samples)^2, those without the class included.
    residual = squares - 2 * share * products + share**2 * largest * total
    open_ = (share > 0) & (share < 1)
    independent = share[open_] * (1 - share[open_]) / total
    clustered = clusters / (clusters - 1) * residual[open_] / total**2
    effect[open_] = np.clip(clustered / independent, 1.0, max(1.0, largest))
    return effect


#: Separates the frames of an inline chain, innermost first (docs/reference/thread-trace.md, 2.3).
INLINE = " -> "
#: Chosen: a hand-written kernel whole; of an unrolled one what matters.
_MOST_PLACES = 1000
_NO_STATE = "host-trap sampling does not see whether a wave issued, nor why not, nor how many waves there are"
_NO_LINES = "the recorded instructions have no source comments (compile with -g)"


def source_line(source: str | None) -> str | None:
    """``path:line`` of the innermost frame, ``None`` where the compiler left no line (0 counts as none)."""
    innermost = (source or "").partition(INLINE)[0].strip()
    _, _, line = innermost.rpartition(":")
    return innermost if line.isdecimal() and int(line) > 0 else None


def sampled_kernels(samples: PcSamples) -> Iterator[SampledKernel]:
    """Each kernel of one recording, the most sampled first; samples without a kernel are one of their own."""
    of_kernel = samples.kernel.astype(np.int64)
    count = np.bincount(of_kernel + 1, minlength=len(samples.kernels) + 1)
    order = sorted(range(len(count)), key=lambda k: (-int(count[k]), k))
    for shifted in order:
        if count[shifted]:
            rows = np.flatnonzero(of_kernel == shifted - 1)
            yield _kernel(samples, rows, samples.kernels[shifted - 1] if shifted else None)


@frozen(eq=False)
class _Rows:
    """The columns of one kernel's samples."""

    method: Method
    issued: NDArray[Any]
    reason: NDArray[Any]
    lanes: NDArray[Any]
    waves: NDArray[Any]
    ticks: Ticks

    @property
    def tells_state(self) -> bool:
        return self.method is Method.STOCHASTIC

    def fields(self, classes: Int64Column, shares: Shares) -> list[dict[str, Any]]:
        """What ``Sampled`` holds, of each class."""
        count = len(shares.samples)
        inside = np.flatnonzero(classes >= 0)
        class_of = classes[inside]
        issued = np.bincount(class_of, self.issued[inside] == 1, minlength=count).astype(np.int64)
        stalled = np.bincount(class_of, self.issued[inside] == 0, minlength=count).astype(np.int64)
        reason = np.where(self.issued[inside] == 0, self.reason[inside], UNKNOWN)
        kinds = len(STALL_REASONS)
        known = reason >= 0
        table = np.bincount(class_of[known] * kinds + reason[known], minlength=count * kinds).reshape(
            count, kinds
        )
        stalls = [
            {
                STALL_REASONS[kind]: int(row[kind])
                for kind in sorted(range(kinds), key=lambda k: (-int(row[k]), k))
                if row[kind]
            }
            for row in table
        ]
        lanes, waves = (_means(class_of, column[inside], count) for column in (self.lanes, self.waves))
        tells = self.tells_state
        return [
            {
                **_share(shares, index),
                "issued": int(issued[index]) if tells else None,
                "stalled": int(stalled[index]) if tells else None,
                "stalls": stalls[index] if tells else None,
                "lanes": lanes[index],
                "waves": waves[index],
            }
            for index in range(count)
        ]


def _kernel(samples: PcSamples, chosen: NDArray[Any], name: str | None) -> SampledKernel:
    total = len(chosen)
    rows = _Rows(
        method=samples.method,
        issued=samples.issued[chosen],
        reason=samples.reason[chosen],
        lanes=samples.lanes[chosen],
        waves=samples.waves[chosen],
        ticks=Ticks.of(samples.timestamp_ns[chosen]),
    )
    used, of_place = np.unique(samples.place[chosen], return_inverse=True)
    place = of_place.reshape(-1).astype(np.int64)
    places = [samples.places[index] for index in used.tolist()]
    lines = [source_line(row.source) for row in places]
    names = tuple(dict.fromkeys(line for line in lines if line is not None))
    number = {line: index for index, line in enumerate(names)}
    line_of = np.array([UNKNOWN if line is None else number[line] for line in lines], np.int64)
    in_line = np.bincount(line_of[line_of >= 0], minlength=len(names))
    few = total < MIN_SAMPLES
    whole = rows.fields(np.zeros(total, np.int64), shares_of(np.zeros(total, np.int64), 1, rows.ticks))[0]
    sampled = [
        SampledPlace(
            **fields,
            instruction=row.instruction,
            source=row.source,
            code_object=row.code_object,
            offset=row.offset,
        )
        for row, fields in zip(
            places, rows.fields(place, shares_of(place, len(places), rows.ticks)), strict=True
        )
    ]
    sampled.sort(key=lambda row: (-row.samples, row.code_object or 0, row.offset or 0, row.instruction or ""))
    by_line = line_of[place]
    of_lines = rows.fields(by_line, shares_of(by_line, len(names), rows.ticks)) if names else []
    return SampledKernel(
        kernel=name,
        kernel_reason=samples.unnamed if name is None else None,
        method=samples.method.value,
        position=samples.position.value,
        origin=samples.origin.value,
        sampled_every=samples.every,
        sampled_unit=None if samples.every is None else "cycles" if rows.tells_state else "us",
        status="too_few_samples" if few else "available",
        reason=f"{counted(total, 'sample')}; {MIN_SAMPLES} would tell a share of one half to 10 points"
        if few
        else None,
        samples=total,
        dispatches=len(np.unique(samples.dispatch_id[chosen])),
        ticks=len(rows.ticks.size),
        undecoded=sum(row.samples for row in sampled if row.instruction is None),
        issued=whole["issued"],
        stalled=whole["stalled"],
        issue_share=_issue_share(rows),
        stalls=_stall_shares(rows),
        instruction_types=_types(samples.instruction_type[chosen]) if rows.tells_state else None,
        lanes=whole["lanes"],
        waves=whole["waves"],
        lines=tuple(
            sorted(
                (
                    SampledLine(**fields, source=line, instructions=int(in_line[index]))
                    for index, (line, fields) in enumerate(zip(names, of_lines, strict=True))
                ),
                key=lambda row: (-row.samples, row.source),
            )
        ),
        lines_reason=None if names else _NO_LINES,
        places=tuple(sampled[:_MOST_PLACES]),
        places_left_out=max(0, len(sampled) - _MOST_PLACES),
        unavailable={} if rows.tells_state else dict.fromkeys(("issued", "stalls", "waves"), _NO_STATE),
    )


def _share(shares: Shares, index: int) -> dict[str, Any]:
    return {
        "samples": int(shares.samples[index]),
        "share": float(shares.share[index]),
        "share_low": float(shares.low[index]),
        "share_high": float(shares.high[index]),
        "too_few": shares.too_few[index],
    }


def _issue_share(rows: _Rows) -> StallShare | None:
    if not rows.tells_state:
        return None
    classes = np.where(rows.issued == 1, 0, UNKNOWN).astype(np.int64)
    return StallShare(reason="issued", **_share(shares_of(classes, 1, rows.ticks), 0))


def _stall_shares(rows: _Rows) -> tuple[StallShare, ...] | None:
    """Of all samples, with an entry for each reason that can be: one that never occurred has an upper end."""
    if not rows.tells_state:
        return None
    classes = np.where(rows.issued == 0, rows.reason, UNKNOWN).astype(np.int64)
    shares = shares_of(classes, len(STALL_REASONS), rows.ticks)
    stalls = [
        StallShare(reason=reason, **_share(shares, index))
        for index, reason in enumerate(STALL_REASONS)
        if index > 0 or shares.samples[index]  # ``none`` for a wave that did not issue contradicts itself
    ]
    return tuple(sorted(stalls, key=lambda share: (-share.samples, STALL_REASONS.index(share.reason))))


def _types(column: NDArray[Any]) -> dict[str, int]:
    counts = np.bincount(column[column >= 0], minlength=len(INSTRUCTION_TYPES))
    order = sorted(range(len(INSTRUCTION_TYPES)), key=lambda k: (-int(counts[k]), k))
    return {INSTRUCTION_TYPES[kind]: int(counts[kind]) for kind in order if counts[kind]}


def _means(classes: Int64Column, column: NDArray[Any], count: int) -> list[float | None]:
    known = column >= 0
    number = np.bincount(classes[known], minlength=count)
    total = np.bincount(classes[known], column[known].astype(np.float64), minlength=count)
    return [float(total[i] / number[i]) if number[i] else None for i in range(count)]


# What other plugins know of the kernels that were sampled.
#
# Nothing of them is imported: the thread trace is a fact by its name, emulator counts are what their reader
# left in the recording, and both are looked at as their documented JSON. Figures stand side by side and are
# never mixed.

_EMULATED = "instruction_heat"
#: Quantities that look at what samples look at: waits, lanes with work, busy pipes.
_QUANTITIES = (
    *("dependency_wait_fraction", "active_lane_fraction", "valu_utilization", "mfma_utilization"),
    "lds_bank_conflicts_per_access",
)
_ENCODING = re.compile(r"_(?:e32|e64|dpp|dpp8|sdwa|e64_dpp)$")


class Beside:
    """Looks a kernel's instructions up in the other sources."""

    def __init__(
        self,
        recording: Recording,
        traces: Mapping[str, Any] | None,
        quantities: Mapping[str, KernelQuantities] | None,
    ) -> None:
        self._traces = traces or {}
        self._quantities = quantities or {}
        files = (file for trace in recording.traces for file in trace.extras.get(_EMULATED, ()))
        self._emulated = {heat.kernel: heat for file in files for heat in file.kernels}

    def joined(self, kernel: SampledKernel) -> SampledKernel:
        """``kernel`` with what is known besides; itself without a name, by which everything is found."""
        if kernel.kernel is None:
            return kernel
        heat, trace = self._emulated.get(kernel.kernel), self._traces.get(kernel.kernel)
        changes: dict[str, Any] = {}
        if heat is not None or trace is not None:
            executed = () if heat is None else heat.places
            counted = {(place.address, _mnemonic(place.opcode)): place for place in executed}
            # Instructions by offset and text, and by source and text where that is one, for
            # samples from CSV.
            by_place: dict[tuple[object, str], Any] = {}
            repeated: set[tuple[object, str]] = set()
            for row in () if trace is None else trace.hot_instructions:
                text = _words(row.isa)
                by_place[row.vaddr, text] = row
                by_text = (row.source, text)
                if by_text in by_place:
                    repeated.add(by_text)
                by_place[by_text] = row
            traced = {key: row for key, row in by_place.items() if key not in repeated}
            changes["places"] = tuple(_with_neighbours(place, counted, traced) for place in kernel.places)
            changes["lines"] = tuple(_lines(kernel.lines, heat))
        quantities = self._quantities.get(kernel.kernel)
        if quantities is not None:
            changes["counters"] = dict(_known(quantities))
        return kernel.model_copy(update=changes)


def _with_neighbours(
    place: SampledPlace, counted: Mapping[tuple[int, str], Any], traced: Mapping[tuple[object, str], Any]
) -> SampledPlace:
    """The text must agree, too: an address of another build is another instruction."""
    if place.instruction is None:
        return place
    changes: dict[str, Any] = {}
    text = _words(place.instruction)
    row = traced.get((place.source if place.offset is None else place.offset, text))
    if row is not None:
        changes["trace"] = TracedInstruction(
            share=row.share, hits=row.hits, latency=row.latency, stall=row.stall
        )
    if place.offset is not None and (heat := counted.get((place.offset, _mnemonic(text)))) is not None:
        changes |= {"executed": heat.executed, "executed_lanes": heat.lanes}
    return place.model_copy(update=changes)


def _lines(lines: Iterable[SampledLine], heat: Any) -> Iterable[SampledLine]:
    executed = {} if heat is None else {f"{line.source}:{line.line}": line.executed for line in heat.lines}
    for line in lines:
        count = executed.get(source_line(line.source) or "")
        yield line if count is None else line.model_copy(update={"executed": count})


def _known(quantities: KernelQuantities) -> Iterable[tuple[str, MetricDoc]]:
    for name in _QUANTITIES:
        metric = quantities.per_launch(name)
        if metric is not None and metric.value is not None:
            yield name, MetricDoc.model_validate(plain_values(metric))


def _words(isa: str) -> str:
    return " ".join(isa.split())


def _mnemonic(isa: str) -> str:
    """Without the encoding, which one disassembler names and another one does not."""
    return _ENCODING.sub("", isa.split()[0]) if isa.split() else ""
