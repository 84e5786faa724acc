"""Both kernels on other numbers than the captured ones, compared with each other."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.capture.plain_memory import PlainMemory, Ranges, common, inside, size_of, without
from rpl_vmreplay.compare.experiment import CRASHES, PATTERNS, Baseline, Experiment, Seen, differing, slices
from rpl_vmreplay.compare.outputs import (
    INPUT_DRAWS,
    OF_BASELINE,
    OF_CANDIDATE,
    DataType,
    Output,
    as_set,
    bound,
    bytes_of,
    changed_inputs,
    computes_in_halves,
    distance,
    distances,
    last_places,
    movement,
    name_of,
    numbers_of,
    outputs_of,
)
from rpl_vmreplay.interfaces import MemoryEdit, MemoryRange, Rounding

#: Sums of a few hundred products of two of them are exact in what such numbers are summed in (f32, f64 of
#: f64).
_LARGEST_EXACT = {DataType.F64: 1 << 20, DataType.F32: 255, DataType.F16: 63, DataType.BF16: 63}


@frozen
class OtherInput:
    """``edits`` replace captured bytes. ``integers``: it changes integers, which may be places or sizes."""

    name: str
    edits: tuple[MemoryEdit, ...]
    integers: bool = False


#: Where floating-point numbers are read, of what kind, and what was captured there.
FloatInput = tuple[MemoryRange, DataType, bytes]


@frozen
class DrawnInputs:
    floats: tuple[FloatInput, ...] = ()
    others: tuple[OtherInput, ...] = ()


def drawn_inputs(capture: Capture, read: Ranges, unknown: DataType) -> DrawnInputs:
    """Of what the launch reads behind its pointers, where their types are known (or ``unknown`` says them).

    The same for the same capture. Integers that never fall stay as they are: they look like offsets.
    """
    extras = capture.extras
    arguments: Ranges = ()
    if extras is not None and extras.dispatch.kernarg_address is not None:
        arguments = (MemoryRange(extras.dispatch.kernarg_address, capture.dispatch.kernarg_size),)
    with tempfile.TemporaryDirectory(prefix="rpl-inputs-") as folder:
        return _drawn(capture, PlainMemory(capture, Path(folder)), without(read, arguments), unknown)


def _drawn(capture: Capture, memory: PlainMemory, read: Ranges, unknown: DataType) -> DrawnInputs:
    fields = [one for one in outputs_of(capture, read, unknown) if one.argument is not None]
    floats = [field for field in fields if field.kind is not DataType.BYTES]
    integers = [
        field
        for field in fields
        if field.element.signed is not None and not _rising(field, _captured(memory, field))
    ]
    found = [_made(name, floats, memory, draw) for name, draw in _OF_FLOATS.items() if floats]
    found += [_made(name, integers, memory, draw, True) for name, draw in _OF_INTEGERS.items() if integers]
    told = (
        (place, one.kind, memory.read(place.address, place.size)) for one in floats for place in one.ranges
    )
    return DrawnInputs(tuple(told), tuple(found))


def _made(
    name: str, fields: list[Output], memory: PlainMemory, draw: Callable[..., Any], of_integers: bool = False
) -> OtherInput:
    import numpy as np

    edits: list[MemoryEdit] = []
    for number, one in enumerate(fields):
        source = np.random.default_rng([number, zlib.crc32(name.encode())])
        content = draw(source, one, _captured(memory, one))
        edits += _edits(one.ranges, content)
    return OtherInput(name, tuple(edits), of_integers)


def _edits(ranges: Ranges, content: bytes) -> Iterator[MemoryEdit]:
    at = 0
    for one in ranges:
        yield MemoryEdit(one.address, content[at : at + one.size])
        at += one.size


def _captured(memory: PlainMemory, field: Output) -> bytes:
    return b"".join(memory.read(one.address, one.size) for one in field.ranges)


def _integers(field: Output, content: bytes) -> Any:
    import numpy as np

    return np.frombuffer(content, np.dtype(f"<{'i' if field.element.signed else 'u'}{field.element.size}"))


def _rising(field: Output, content: bytes) -> bool:
    numbers = _integers(field, content)
    return len(numbers) > 2 and bool((numbers[1:] >= numbers[:-1]).all()) and numbers[0] != numbers[-1]


def _floats(draw: Callable[[Any, int, DataType], Any]) -> Callable[..., bytes]:
    return lambda source, field, captured: bytes_of(
        field.kind, draw(source, len(captured) // field.kind.size, field.kind)
    )


def _signs(source: Any, count: int) -> Any:
    return source.integers(0, 2, count) * 2.0 - 1.0


_OF_FLOATS: dict[str, Callable[..., bytes]] = {
    "small integers": _floats(lambda r, n, _: r.integers(1, 4, n) * _signs(r, n)),
    "integers": _floats(lambda r, n, kind: r.integers(1, _LARGEST_EXACT[kind] + 1, n) * _signs(r, n)),
    "positive integers": _floats(lambda r, n, kind: r.integers(1, _LARGEST_EXACT[kind] + 1, n)),
    "around 0": _floats(lambda r, n, _: r.uniform(-1, 1, n)),
    "around 1": _floats(lambda r, n, _: r.uniform(0.5, 1.5, n)),
    "around -1": _floats(lambda r, n, _: -r.uniform(0.5, 1.5, n)),
    "two values": _floats(lambda r, n, _: r.choice([2443 / 8192, -5735 / 8192], n)),
    "large": _floats(lambda r, n, _: r.uniform(-100, 100, n)),
    "large and negative": _floats(lambda r, n, _: -r.uniform(120, 160, n)),
    "captured, permuted": lambda r, field, captured: bytes_of(
        field.kind, r.permutation(numbers_of(field.kind, captured))
    ),
}  # fmt: skip


def _wide(source: Any, field: Output, captured: bytes) -> bytes:
    import numpy as np

    words: bytes = source.bytes(len(captured))
    content = np.frombuffer(words, np.uint8).copy()
    info = np.iinfo(_integers(field, captured).dtype)
    numbers = content.view(_integers(field, captured).dtype)
    numbers[:: max(1, len(numbers) // 3)] = info.max
    numbers[1 :: max(2, len(numbers) // 3)] = info.min
    changed: bytes = numbers.tobytes()
    return changed


#: Without 0, by the bytes that they have.
_LARGE = {1: (20, 100), 2: (2000, 20_000), 4: (100_000, 2_000_000), 8: (100_000, 2_000_000)}


def _as_integers(draw: Callable[[Any, Any], Any]) -> Callable[..., bytes]:
    def drawn(source: Any, field: Output, captured: bytes) -> bytes:
        numbers = _integers(field, captured)
        return bytes(draw(source, numbers).astype(numbers.dtype).tobytes())

    return drawn


_OF_INTEGERS: dict[str, Callable[..., bytes]] = {
    "captured integers, permuted": _as_integers(lambda r, x: r.permutation(x)),
    "integers 0 to 3": _as_integers(lambda r, x: r.integers(0, 4, len(x))),
    "integers -3 to 3": _as_integers(lambda r, x: r.integers(-3, 4, len(x))),
    "positive integers of their own": _as_integers(
        lambda r, x: r.integers(*_LARGE[x.dtype.itemsize], len(x))
    ),
    "negative integers": _as_integers(lambda r, x: -r.integers(1, 1000, len(x))),
    "equal integers": _as_integers(lambda _, x: x[:1].repeat(len(x))),
    "wide integers": _wide,
}


# Both kernels on other numbers than the captured ones (``inputs``), compared with each other.

#: Of four runs that round otherwise, so many have to do the same as the usual one, but for rounding.
LEAST_ROUNDED = 3
#: Looking for races takes longer than running.
SANITIZED_LONGER = 10
#: What a launch writes to comes back from each run as whole regions, up to so much.
MOST_BYTES = 1 << 28


class InputOutcome(str, Enum):
    EQUAL = "equal"
    ROUNDING = "differs by rounding only"
    DIFFERENT = "different"
    UNKNOWN = "undecided"  # results differ, and nobody knows by how much rounding may move them
    DROPPED = "dropped"  # the baseline itself does not run as it does with the captured input


@frozen
class InputResult:
    name: str
    outcome: InputOutcome
    reason: str | None = None


@frozen
class _Usual:
    """What the baseline does with one input: ``unfit`` says why that input is none for it. What rounding does
    to it is only found out where something differs."""

    run: Seen
    unfit: str | None
    outputs: tuple[Output, ...] = ()


@attrs.define
class OtherRuns:
    """``any_order``: where outputs begin whose records have no order. What the baseline does is kept, so that
    several candidates can be judged."""

    experiment: Experiment
    code: Path
    baseline: Baseline
    drawn: DrawnInputs
    unknown: DataType
    any_order: frozenset[int]
    ulps: int
    _usual: dict[str, _Usual] = attrs.field(factory=dict)
    _rounded: dict[str, tuple[list[Seen], list[Seen], frozenset[int]]] = attrs.field(factory=dict)

    @property
    def regions(self) -> Ranges:
        """Those that are written to with the captured input."""
        return tuple(
            MemoryRange(region.base, region.size)
            for region in self.experiment.capture.regions
            if common(self.baseline.writes.written, (MemoryRange(region.base, region.size),))
        )

    def results(self, candidate: Path, *, longer_chains: bool = True) -> tuple[InputResult, ...]:
        """Up to the first that is different. ``longer_chains``: the candidate's own rounding counts."""
        found: list[InputResult] = []
        if size_of(self.regions) > MOST_BYTES:
            return ()
        for one in self.drawn.others:
            found.append(self._result(one, candidate, longer_chains))
            if found[-1].outcome is InputOutcome.DIFFERENT:
                break
        return tuple(found)

    def _result(self, given: OtherInput, candidate: Path, longer_chains: bool) -> InputResult:
        if given.name not in self._usual:
            run = self._run(given, self.code, sanitize=given.integers)
            outputs = outputs_of(self.experiment.capture, run.written, self.unknown) if run.written else ()
            self._usual[given.name] = _Usual(run, self._unfit(run), outputs)
        usual = self._usual[given.name]
        if usual.unfit:
            return InputResult(given.name, InputOutcome.DROPPED, usual.unfit)
        found = self._run(given, candidate)
        if found.failure is not None:
            outcome = InputOutcome.DIFFERENT if found.failure.kind in CRASHES else InputOutcome.UNKNOWN
            return InputResult(given.name, outcome, f"it does not end: {found.failure.fact}")
        outcome, reason = self._compared(given, usual, found, candidate if longer_chains else None)
        return InputResult(given.name, outcome, reason)

    def _run(
        self,
        given: OtherInput,
        code: Path,
        rounding: Rounding = Rounding.NEAREST,
        variation: int = 0,
        *,
        keep_halves: bool = False,
        sanitize: bool = False,
        changes: tuple[MemoryEdit, ...] = (),
    ) -> Seen:
        poison = (
            MemoryEdit(one.address, bytes([PATTERNS[1]]) * one.size) for one in self.baseline.writes.poisoned
        )
        edits = (*given.edits, *poison, *changes)
        limit_s = self.baseline.limit_s * (SANITIZED_LONGER if sanitize else 1)
        return self.experiment.seen(
            code,
            self.regions,
            edits,
            limit_s,
            rounding=rounding,
            keep_halves=keep_halves,
            variation=variation,
            sanitize=sanitize,
        )

    def _unfit(self, usual: Seen) -> str | None:
        """Why this input is none for the baseline."""
        if usual.failure is not None:
            return f"the baseline does not end: {usual.failure.fact}"
        if inside(without(usual.written, self.regions), self.experiment.capture):
            return "the baseline writes to other buffers than with the captured input"
        if common(usual.read_first, self.baseline.writes.poisoned):
            return "the baseline reads what it does not read with the captured input"
        if usual.findings:
            return f"the baseline itself: {', '.join(sorted(usual.findings))}"
        for one in outputs_of(self.experiment.capture, usual.written, self.unknown):
            if one.kind is not DataType.BYTES and _lost(one.kind, self._bytes(one, usual)):
                return "the baseline's results are no numbers"
        return None

    def _bytes(self, output: Output, run: Seen) -> bytes:
        return b"".join(slices(self.regions, run.kept, output.ranges))

    def _compared(
        self, given: OtherInput, usual: _Usual, found: Seen, candidate: Path | None
    ) -> tuple[InputOutcome, str | None]:
        run, outputs = usual.run, usual.outputs
        beside = without(found.written, run.written)
        changed = differing(self.regions, run.kept, found.kept)
        added_nothing = common(without(common(beside, found.read_first), changed), self.regions)
        if beside := without(beside, added_nothing):
            return (
                InputOutcome.DIFFERENT,
                f"it writes {size_of(beside)} bytes that the baseline does not write",
            )
        if _variables(self.baseline, run) != _variables(self.baseline, found):
            return InputOutcome.DIFFERENT, "variables of the module differ"
        sides = [
            as_set(
                [(output, self._bytes(output, side)) for output in outputs if output.base in self.any_order]
            )
            for side in (run, found)
        ]
        if sides[0] != sides[1]:
            return InputOutcome.DIFFERENT, "other records are left, in whatever order"
        unlike = [
            output
            for output in outputs
            if output.base not in self.any_order
            and distances(output.kind, self._bytes(output, run), self._bytes(output, found)).any()
        ]
        for one in unlike:
            if one.kind is DataType.BYTES:
                return InputOutcome.DIFFERENT, f"{name_of(one)} differ"
        if not unlike:
            return InputOutcome.EQUAL, None
        return self._by_rounding(given, usual, unlike, found, candidate)

    def _by_rounding(
        self, given: OtherInput, usual: _Usual, unlike: Sequence[Output], found: Seen, candidate: Path | None
    ) -> tuple[InputOutcome, str | None]:
        """Whether rounding explains what differs."""
        run = usual.run
        ours, changed, halves = self._movements(given, usual)
        words = [f"{name_of(one)} differ" for one in unlike]
        if run.rounded and len(ours) < LEAST_ROUNDED:
            return (
                InputOutcome.UNKNOWN,
                f"{words[0]}; the baseline does other things when it rounds otherwise",
            )
        theirs: list[Seen] = []
        if run.rounded and candidate is not None:
            theirs = [self._run(given, candidate, *one, keep_halves=not halves) for one in OF_CANDIDATE]
        theirs = [their for their in theirs if self._same_but_for_rounding(usual.outputs, found, their)]
        told = []
        for one, word in zip(unlike, words, strict=True):
            expected, got = self._bytes(one, run), self._bytes(one, found)
            if one.base in halves and _lost(one.kind, expected, 0.0):
                return InputOutcome.DROPPED, "the baseline's own sums of 16 bits overflow"
            allowed: Any = bound(
                one.kind,
                expected,
                movement(one.kind, expected, [self._bytes(one, side) for side in ours]),
                movement(one.kind, got, [self._bytes(one, side) for side in theirs]),
                movement(one.kind, expected, [self._bytes(one, side) for side in changed]),
                rounded=run.rounded,
                halves=one.base in halves,
            ).clip(min=self.ulps * last_places(one.kind, numbers_of(one.kind, expected)))
            apart = distance(one.kind, expected, got)
            wrong = ~(apart <= allowed)
            at = int(wrong.argmax() if wrong.any() else apart.argmax())
            if wrong.any():
                exact = "" if allowed.any() else ", and the baseline rounds nothing there"
                return (
                    InputOutcome.DIFFERENT,
                    f"{word} by {apart[at]:.3g}, {allowed[at]:.3g} may be rounding{exact}",
                )
            told.append(f"{word} by at most {apart[at]:.3g}, {allowed[at]:.3g} may be rounding")
        return InputOutcome.ROUNDING, "; ".join(told)

    def _movements(self, given: OtherInput, usual: _Usual) -> tuple[list[Seen], list[Seen], frozenset[int]]:
        """Runs of the baseline that round otherwise, those with inputs that are a little larger or smaller,
        and where outputs begin that it computes in 16 bits."""
        if given.name not in self._rounded:
            ours: list[Seen] = []
            changed: list[Seen] = []
            halves: frozenset[int] = frozenset()
            if usual.run.rounded:
                there = {edit.address: edit.data for edit in given.edits}
                floats = [
                    (place, kind, there.get(place.address, was)) for place, kind, was in self.drawn.floats
                ]
                ours = [self._run(given, self.code, *one) for one in OF_BASELINE]
                kept = self._run(given, self.code, *OF_BASELINE[0], keep_halves=True)
                if ours[0].failure is None and kept.failure is None:
                    sides = (usual.run, ours[0], kept)
                    halves = frozenset(
                        output.base
                        for output in usual.outputs
                        if output.kind is not DataType.BYTES
                        and computes_in_halves(output.kind, *(self._bytes(output, side) for side in sides))
                    )
                changed = [
                    self._run(given, self.code, changes=changed_inputs(floats, draw))
                    for draw in range(INPUT_DRAWS)
                ]
            alike = [
                [run for run in runs if self._same_but_for_rounding(usual.outputs, usual.run, run)]
                for runs in (ours, changed)
            ]
            self._rounded[given.name] = alike[0], alike[1], halves
        return self._rounded[given.name]

    def _same_but_for_rounding(self, outputs: Sequence[Output], usual: Seen, run: Seen) -> bool:
        if run.failure is not None or (run.written, run.read_first) != (usual.written, usual.read_first):
            return False
        exact = [
            output
            for output in outputs
            if output.kind is DataType.BYTES and output.base not in self.any_order
        ]
        return all(self._bytes(one, usual) == self._bytes(one, run) for one in exact)


def _variables(baseline: Baseline, run: Seen) -> list[bytes]:
    return [variable.data for variable in run.variables if variable.name in baseline.writes.variables]


def _lost(kind: DataType, content: bytes, most: float = 0.5) -> bool:
    """More than this part is no number. Of more than half nothing would show."""
    import numpy as np

    return bool((~np.isfinite(numbers_of(kind, content))).mean() > most)
