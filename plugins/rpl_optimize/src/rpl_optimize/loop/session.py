"""One session: what was asked, its directory and ledger, and where the accepted source is written.

The directory holds the ledger, the document that sums it up, and copies of every source.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import hashlib
import itertools
import os
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rpl_core import __version__
from rpl_core.contracts.common import SCHEMA_VERSION, Part
from rpl_core.documents import to_json
from rpl_core.errors import BadDataError, RplError
from rpl_core.files import sha256_of, storage_error, write_atomic
from rpl_core.text import encodable, masked_words
from rpl_core.values import frozen
from rpl_optimize.contracts import (
    BuildPart,
    CandidatePart,
    EvidencePart,
    JudgementPart,
    OptimizeDocument,
    PolicyPart,
    TerminationName,
    VerdictName,
)
from rpl_optimize.ledger.lines import Ledger, LedgerEvent
from rpl_optimize.ledger.session_files import (
    bound_by,
    digest_of_recording,
    growing_files,
    seed_after,
    unbound,
)
from rpl_optimize.session_layout import DOCUMENT, ORIGINAL, REQUEST

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import Collector, LineSink
    from rpl_core.pipeline import AnalysisRequest
    from rpl_core.plugins.host import Contribution, PluginHost
    from rpl_core.profiling import StepSink
    from rpl_optimize.build.builders import ProgramBuilder
    from rpl_optimize.equivalence.stage import EquivalenceStage
    from rpl_optimize.interfaces.builder import BuildRequest
    from rpl_optimize.interfaces.equivalence import EquivalenceOptions
    from rpl_optimize.interfaces.metric import Metric
    from rpl_optimize.interfaces.proposer import Proposer
    from rpl_optimize.loop.baseline import Baseline, Target
    from rpl_optimize.loop.proposing import Proposed
    from rpl_optimize.loop.state import Resumed

# What the user asked the optimizer for, and what it works with.


@frozen
class Limits:
    """When the loop ends. ``min_improvement`` is the least gain of the whole application, a fraction."""

    min_improvement: float = 0.02
    candidates: int = 3  # --max-iters
    patience: int = 3  # candidates in a row that were not accepted
    time_budget_s: float | None = None


@frozen
class OptimizeRequest:
    """One session. ``source`` is absolute; ``suffix`` is what the accepted file's name gets."""

    command: tuple[str, ...]
    source: Path
    build: BuildRequest
    equivalence: EquivalenceOptions
    policy: PolicyPart
    limits: Limits
    analysis: AnalysisRequest
    kernel: str | None = None
    suffix: str = "_opt"
    command_name: str = "rpl optimize"  # that was called, for messages
    in_place: bool = False
    runs: int = 3
    roofline: bool = False
    trace_dependencies: bool = False
    time_limit_s: float | None = None  # of one process run
    proposer_options: Mapping[str, str] = attrs.field(factory=dict)
    keep_command: bool = False

    @property
    def told_command(self) -> tuple[str, ...]:
        """The command as it is written down: without its secrets, unless the user wants them kept."""
        return self.command if self.keep_command else masked_words(self.command)


#: Shown a unified diff and the evidence in words; true lets the candidate be accepted.
Approve = Callable[[str, str], bool]

#: Where a session can be held: before a candidate is proposed, built and guarded, checked and measured (or
#: compared by a model), and judged. Acceptance has its own question.
StageName = Literal["propose", "build", "measure", "verdict"]


def _go_on(_stage: StageName, _candidate: int) -> None:
    return None


@frozen(eq=False)
class Tools:
    """The parts that a session works with, chosen before it starts."""

    host: PluginHost
    collector: Collector
    builder: ProgramBuilder
    proposer: Contribution[Proposer]
    equivalence: EquivalenceStage
    approve: Approve
    note: LineSink
    log: LineSink
    step: StepSink  # gets the name of each stage
    run_step: StepSink  # gets the name of each process run within it
    metric: Contribution[Metric] | None = None  # a model in the place of measurements
    #: Returns when the stage of that candidate may begin, or raises ``KeyboardInterrupt``: the session ends
    #: there and can be resumed.
    hold: Callable[[StageName, int], None] = _go_on


