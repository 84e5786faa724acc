"""Whether the files of a session are those that its ledger tells of, and which ones it does not tell of.

Sources, programs, recordings and what a proposer keeps are bound when they are made, everything else by the
last line of a session. What came later, or was made by a session that was killed, is not bound, and is named.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, get_args

import attrs
from pydantic import Field, ValidationError

from rpl_core.contracts.common import Part
from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.files import read_regular, sha256_of, write_atomic
from rpl_core.values import frozen
from rpl_measure.manifest import read_manifest
from rpl_optimize.contracts import (
    AcceptedData,
    BaselineProfiledData,
    BuiltData,
    CheckedData,
    ContinuedData,
    EvidencePart,
    FinishedData,
    GrowingPart,
    GuardedData,
    MeasuredData,
    MeasurementPart,
    ModelledData,
    OptimizeDocument,
    PlacementData,
    PlannedData,
    PlannedStage,
    ProposedData,
    RolledBackData,
    SessionStartedData,
)
from rpl_optimize.ledger.lines import CONTRACTS, LedgerEntry, LedgerEvent, read_ledger
from rpl_optimize.session_layout import BASELINES, CANDIDATES, DOCUMENT, LEDGER, ORIGINAL, REQUEST

SIGNATURE: Final = "ledger.sig"
_ALGORITHM: Final = "hmac-sha256"
#: Four short values.
_MOST_SIGNATURE_BYTES: Final = 1 << 16
#: RFC 2104: keys shorter than the hash weaken it. Longer than this is no key.
LEAST_KEY_BYTES, MOST_KEY_BYTES = 32, 1 << 16


class _Signature(Part):
    """``ledger.sig``."""

    algorithm: str
    lines: int = Field(ge=1)
    last_sha256: str
    signature: str


def read_key(path: Path) -> bytes:
    """The bytes of a key's file. Raises ``MissingError`` or ``UsageError``."""
    try:
        with path.open("rb") as file:
            key = file.read(MOST_KEY_BYTES + 1)
    except OSError as error:
        raise MissingError(f"cannot read the key {path}: {error.strerror}") from error
    if not LEAST_KEY_BYTES <= len(key) <= MOST_KEY_BYTES:
        raise UsageError(
            f"{path} holds {min(len(key), MOST_KEY_BYTES)} bytes or more, a key has {LEAST_KEY_BYTES} to "
            f"{MOST_KEY_BYTES}",
            next_step=f"make one: head -c {LEAST_KEY_BYTES} /dev/urandom > KEY",
        )
    return key


def sign(ledger: Path, key: bytes, lines: int, last_sha256: str) -> None:
    """Write the signature beside the ledger."""
    made = _Signature(
        algorithm=_ALGORITHM, lines=lines, last_sha256=last_sha256, signature=_over(key, lines, last_sha256)
    )
    write_atomic(ledger.with_name(SIGNATURE), json.dumps(made.model_dump(), indent=1) + "\n")


def signature_problem(ledger: Path, key: bytes, lines: int, last_sha256: str) -> str | None:
    """Why the signature beside a ledger is not that of its lines with this key."""
    path = ledger.with_name(SIGNATURE)
    try:
        signature = _Signature.model_validate_json(read_regular(path, _MOST_SIGNATURE_BYTES))
    except MissingError:
        return f"it is not signed: there is no {SIGNATURE}"
    except (BadDataError, ValidationError) as error:
        return f"{SIGNATURE} can't be read: {type(error).__name__}"
    if signature.algorithm != _ALGORITHM:
        return f"{SIGNATURE} was made by {signature.algorithm[:40]!r}, not by {_ALGORITHM}"
    if not hmac.compare_digest(signature.signature, _over(key, signature.lines, signature.last_sha256)):
        return "its signature was not made with this key"
    if (signature.lines, signature.last_sha256) != (lines, last_sha256):
        return f"the signed ledger has {signature.lines} lines and another end than this one with {lines}"
    return None


def _over(key: bytes, lines: int, last_sha256: str) -> str:
    return hmac.new(key, f"rpl-ledger {lines} {last_sha256}".encode(), hashlib.sha256).hexdigest()


#: Far above what a session writes.
_MOST_BYTES = 64 << 20
#: The chain itself, what signs it, and what is worked out from it again.
_OF_THE_LEDGER = frozenset({LEDGER, SIGNATURE, DOCUMENT})


