"""A session's directory worked out again: its document from the ledger, its times from the recordings.

The ledger's own contradictions are ``rpl_optimize.ledger.verify``'s, changed files ``session_files``'s. No
figure of ``optimize.json`` is trusted here: the document is made anew from the ledger and compared whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.contracts.dag import DagDocument
from rpl_core.contracts.common import SCHEMA_VERSION, Part
from rpl_core.documents import to_json
from rpl_core.errors import RplError
from rpl_core.files import read_regular
from rpl_measure.interleaved import MOST_REPEATED_PAIRS
from rpl_measure.manifest import ComparisonManifest, read_manifest, repeated_pairs
from rpl_measure.sequential import new_first
from rpl_measure.side import stored_sides
from rpl_optimize.contracts import (
    AcceptedData,
    BaselineProfiledData,
    BuiltData,
    EvidencePart,
    FinishedData,
    JudgedData,
    MeasuredData,
    MeasurementPart,
    ModelledData,
    OptimizeDocument,
    PlacementData,
    ProposedData,
    ResumedData,
    RolledBackData,
    SessionStartedData,
    TargetChosenData,
    WrittenData,
)
from rpl_optimize.ledger.lines import CONTRACTS, LedgerEntry, LedgerEvent, read_ledger
from rpl_optimize.ledger.verify import alike, measurements_of
from rpl_optimize.loop.baseline import predicted_gain, rank_targets
from rpl_optimize.loop.measuring import best_by_model
from rpl_optimize.loop.state import Folding, LoopState, Resumed
from rpl_optimize.measurement.measure import times_of
from rpl_optimize.session_layout import DOCUMENT, LEDGER, ORIGINAL
from rpl_optimize.transform import MAX_SOURCE_BYTES

if TYPE_CHECKING:
    from rpl_core.ingest.claims import Readers

#: A document of thousands of candidates; a longer one is none (chosen).
_MOST_BYTES = 64 << 20
_LONGEST_VALUE = 80


@attrs.define
class RecordedSession:
    """``problems`` are (line of the ledger, sentence), ``notes`` what could not be worked out again."""

    root: Path
    readers: Callable[[], Readers]
    problems: list[tuple[int, str]] = attrs.field(factory=list)
    notes: list[tuple[int, str]] = attrs.field(factory=list)
    _document: _RecordedDocument | None = None
    _binds: bool = False
    _baseline: BaselineProfiledData | None = None
    _target: TargetChosenData | None = None
    _of_candidate: tuple[BaselineProfiledData | None, TargetChosenData | None] = (None, None)
    _evidence: EvidencePart | None = None

    def take(self, entry: LedgerEntry) -> None:
        line, data = entry.sequence, CONTRACTS[entry.event].model_validate(entry.data)
        self._fold(line, data)
        if isinstance(data, BaselineProfiledData):
            self._baseline = data
            self._compare_baseline(line, data)
        elif isinstance(data, TargetChosenData):
            self._target = data
            self._compare_target(line, data)
        elif isinstance(data, ProposedData | BuiltData):  # a resumed session profiles and builds again
            self._of_candidate, self._evidence = (self._baseline, self._target), None
        elif isinstance(data, JudgedData):
            self._evidence = data.evidence
        elif isinstance(data, AcceptedData | RolledBackData):
            self._compare_prediction(line, data)
        elif entry.event is LedgerEvent.TIMED_ALONE:
            self._note(line, "times of the kernel alone are not worked out again: they are a check's own")
        elif isinstance(data, MeasuredData | PlacementData):
            for part in measurements_of(data):
                self._compare_times(line, part, frozenset(data.recordings))
        elif isinstance(data, ModelledData):
            self._note(line, f"the model's figures of candidate {data.candidate} are not worked out again")

    def _fold(self, line: int, data: Part) -> None:
        try:
            if isinstance(data, SessionStartedData):
                self._binds = data.request_sha256 is not None
                self._document = _RecordedDocument.of(self.root, data)
            elif self._document is not None:
                self._document.take(data)
        except (RplError, OSError) as error:
            self._object(line, f"{DOCUMENT} can't be made again: {_fact(error)}")
            self._document = None

    def end(self, line: int) -> None:
        """Compare ``optimize.json``."""
        path = self.root / DOCUMENT
        try:
            with path.open("rb") as stream:
                told = _strict_json(stream.read(_MOST_BYTES))
        except (OSError, ValueError, RecursionError) as error:
            self._object(line, f"{DOCUMENT} can't be read: {_fact(error)}")
            return
        if self._document is not None:
            found = [list(_differences(told, one, "")) for one in self._document.possible()]
            for difference in min(found, key=len):
                self._object(line, f"{DOCUMENT} {difference} by the ledger")

    # --- from recordings -------------------------------------------------------------------------------

    def _compare_times(self, line: int, part: MeasurementPart, recorded: frozenset[str]) -> None:
        if part.problem is not None:
            return
        if part.directory is None or part.directory not in recorded:
            self._unbound(line, "these times are")
            return
        try:
            base, new = stored_sides(self.root / part.directory, self.readers())
            times = times_of(base, new, part.kernel)
            manifest = read_manifest(self.root / part.directory)
        except (RplError, OSError) as error:
            self._note(line, f"these times are not worked out again: {_fact(error)}")
            return
        if repeated_pairs(manifest) > MOST_REPEATED_PAIRS:
            self._object(line, f"more pairs in {part.directory} were measured again than may be")
        swapped = _order(manifest)
        if part.seed is not None and swapped != new_first(part.seed, len(swapped)):
            self._object(line, f"the pairs in {part.directory} were not measured in the order of its seed")
        told = {
            "base_ns": part.base_ns,
            "new_ns": part.new_ns,
            "guards": part.guards,
            "origin": part.origin,
        }
        again: dict[str, object] = {
            "base_ns": tuple(pair[0] for pair in times.kernel),
            "new_ns": tuple(pair[1] for pair in times.kernel),
            "guards": times.guard_log_ratios,
            "origin": None if times.origin is None else times.origin.value,
        }
        for name in (name for name in told if not alike(told[name], again[name])):
            self._object(line, f"{name} is not what the recordings in {part.directory} give")

    def _compare_prediction(self, line: int, data: AcceptedData | RolledBackData) -> None:
        baseline, target = self._of_candidate
        fresh = None if self._evidence is None else self._evidence.remeasurement
        if fresh is None or fresh.look is None:
            if data.predicted_gain is not None:
                self._object(line, f"a gain of candidate {data.candidate} is predicted from no measurement")
            return
        if data.predicted_gain is None and isinstance(data, RolledBackData):
            return  # settled by a session that was resumed, which predicts nothing
        name = None if baseline is None else f"{baseline.directory}/profile"
        if baseline is None or target is None or target.kernel is None or name not in baseline.recordings:
            self._unbound(line, "the predicted gain is")
            return
        try:
            again = predicted_gain((self.root / name,), self.readers(), target.kernel, fresh.look.ratio)
        except (RplError, OSError) as error:
            self._note(line, f"the predicted gain is not worked out again: {_fact(error)}")
            return
        if not alike(data.predicted_gain, again.gain):
            self._object(
                line,
                f"the predicted gain of candidate {data.candidate} is {data.predicted_gain!r}, "
                f"{again.gain!r} by the baseline's recording",
            )

    def _compare_baseline(self, line: int, data: BaselineProfiledData) -> None:
        """Against the documents that lie, bound, with its recording."""
        dag = self._dag(line, data)
        if dag is None:
            return
        told = {"origin": data.origin, "makespan_ns": data.makespan_ns, "dominant": data.dominant}
        again = {"origin": dag.origin, "makespan_ns": dag.makespan_ns, "dominant": dag.dominant_symbol}
        for name in (name for name in told if not alike(told[name], again[name])):
            self._object(line, f"{name} of baseline {data.number} is not that of its dag.json")

    def _compare_target(self, line: int, data: TargetChosenData) -> None:
        dag = None if self._baseline is None or data.kernel is None else self._dag(line, self._baseline)
        if dag is None:
            return
        try:
            gains = {target.recorded: target.ceiling_gain for target in rank_targets(dag)}
        except RplError:
            gains = {}
        if not all(alike(t, gains.get(data.kernel or "")) for t in (data.ceiling_gain, data.share_of_path)):
            self._object(
                line, f"the ceiling of {str(data.kernel)[:80]!r} is not that of the baseline's dag.json"
            )

    def _dag(self, line: int, data: BaselineProfiledData) -> DagDocument | None:
        name = f"{data.directory}/profile"
        if name not in data.recordings:
            return None
        try:
            with (self.root / name / "dag.json").open("rb") as stream:
                return DagDocument.model_validate_json(stream.read(_MOST_BYTES))
        except (OSError, ValueError) as error:
            self._note(line, f"the baseline's figures are not worked out again: {_fact(error)}")
            return None

    def _unbound(self, line: int, what: str) -> None:
        """Sessions of older versions bound no recordings; whoever binds the request binds them too."""
        told = self._object if self._binds else self._note
        told(line, f"{what} not worked out again: no recording is bound")

    def _object(self, line: int, problem: str) -> None:
        self.problems.append((line, problem))

    def _note(self, line: int, text: str) -> None:
        self.notes.append((line, text))


def verify_recorded_session(root: Path, readers: Callable[[], Readers]) -> RecordedSession:
    """Raises as ``read_ledger`` does. A directory with a ledger alone has nothing to compare."""
    session = RecordedSession(root, readers)
    if not (root / ORIGINAL).is_dir() and not (root / DOCUMENT).exists():
        return session
    line = 0
    for entry in read_ledger(root / LEDGER):
        line = entry.sequence
        session.take(entry)
    session.end(line)
    return session


@attrs.define
class _RecordedDocument:
    """``optimize.json`` at each event that writes it. A session that was killed may lag behind by one."""

    started: SessionStartedData
    folding: Folding
    written: list[OptimizeDocument]
    ended: FinishedData | None = None
    last_written: WrittenData | None = None

    @classmethod
    def of(cls, root: Path, started: SessionStartedData) -> _RecordedDocument:
        original = read_regular(root / ORIGINAL / PurePath(started.source).name, MAX_SOURCE_BYTES)
        folding = Folding(root, Resumed(original, LoopState(original), started.policy))
        first = OptimizeDocument(
            schema_version=SCHEMA_VERSION,
            command=started.command,
            source=started.source,
            source_sha256=started.source_sha256,
            proposer=started.proposer,
            state="running",
        )
        return cls(started, folding, [first])

    def take(self, data: Part) -> None:
        self.folding.take_data(data)
        self.ended = None
        if isinstance(data, RolledBackData):
            self._write(candidates=self._candidates)
        elif isinstance(data, WrittenData):
            self.last_written = data
            self._write(candidates=self._candidates, accepted_source=data.path, backup=data.backup)
        elif isinstance(data, ResumedData):
            self.written.append(self._running())
        elif isinstance(data, FinishedData):
            self.ended = data
            self._write(
                state="finished",
                termination_reason=data.termination_reason,
                termination_detail=data.termination_detail,
                verdict=data.verdict,
                candidates=self._candidates,
                modelled_source=self._modelled_source(),
                dominance_shifts=tuple(self.folding.state.shifts),
            )

    def possible(self) -> list[Any]:
        """What may stand in the file, as JSON values; of a finished session one thing only."""
        if self.ended is not None and self.ended.verdict is not None:
            documents = self.written[-1:]
        else:
            documents = [*self.written[-2:], self._running()]
        return [json.loads(to_json(document)) for document in documents]

    @property
    def _candidates(self) -> tuple[Any, ...]:
        return tuple(self.folding.state.candidates)

    def _write(self, **changes: object) -> None:
        self.written.append(self.written[-1].model_copy(update=changes))

    def _running(self) -> OptimizeDocument:
        """What a resumed session writes first."""
        last = self.last_written
        return self.written[0].model_copy(
            update={
                "candidates": self._candidates,
                "accepted_source": None if last is None else last.path,
                "backup": None if last is None else last.backup,
                "dominance_shifts": tuple(self.folding.state.shifts),
            }
        )

    def _modelled_source(self) -> str | None:
        if best_by_model(self._candidates) is None:
            return None
        source, suffix = PurePath(self.started.source), self.started.options.get("suffix", "")
        return f"{source.stem}{suffix}{source.suffix}"


def _order(manifest: ComparisonManifest) -> tuple[bool, ...]:
    """Of each complete pair, whether the new version ran first."""
    sides: dict[int, list[str]] = {}
    for observation in manifest.observations:
        if observation.pair >= 0 and observation.complete:
            sides.setdefault(observation.pair, []).append(observation.side)
    return tuple(pair[0] == "new" for _, pair in sorted(sides.items()) if len(pair) > 1)


def _strict_json(content: bytes) -> Any:
    """Without what readers take differently: repeated names, NaN and infinity. Raises ``ValueError``."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("a name is repeated")
        return dict(pairs)

    def refuse(name: str) -> object:
        raise ValueError(f"{name} is no number")

    return json.loads(content, object_pairs_hook=once, parse_constant=refuse)


def _differences(told: Any, given: Any, place: str) -> Iterator[str]:
    """Sentences about each place where ``told`` is not ``given``."""
    if isinstance(told, dict) and isinstance(given, dict):
        for name in sorted({*told, *given}):
            here = f"{place}.{name}" if place else name
            if name not in told or name not in given:
                yield f"lacks {here}, which is given" if name in given else f"has {here}, which is not given"
            else:
                yield from _differences(told[name], given[name], here)
    elif isinstance(told, list) and isinstance(given, list) and len(told) == len(given):
        for number, (left, right) in enumerate(zip(told, given, strict=True)):
            yield from _differences(left, right, f"{place}[{number}]")
    elif isinstance(told, bool) is not isinstance(given, bool) or not alike(told, given):
        yield f"says {place} is {_shown(told)}, it is {_shown(given)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _fact(error: Exception) -> str:
    if isinstance(error, RplError):
        return error.fact
    strerror = error.strerror if isinstance(error, OSError) else None
    return strerror or type(error).__name__