@attrs.define(eq=False)
class OptimizeSession:
    """One session in progress. The ledger is the truth; ``optimize.json`` can be made from it again."""

    root: Path
    request: OptimizeRequest
    ledger: Ledger
    original: bytes
    document: OptimizeDocument

    @classmethod
    def start(
        cls, root: Path, request: OptimizeRequest, ledger: Ledger, original: bytes, proposer: str
    ) -> OptimizeSession:
        """Keep a copy of the source and write the first document."""
        session = cls(root, request, ledger, original, _first(request, original, proposer))
        copy = root / ORIGINAL / request.source.name
        copy.parent.mkdir(exist_ok=True)
        write_atomic(copy, original)
        session.save()
        return session

    @classmethod
    def resume(
        cls, root: Path, request: OptimizeRequest, ledger: Ledger, resumed: Resumed, proposer: str
    ) -> OptimizeSession:
        session = cls(root, request, ledger, resumed.original, _first(request, resumed.original, proposer))
        session.follow(resumed)
        return session

    def follow(self, resumed: Resumed) -> None:
        """Make the document again from what the ledger says."""
        ended, written = resumed.finished, resumed.written
        self.update(
            state="running" if ended is None else "finished",
            termination_reason=None if ended is None else ended.termination_reason,
            termination_detail=None if ended is None else ended.termination_detail,
            verdict=None if ended is None else ended.verdict,
            candidates=tuple(resumed.state.candidates),
            accepted_source=None if written is None else written.path,
            backup=None if written is None else written.backup,
            dominance_shifts=tuple(resumed.state.shifts),
        )

    def record_start(self, options: Mapping[str, Any]) -> None:
        self.record(
            LedgerEvent.SESSION_STARTED,
            {
                "tool_version": __version__,
                "command": self.request.told_command,
                "source": str(self.request.source),
                "source_sha256": digest(self.original),
                "proposer": self.document.proposer,
                "policy": self.request.policy,
                "options": options,
                "request_sha256": _hash_if_file(self.root / REQUEST),
            },
        )

    def record_resumed(self) -> None:
        now = digest(self.request.source.read_bytes())
        self.record(LedgerEvent.RESUMED, {"tool_version": __version__, "source_sha256": now})

    def record(self, event: LedgerEvent, data: Part | Mapping[str, Any]) -> None:
        self.ledger.append(event, data)

    def draw_seed(self) -> int:
        """For the order of what is measured next: from the last line's hash, so that nobody chooses it."""
        return seed_after(self.ledger.last_sha256)

    def update(self, **changes: object) -> None:
        """Change the document and write it at once."""
        self.document = self.document.model_copy(update=changes)
        self.save()

    def files(self) -> Mapping[str, str]:
        """Hashes of everything in the directory that the ledger does not tell of yet."""
        return unbound(self.root, bound_by(self.ledger.path))

    def save(self) -> None:
        write_atomic(self.root / DOCUMENT, to_json(self.document))

    def recordings(self, *directories: Path) -> Mapping[str, str]:
        """Hashes of the recordings that are there, for the ledger."""
        return {self.relative(path): digest_of_recording(path) for path in directories if path.is_dir()}

    def relative(self, path: Path) -> str:
        return str(path.relative_to(self.root))


def _hash_if_file(path: Path) -> str | None:
    return sha256_of(path) if path.is_file() else None


def _first(request: OptimizeRequest, original: bytes, proposer: str) -> OptimizeDocument:
    return OptimizeDocument(
        schema_version=SCHEMA_VERSION,
        command=tuple(map(encodable, request.told_command)),
        source=encodable(str(request.source)),
        source_sha256=digest(original),
        proposer=proposer,
        state="running",
    )


# What a session writes to its ledger, event by event.