@attrs.define
class SessionFiles:
    """``problems`` are (line of the ledger, sentence); ``checked`` counts files.

    ``not_bound`` are files and folders of which the ledger says nothing.
    """

    root: Path
    problems: list[tuple[int, str]] = attrs.field(factory=list)
    checked: int = 0
    not_bound: tuple[str, ...] = ()
    _bound: set[str] = attrs.field(factory=set)
    _records: dict[str, tuple[int, GrowingPart]] = attrs.field(factory=dict)
    _last: tuple[int, FinishedData] | None = None
    _sources: dict[int, str] = attrs.field(factory=dict)
    _decided: dict[int, tuple[str, str]] = attrs.field(factory=dict)
    _finished: bool = False
    _went_on: set[str] = attrs.field(factory=set)

    def take(self, line: int, data: Part) -> None:
        for name, digest in _bound_files(data):
            self._compare(line, name, digest, sha256_of, ("", "the recorded one"))
        for name, digest in _recordings(data).items():
            self._compare(
                line, name, digest, digest_of_recording, ("the recording ", "the one that was made")
            )
        if isinstance(data, ProposedData):
            self._records.update((name, (line, part)) for name, part in data.records.items())
            self._sources[data.candidate] = data.source_sha256
        elif isinstance(data, AcceptedData):
            self._decided[data.candidate] = (data.source_sha256, "accepted")
        elif isinstance(data, RolledBackData):
            self._decided[data.candidate] = (self._sources.get(data.candidate, ""), data.verdict)
        elif isinstance(data, PlannedData) and data.directory is not None:
            self._compare_plan(line, data, data.directory)
        # Without a verdict it was interrupted: the result may be behind the decisions.
        self._finished = isinstance(data, FinishedData) and data.verdict is not None
        if isinstance(data, FinishedData):
            self._last = line, data
            self._went_on.clear()
        elif isinstance(data, ContinuedData) and data.directory is not None:
            self._went_on.add(data.directory)

    def _compare(
        self, line: int, name: str, digest: str, digest_of: Callable[[Path], str], words: tuple[str, str]
    ) -> None:
        what, expected = words
        path = self.root / name
        self.checked += 1
        self._bound.add(name)
        try:
            if self._is_outside(path.parent):
                self.problems.append((line, f"{name} lies outside of the session"))
            elif digest_of(path) != digest:
                self.problems.append((line, f"{what}{name} is not {expected}"))
        except OSError as error:
            self.problems.append((line, f"{what}{name} can't be read: {error.strerror}"))

    def _is_outside(self, directory: Path) -> bool:
        return not directory.resolve().is_relative_to(self.root.resolve())

    def _compare_plan(self, line: int, plan: PlannedData, directory: str) -> None:
        """A measurement lies where its plan says: who deletes one can't have it begin anew unseen."""
        path = self.root / directory
        self.checked += 1
        what = f"{directory}, the {plan.stage} of candidate {plan.candidate},"
        try:
            if self._is_outside(path):
                self.problems.append((line, f"{what} lies outside of the session"))
            elif read_manifest(path).seed != plan.seed:
                self.problems.append((line, f"{what} is another measurement than the planned one"))
        except (BadDataError, MissingError, OSError) as error:
            reason = error.fact if isinstance(error, RplError) else error.strerror
            self.problems.append((line, f"{what} can't be read: {reason}"))

    def end(self, line: int) -> None:
        """Compare the result with the decisions; of a session under way it may be behind."""
        self._compare_rest(line)
        self.checked += 1
        try:
            document = OptimizeDocument.model_validate_json(read_regular(self.root / DOCUMENT, _MOST_BYTES))
        except (BadDataError, MissingError, ValidationError) as error:
            self.problems.append((line, f"{DOCUMENT} can't be read: {type(error).__name__}"))
            return
        stated = {c.number: (c.source_sha256, c.judgement.verdict) for c in document.candidates}
        different = [n for n, fact in stated.items() if self._decided.get(n, fact) != fact]
        # An interrupted session writes candidates without a decision; none of them is an accepted one.
        different += [
            n for n, (_, verdict) in stated.items() if n not in self._decided and verdict == "accepted"
        ]
        missing = [n for n in self._decided if n not in stated and self._finished]
        for number in sorted((*different, *missing)):
            self.problems.append((line, f"{DOCUMENT} says something else of candidate {number}"))

    def _compare_rest(self, line: int) -> None:
        """What proposers keep as far as it was told, and all that the last line of the session binds."""
        ended, finished = (
            (0, FinishedData(termination_reason="interrupted")) if not self._last else self._last
        )
        for name, digest in finished.files.items():
            # What a proposer keeps goes on growing when an interrupted session does, and so do its pairs.
            grows = any(PurePosixPath(place).is_relative_to(name) for place in self._went_on)
            if ended == line or (name not in self._records and not grows):
                words = ("", "as it was when the session ended")
                self._compare(ended, name, digest, _digest_of, words)
        for name, (told, part) in self._records.items():
            if name not in finished.files or ended != line:
                grown = partial(_sha256_of_first, size_bytes=part.size_bytes)
                self._compare(told, name, part.sha256, grown, ("the beginning of ", "the recorded one"))
                if self._is_longer(name, part.size_bytes):
                    self.not_bound += (f"{name} behind its first {part.size_bytes} bytes",)
        self.not_bound += tuple(unbound(self.root, frozenset(self._bound)))

    def _is_longer(self, name: str, size_bytes: int) -> bool:
        path = self.root / name
        return path.is_file() and path.stat().st_size > size_bytes


def bound_by(ledger: Path) -> frozenset[str]:
    """Files and folders, relative to the session's directory, of which ``ledger`` holds hashes."""
    bound: set[str] = set()
    for entry in read_ledger(ledger):
        data = CONTRACTS[entry.event].model_validate(entry.data)
        bound.update(name for name, _ in _bound_files(data))
        bound.update(_recordings(data))
    return frozenset(bound)


def unbound(root: Path, bound: frozenset[str]) -> Mapping[str, str]:
    """All else in ``root`` with a hash over each: files, and folders in which nothing is bound as a whole."""
    found: dict[str, str] = {}
    opened = {parent.as_posix() for name in bound for parent in PurePosixPath(name).parents}
    opened |= {".", BASELINES, CANDIDATES}
    folders = [root]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            name = path.relative_to(root).as_posix()
            if name in bound or name in _OF_THE_LEDGER:
                continue
            if path.is_dir() and not path.is_symlink() and name in opened:
                folders.append(path)
            else:
                found[name] = _digest_of(path)
    return dict(sorted(found.items()))


def growing_files(root: Path) -> Mapping[str, GrowingPart]:
    """Files that a proposer keeps beside the session's own, as they are now."""
    paths = sorted(path for path in root.iterdir() if path.is_file() and not path.is_symlink())
    others = [path for path in paths if path.name not in _OF_THE_LEDGER | {REQUEST}]
    return {path.name: GrowingPart(size_bytes=path.stat().st_size, sha256=sha256_of(path)) for path in others}


def _digest_of(path: Path) -> str:
    """Of a file, a link or a whole folder."""
    if path.is_symlink():
        return hashlib.sha256(b"link " + os.fsencode(path.readlink())).hexdigest()
    if path.is_dir():
        return digest_of_recording(path)
    if path.exists() and not path.is_file():  # a pipe: reading it would wait
        return hashlib.sha256(b"no file").hexdigest()
    return sha256_of(path)


def _sha256_of_first(path: Path, size_bytes: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while size_bytes > 0 and (block := stream.read(min(size_bytes, 1 << 20))):
            digest.update(block)
            size_bytes -= len(block)
    return digest.hexdigest()


def digest_of_recording(directory: Path) -> str:
    """A hash over the names and contents of all files below ``directory``, whatever their order on the disk.

    Of a link its target's name counts. Raises ``OSError``.
    """
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            content = b"link " + os.fsencode(path.readlink())
        elif path.is_file():
            content = sha256_of(path).encode()
        else:
            continue
        digest.update(b"%s\0%s\n" % (os.fsencode(path.relative_to(directory)), content))
    if not directory.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory))
    return digest.hexdigest()


def verify_session_files(root: Path) -> SessionFiles:
    """Raises as ``read_ledger`` does. Nothing is checked where the ledger lies alone."""
    files = SessionFiles(root)
    if not (root / ORIGINAL).is_dir():
        return files
    line = 0
    for entry in read_ledger(root / LEDGER):
        line = entry.sequence
        files.take(line, CONTRACTS[entry.event].model_validate(entry.data))
    files.end(line)
    return files


def _recordings(data: Part) -> Mapping[str, str]:
    if isinstance(data, BaselineProfiledData | MeasuredData | PlacementData | ModelledData):
        return data.recordings
    return {}