class SessionRecords:
    """``proposer`` is the name of the session's proposer."""

    def __init__(self, session: OptimizeSession, proposer: str) -> None:
        self._session = session
        self._proposer = proposer

    def baseline(self, baseline: Baseline) -> None:
        profile, dag = baseline.documents.model("profile"), baseline.documents.model("dag")
        self._session.record(
            LedgerEvent.BASELINE_PROFILED,
            {
                "number": baseline.number,
                "directory": self._session.relative(baseline.directory),
                "source_sha256": baseline.sha256,
                "recordings": self._session.recordings(baseline.profile_directory),
                "origin": dag.origin,
                "runs": profile.stability.runs or 0,
                "makespan_ns": dag.makespan_ns,
                "build": baseline.part,
                "device": None if profile.provenance is None else profile.provenance.device,
                "dominant": dag.dominant_symbol,
            },
        )

    def no_target(self, reason: str) -> None:
        self._session.record(LedgerEvent.TARGET_CHOSEN, {"kernel": None, "reason": reason})

    def target(self, target: Target, base_cv: float | None) -> None:
        self._session.record(
            LedgerEvent.TARGET_CHOSEN,
            {
                "kernel": target.recorded,
                "reason": f"the highest ceiling for which {self._proposer} may have a proposal",
                "share_of_path": target.ceiling_gain,
                "ceiling_gain": target.ceiling_gain,
                "base_cv": base_cv,
            },
        )

    def source_of(self, proposed: Proposed) -> str | None:
        """Where the session keeps the candidate's source, relative to its directory."""
        return None if proposed.source is None else self._session.relative(proposed.source)

    def proposal(self, proposed: Proposed, kernel: str, baseline: bytes) -> None:
        evidence = proposed.candidate.evidence
        self._session.record(
            LedgerEvent.PROPOSED,
            {
                "candidate": proposed.number,
                "kernel": kernel,
                "proposer": self._proposer,
                "summary": proposed.candidate.summary,
                "source_sha256": proposed.sha256,
                "baseline_sha256": digest(baseline),
                "source": self.source_of(proposed),
                "repairs": proposed.repairs,
                "changes_loop": proposed.candidate.changes_loop,
                "transformation": proposed.transformation,
                "workgroup_limit": proposed.candidate.workgroup_limit,
                "lds_growth": proposed.candidate.lds_growth,
                "retuned": proposed.retuned,
                "expected_gain": None if evidence is None else evidence.expected_gain,
                "rests_on": {} if evidence is None else dict(evidence.facts),
                "records": growing_files(self._session.root),
            },
        )
        guarded = {"candidate": proposed.number, "guards": proposed.guards}
        self._session.record(LedgerEvent.SOURCE_GUARDED, guarded)

    def build(self, proposed: Proposed, part: BuildPart) -> None:
        self._session.record(LedgerEvent.BUILT, {"candidate": proposed.number, "build": part})

    def judgement(self, candidate: int, evidence: EvidencePart, judgement: JudgementPart) -> None:
        self._session.record(
            LedgerEvent.JUDGED,
            {
                "candidate": candidate,
                "evidence": evidence,
                "policy": self._session.request.policy,
                "judgement": judgement,
            },
        )

    def accepted(self, candidate: CandidatePart) -> None:
        self._session.record(
            LedgerEvent.ACCEPTED,
            {
                "candidate": candidate.number,
                "source_sha256": candidate.source_sha256,
                "predicted_gain": candidate.predicted_gain,
                "measured_gain": candidate.measured_gain,
                "kernel_gain": candidate.kernel_gain,
                "kernel_gain_interval": candidate.kernel_gain_interval,
            },
        )

    def rolled_back(self, candidate: CandidatePart) -> None:
        verdict = candidate.judgement
        self._session.record(
            LedgerEvent.ROLLED_BACK,
            {
                "candidate": candidate.number,
                "predicted_gain": candidate.predicted_gain,
                "verdict": verdict.verdict,
                "reason": verdict.reason,
            },
        )

    def written(self, candidate: int, written: Written) -> None:
        self._session.record(
            LedgerEvent.WRITTEN,
            {
                "candidate": candidate,
                "path": str(written.path),
                "sha256": written.sha256,
                "before_sha256": written.before_sha256,
                "backup": None if written.backup is None else str(written.backup),
            },
        )

    def failure(self, error: RplError) -> None:
        """Why the session stopped without an end; a ledger that can't be written then stays as it is."""
        with contextlib.suppress(RplError):
            self._session.record(LedgerEvent.NOTE, {"text": f"stopped: {error.one_line()}"})

    def told(self, text: str) -> None:
        """Something that who reads the ledger should know."""
        self._session.record(LedgerEvent.NOTE, {"text": text})

    def finished(self, reason: TerminationName, detail: str, verdict: VerdictName | None) -> None:
        self._session.record(
            LedgerEvent.FINISHED,
            {
                "termination_reason": reason,
                "termination_detail": detail,
                "verdict": verdict,
                "source_sha256": _hash_if_readable(self._session.request.source),
                "files": self._session.files(),
            },
        )