def _bound_files(data: Part) -> Iterator[tuple[str, str]]:
    """Files with their hashes, relative to the session's directory."""
    if isinstance(data, SessionStartedData):
        yield f"{ORIGINAL}/{data.source.rpartition('/')[2]}", data.source_sha256
        if data.request_sha256 is not None:
            yield REQUEST, data.request_sha256
    elif isinstance(data, ProposedData) and data.source is not None:
        yield data.source, data.source_sha256
    elif isinstance(data, BaselineProfiledData | BuiltData) and data.build is not None:
        build = data.build
        if build.binary is not None and build.binary_sha256 is not None:
            yield build.binary, build.binary_sha256


# What the stages of each candidate recorded when they ran, and what had been planned before.

#: Measurements that come without guards of the hardware.
_ALONE_OR_AGAIN = {LedgerEvent.TIMED_ALONE: "kernel_alone", LedgerEvent.REMEASURED: "remeasurement"}


@frozen
class Begun:
    """What was measured of one program against one version to beat, however often both were built.

    ``parts`` are members of ``EvidencePart`` by their names; ``plans`` those by stage and padding.
    """

    code_sha256: str | None
    base_code_sha256: str | None
    parts: Mapping[str, object] = attrs.field(factory=dict)
    plans: Mapping[tuple[PlannedStage, int | None], PlannedData] = attrs.field(factory=dict)

    @property
    def finished(self) -> tuple[PlannedStage, ...]:
        return tuple(stage for stage in get_args(PlannedStage) if stage in self.parts)

    @property
    def under_way(self) -> tuple[PlannedData, ...]:
        """Planned, with a directory, and without a result; in order."""
        return tuple(p for p in self.plans.values() if p.stage not in self.parts and p.directory is not None)


@attrs.define(eq=False)
class RecordedEvidence:
    """Takes every event in order. A proposal begins a candidate anew, and a build tries it anew.

    What was measured before the build counts on where the ledger says so (``continued``) and both programs
    are the same as then.
    """

    _found: dict[int, EvidencePart] = attrs.field(factory=dict)
    _begun: dict[int, Begun] = attrs.field(factory=dict)
    _base_code: str | None = None

    def of(self, candidate: int) -> EvidencePart:
        """As far as its last attempt came."""
        return self._found.get(candidate, EvidencePart())

    def begun(self, candidate: int) -> Begun | None:
        """What a session that is resumed may go on with."""
        return self._begun.get(candidate)

    def take(self, event: LedgerEvent, data: Part) -> None:
        if isinstance(data, ProposedData):
            self._found[data.candidate] = EvidencePart()
            self._begun.pop(data.candidate, None)
        elif isinstance(data, BaselineProfiledData):
            self._base_code = None if data.build is None else data.build.code_sha256
        elif isinstance(data, BuiltData):
            guards = self.of(data.candidate).source_guards
            self._found[data.candidate] = EvidencePart(source_guards=guards, build=data.build)
            begun, code = self._begun.get(data.candidate), data.build.code_sha256
            programs = None if begun is None else (begun.code_sha256, begun.base_code_sha256)
            if programs != (code, self._base_code):
                self._begun[data.candidate] = Begun(code, self._base_code)
        elif isinstance(data, GuardedData):
            source = event is LedgerEvent.SOURCE_GUARDED
            self._add(data.candidate, **{"source_guards" if source else "binary_guards": data.guards})
        elif isinstance(data, CheckedData):
            self._add(data.candidate, checks=data.checks)
        elif isinstance(data, ModelledData):
            self._add(data.candidate, modelled=data.modelled)
        elif isinstance(data, PlannedData):
            self._take_plan(data)
        elif isinstance(data, ContinuedData):
            begun = self._begun.get(data.candidate)
            self._add(data.candidate, **({} if begun is None else begun.parts))
        else:
            self._take_measured(event, data)

    def _take_measured(self, event: LedgerEvent, data: Part) -> None:
        if isinstance(data, PlacementData):
            self._add_measured(data.candidate, placement=data.placement)
        elif isinstance(data, MeasuredData) and event in _ALONE_OR_AGAIN:
            self._add_measured(data.candidate, **{_ALONE_OR_AGAIN[event]: data.measurement})
        elif isinstance(data, MeasuredData):
            guards = data.architecture_guards
            self._add_measured(data.candidate, measurement=data.measurement, architecture_guards=guards)

    def _take_plan(self, data: PlannedData) -> None:
        begun = self._begun.get(data.candidate)
        if begun is None:
            return
        stays = {"kernel_alone"} if data.stage == "measurement" else {*get_args(PlannedStage)}
        if data.stage != "measurement":  # else all that rests on an earlier one is void
            stays |= {*begun.parts}
        parts = {name: part for name, part in begun.parts.items() if name in stays - {data.stage}}
        plans = {key: plan for key, plan in begun.plans.items() if key[0] in stays}
        plans[data.stage, data.padding_bytes] = data
        self._begun[data.candidate] = attrs.evolve(begun, parts=parts, plans=plans)

    def _add_measured(self, candidate: int, **parts: object) -> None:
        self._add(candidate, **parts)
        begun = self._begun.get(candidate)
        if begun is not None:
            self._begun[candidate] = attrs.evolve(begun, parts={**begun.parts, **parts})

    def _add(self, candidate: int, **parts: object) -> None:
        self._found[candidate] = self.of(candidate).model_copy(update=parts)


# Whatever was measured must have been planned before: rule, order and number of pairs.

#: A plan by its candidate, its stage and the padding of the code.
_Key = tuple[int, str, int | None]


_STAGES: Mapping[LedgerEvent, PlannedStage] = {
    LedgerEvent.TIMED_ALONE: "kernel_alone",
    LedgerEvent.MEASURED: "measurement",
    LedgerEvent.REMEASURED: "remeasurement",
}


def seed_after(sha256: str) -> int:
    """The seed of the plan behind the line with this hash."""
    return int(sha256[:8], 16)


@attrs.define(eq=False)
class Plans:
    """Takes every event in order, after ``recorded`` took it, and says what is wrong with each.

    A build makes a candidate's plans void, unless what was begun of the same program is gone on with.
    """

    _recorded: RecordedEvidence
    _pairs: dict[_Key, int] = attrs.field(factory=dict)
    _plans: dict[_Key, PlannedData] = attrs.field(factory=dict)

    def take(self, entry: LedgerEntry, data: Part) -> Iterator[str]:
        if isinstance(data, BuiltData):
            self._plans = {key: plan for key, plan in self._plans.items() if key[0] != data.candidate}
        elif isinstance(data, PlannedData):
            if data.seed != seed_after(entry.previous_sha256):
                yield f"the order of candidate {data.candidate} does not follow from the line before"
            key = (data.candidate, data.stage, data.padding_bytes)
            self._plans[key] = data
            self._pairs.pop(key, None)
        elif isinstance(data, ContinuedData):
            yield from self._take_continued(data)
        elif isinstance(data, MeasuredData):
            yield from self._check((data.candidate, _STAGES[entry.event], None), data.measurement)
        elif isinstance(data, PlacementData):
            for shift in data.placement.shifts:
                place = (data.candidate, "placement", shift.padding_bytes)
                yield from self._check(place, shift.measurement)

    def _take_continued(self, data: ContinuedData) -> Iterator[str]:
        begun = self._recorded.begun(data.candidate)
        plans = {} if begun is None else begun.plans
        self._plans.update({(data.candidate, *key): plan for key, plan in plans.items()})
        if data.under_way is None:
            return
        key = (data.candidate, data.under_way, data.padding_bytes)
        plan = self._plans.get(key)
        if plan is None or plan.directory != data.directory:
            yield f"the {data.under_way} of candidate {data.candidate} goes on, and was not begun before"
        if data.pairs < self._pairs.get(key, 0):
            yield f"the {data.under_way} of candidate {data.candidate} lost pairs while it was interrupted"
        self._pairs[key] = data.pairs

    def _check(self, key: _Key, part: MeasurementPart) -> Iterator[str]:
        plan = self._plans.get(key)
        # Sessions of older versions planned nothing, and what was not run needs no plan.
        unplanned = part.seed is None and not part.rule.screening and key[1] != "placement"
        if plan is None:
            if not unplanned:
                yield f"the {key[1]} of candidate {key[0]} was not planned before"
        elif (part.seed, part.rule) != (plan.seed, plan.rule):
            yield f"the {key[1]} of candidate {key[0]} is not the one that was planned"
        elif part.problem is None and len(part.log_ratios) < self._pairs.get(key, 0):
            yield f"the {key[1]} of candidate {key[0]} lost pairs while it was interrupted"