def _hash_if_readable(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except OSError:  # removed meanwhile; the session can be closed all the same
        return None


# Write the accepted source where the user finds it. Their own file changes only with ``--in-place``.

#: What file systems without hard links say.
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@frozen
class Written:
    """``before_sha256``: what was at ``path``, ``None`` for a new file."""

    path: Path
    sha256: str
    before_sha256: str | None
    backup: Path | None = None


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def write_accepted(request: OptimizeRequest, text: bytes, original: bytes, ours: str | None) -> Written:
    """Write ``text``. In place, ``original`` is kept beside it first, and the file must be as it was.

    ``ours`` is the hash of what this session wrote last. Raises ``BadDataError`` when the user's file has
    been changed meanwhile, and the storage errors; the file is then as before.
    """
    path = request.source
    try:
        if not request.in_place:
            return _write_beside(request, text, ours)
        known = {digest(original), ours, digest(text)}
        before = _require(path, known)
        backup = _keep(path, original)
        _require(path, known)  # keeping the original took time
        write_atomic(path.resolve(), text, mode=_mode(path))
        return Written(path, digest(text), before, backup)
    except OSError as error:
        refusal = storage_error(path, error)
        refusal.next_step = "make it possible and resume: the accepted version is in the session's directory"
        raise refusal from error


def is_changed(source: Path, original: bytes) -> bool:
    """Whether the user's file is another one than at the beginning, or gone."""
    try:
        return digest(source.read_bytes()) != digest(original)
    except OSError:
        return True


def unified_diff(before: bytes, after: bytes, name: str) -> str:
    """The change as people read it."""
    old, new = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (before, after))
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _hash_of(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except FileNotFoundError:
        return None


def _require(path: Path, known: Container[str | None]) -> str | None:
    before = _hash_of(path)
    if before is None or before not in known:
        raise BadDataError(
            f"{path} was changed by someone else during the session, so it is not replaced",
            next_step="take the accepted version from the session's directory",
        )
    return before


def _write_beside(request: OptimizeRequest, text: bytes, ours: str | None) -> Written:
    """Whatever is there already is the user's, and a number is added, unless its hash is ``ours``."""
    source, sha256 = request.source, digest(text)
    plain = source.with_name(f"{source.stem}{request.suffix}{source.suffix}")
    numbered = (plain.with_name(f"{plain.stem}_{number}{plain.suffix}") for number in itertools.count(2))
    for path in itertools.chain((plain,), numbered):
        if _is_ours(path, (ours, sha256)):  # an interrupted writing left ours as well
            before = _hash_of(path)
            write_atomic(path, text, mode=_mode(source))
            return Written(path, sha256, before)
        if _write_new(path, text, _mode(source)):
            return Written(path, sha256, None)
    raise AssertionError("numbers do not end")


def _write_new(path: Path, text: bytes, mode: int) -> bool:
    """Write a file that is not there; false where something is, whoever was quicker."""
    if os.path.lexists(path):
        return False
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    write_atomic(temporary, text, mode=mode)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        write_atomic(path, text, mode=mode)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _is_ours(path: Path, ours: Container[str | None]) -> bool:
    return path.is_file() and not path.is_symlink() and _hash_of(path) in ours


def _keep(path: Path, original: bytes) -> Path:
    """A copy of the user's own version beside the file; one that is there already and equal is enough."""
    backup, number = path.with_name(f"{path.name}.rpl-backup"), 2
    while os.path.lexists(backup) and not _is_ours(backup, (digest(original),)):
        backup = path.with_name(f"{path.name}.rpl-backup{number}")
        number += 1
    if not backup.exists():
        write_atomic(backup, original, mode=_mode(path))
    return backup


def _mode(path: Path) -> int:
    """The permissions of the source: what is private stays private."""
    return path.stat().st_mode & 0o777
