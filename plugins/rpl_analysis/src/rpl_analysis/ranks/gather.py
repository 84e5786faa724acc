"""From recordings to summaries of their ranks: what is kept is used, the rest read, wherever tasks run."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.contracts.rank_job import MissingRankPart
from rpl_analysis.hookspecs import COLLECTIVE_RULES
from rpl_analysis.ranks.summary_file import RecordedFile, SavedSummary, is_of, load_summary, save_summary
from rpl_core.errors import BadDataError, InterruptedRunError, MissingError, RplError
from rpl_core.files import sha256_of
from rpl_core.ingest import expand, load_recording
from rpl_core.ingest.claims import claim_files, require_readable
from rpl_core.interfaces.executor import Answer, ExecutorRequest, Task, Workers
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.ranks.summary import RankSummary
    from rpl_core.cli.session import Session
    from rpl_core.ingest.claims import Claim
    from rpl_core.interfaces.reader import InputSet, Reader

__all__ = ["GatherRequest", "Gathered", "gather", "gather_kept", "sum_up"]

#: Below a job's folder.
SUMMARIES = "summaries"
#: What reading a rank may take at its peak: so many fit beside each other (measured: 0.3 GB for a million
#: dispatches, which few ranks have).
_BYTES_OF_A_JOB = 1_200_000_000
#: Less is read sooner than a second process starts (chosen: a second of work).
_BYTES_FOR_SEVERAL = 64 << 20
_WAIT_S = 1.0
#: So often it is said how far it is, whatever the number of ranks (chosen).
_MOST_STEPS = 50


@frozen
class GatherRequest:
    """``store`` is the folder of the summaries; ``jobs`` ``None``: as many as cores and memory allow."""

    store: Path
    jobs: int | None = None
    cluster: str | None = None
    executor: str | None = None


@frozen(eq=False)
class Gathered:
    """Summaries, each of a rank that ``recording`` of its identity names, and what is missing.

    ``read`` recordings were read for it, ``kept`` ones were summed up before.
    """

    ranks: tuple[RankSummary, ...]
    missing: tuple[MissingRankPart, ...]
    read: int
    kept: int


#: What a reader reads together, by absolute paths without links.
_Files = tuple[Path, ...]
#: Takes a task, and waits a moment for answers.
_Workers = tuple[Callable[[Task], None], Callable[[], list[Answer]]]


def gather(
    paths: Sequence[Path],
    request: GatherRequest,
    session: Session,
    step: Callable[[str], None],
    meanwhile: Callable[[], None],
) -> Gathered:
    """The summaries of all recordings in ``paths``. One that can't be read costs itself and is named.

    ``meanwhile`` is called once, where there are workers after they got something to do.
    """
    whole = {file: file.resolve() for file in expand(paths)}  # once: every folder on the way is looked at
    kept = _kept(request.store, whole.values())
    known = {file for own in kept for file in own}
    left = [file for file in whole if whole[file] not in known]
    saved = dict(kept)
    # Of what was summed up before little may be left: then it is looked at before a worker starts.
    looked_at = _find(left, paths, known, session) if kept else None
    to_read = left if looked_at is None else [file for recording in looked_at[0] for file in recording]
    with _workers(to_read, request, session) as workers:
        found, others = looked_at or _find(left, paths, known, session)
        recordings = [tuple(whole[file] for file in recording) for recording in found]
        problems = [(tuple(whole[file] for file in files), reason) for files, reason in others]
        for done, (recording, problem) in enumerate(
            _summed_up(recordings, request.store, session, workers, meanwhile), 1
        ):
            if done % max(1, len(recordings) // _MOST_STEPS) == 0 or done == len(recordings):
                step(f"{recording[0].name} ({done} of {len(recordings)})")
            try:
                if problem is not None:
                    raise BadDataError(problem)
                saved[recording] = load_summary(_place(request.store, recording))
            except RplError as error:
                problems.append((recording, error.fact))
    if not saved:
        reasons = {reason for files, reason in problems if files in recordings}
        raise BadDataError(
            f"none of {counted(len(recordings), 'recording')} can be read: {min(reasons)}",
            next_step="`rpl analyze RECORDING` says more of one",
        )
    return _gathered(saved, problems, kept=len(kept))


def gather_kept(folder: Path) -> Gathered:
    """The summaries that an earlier analysis left in ``folder``; a recording that changed is missing."""
    found = [load_summary(path) for path in sorted(folder.glob("*.npz"))]
    if not found:
        raise MissingError(f"{folder} holds no summary of a rank", next_step="name the recordings")
    saved, changed = {}, []
    for one in found:
        files = tuple(Path(file.path) for file in one.files)
        if all(file.is_file() for file in files) and not is_of(one, files):
            changed.append((files, "it changed after it was summed up: name the recordings"))
        else:
            saved[files] = one
    return _gathered(saved, changed, kept=len(saved))


def _gathered(
    saved: Mapping[_Files, SavedSummary], problems: Sequence[tuple[_Files, str]], *, kept: int
) -> Gathered:
    sets = [*sorted(saved), *(files for files, _ in problems)]
    names = dict(zip(sets, _names(sets), strict=True))
    repeated = _repeated(saved)
    ranks = tuple(
        attrs.evolve(rank, identity=attrs.evolve(rank.identity, recording=names[files]))
        for files in sorted(saved.keys() - repeated.keys())
        for rank in saved[files].ranks
    )
    missing = [MissingRankPart(names[files], reason) for files, reason in problems]
    missing += [
        MissingRankPart(names[files], f"it repeats {names[other]}: the same processes at the same times")
        for files, other in repeated.items()
    ]
    missing += [
        MissingRankPart(names[files], "it launched no kernel") for files in saved if not saved[files].ranks
    ]
    holes = _holes(numbers_in(list(names.values())))
    missing += [MissingRankPart(f"number {hole}", "no recording has this number") for hole in holes]
    return Gathered(ranks, tuple(sorted(missing, key=lambda one: one.recording)), len(saved) - kept, kept)


def _repeated(saved: Mapping[_Files, SavedSummary]) -> dict[_Files, _Files]:
    """Recordings all of whose ranks are in another one: copies, other formats, parts of a merged file.

    No two processes of a GPU begin and end at one nanosecond, with the same work.
    """
    owner: dict[tuple[object, ...], _Files] = {}
    repeated = {}
    for files in sorted(saved, key=lambda files: (-len(saved[files].ranks), files)):
        ranks = [
            (*rank.identity.order()[:3], rank.begin_ns, rank.end_ns, rank.launches, rank.kernel_ns)
            for rank in saved[files].ranks
        ]
        if ranks and owner.keys() >= set(ranks):
            repeated[files] = owner[ranks[0]]
        for rank in ranks:
            owner.setdefault(rank, files)
    return repeated


def numbers_in(names: Sequence[str]) -> list[int]:
    """The numbers of ranks in the names of their recordings: where names differ, and lie close; else none."""
    found = [re.findall(r"\d+", name) for name in names]
    if not found or len({len(numbers) for numbers in found}) > 1:
        return []
    columns = [[int(text[:18]) for text in column] for column in zip(*found, strict=True)]
    apart = [column for column in columns if len(set(column)) == len(column)]
    return min(apart, key=lambda column: max(column) - min(column), default=[])


def _holes(numbers: Sequence[int]) -> list[int]:
    """Numbers that are not there among others; process ids lie too far apart to tell."""
    there = set(numbers)
    if len(there) < 2 or max(there) - min(there) >= 2 * len(there):
        return []
    return sorted(set(range(min(there), max(there))) - there)


def _find(
    files: Sequence[Path], named: Sequence[Path], known: Collection[Path], session: Session
) -> tuple[list[_Files], list[tuple[_Files, str]]]:
    """What a reader reads together is one recording. What is like the others but unreadable has a reason.

    ``known`` files are summed up already. A file that stands alone is claimed by the worker that reads it.
    """
    readers = session.host.catalog.readers().contributions
    alone = [file for file in files if any(_stands_alone(file, one.value, one.plugin) for one in readers)]
    claims = claim_files(sorted(set(files) - set(alone)), readers)
    if not known and not alone:
        require_readable(claims, named, has_readers=bool(readers))
    found = sorted([*((file,) for file in alone), *(p.paths for c in claims.readable for p in _parts(c))])
    suffixes = {path.suffix for one in (known, *found) for path in one}
    refused = [(one.paths, one.refusal or "") for one in claims.refused]
    return found, [
        *refused,
        *(
            ((path,), "no reader knows it")
            for path in claims.unknown
            if path.suffix in suffixes or path in named
        ),
    ]


def _stands_alone(file: Path, reader: Reader, plugin: str) -> bool:
    with suppress(RplError), plugin_boundary(plugin, f"reader {reader.name!r}"):
        return reader.stands_alone(file) is True
    return False  # what a reader can't tell of one file it may know of all


def _parts(claim: Claim) -> tuple[InputSet, ...]:
    with plugin_boundary(claim.plugin, f"reader {claim.reader.name!r}"):
        parts = tuple(claim.reader.parts(claim.inputs))
        if sorted(path for part in parts for path in part.paths) != sorted(claim.inputs.paths):
            raise ValueError("parts gave other files than the set holds")
        return parts


def _names(sets: Sequence[Sequence[Path]]) -> list[str]:
    """The place of each recording below what all share."""
    first = [str(one[0]) for one in sets]
    root = os.path.commonpath([str(Path(path).parent) for path in first])
    return [Path(os.path.relpath(path, root)).as_posix() for path in first]


def _place(store: Path, files: _Files) -> Path:
    """Of the summary: by the place of the recording, whatever it is called from."""
    return store / f"{hashlib.sha256(str(files[0]).encode()).hexdigest()[:24]}.npz"


def _kept(store: Path, files: Iterable[Path]) -> dict[_Files, SavedSummary]:
    """Of recordings among ``files`` that are as they were summed up; what can't be read is made again."""
    named = {str(file): file for file in files}
    kept = {}
    for path in sorted(store.glob("*.npz")):
        with suppress(BadDataError, KeyError):  # of another version, damaged, or of other recordings
            saved = load_summary(path)
            own = tuple(named[file.path] for file in saved.files)
            if own and is_of(saved, own):
                kept[own] = saved
    return kept


@contextmanager
def _workers(files: Sequence[Path], request: GatherRequest, session: Session) -> Iterator[_Workers | None]:
    """Who sums up ``files``; ``None``: this process. They start while it looks what the files are."""
    jobs = min(request.jobs or _usual_jobs(files), len(files))
    if not files or (jobs == 1 and request.cluster is None and request.executor is None):
        yield None
        return
    name = request.executor or ("dask" if request.cluster is not None else "local")
    executors = session.host.catalog.executors()
    executor, plugin = executors.get(name), executors.plugin_of(name)
    what = f"executor {name!r}"
    with plugin_boundary(plugin, what):
        opened: object = executor.open(
            ExecutorRequest(jobs=jobs, address=request.cluster, note=session.output.note)
        )
        if not isinstance(opened, Workers):
            raise TypeError(f"Workers were expected, not {type(opened).__name__}")
    workers = opened

    def answers() -> list[Answer]:
        with plugin_boundary(plugin, what):
            return [answer for answer in workers.wait(_WAIT_S) if isinstance(answer, Answer)]

    with workers:
        yield workers.submit, answers


def _usual_jobs(files: Sequence[Path]) -> int:
    if sum(path.stat().st_size for path in files) < _BYTES_FOR_SEVERAL:
        return 1
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), pages // _BYTES_OF_A_JOB))


def _summed_up(
    recordings: Sequence[_Files],
    store: Path,
    session: Session,
    workers: _Workers | None,
    meanwhile: Callable[[], None],
) -> Iterator[tuple[_Files, str | None]]:
    """Each recording when its summary is written, or with the reason why it is not."""
    store.mkdir(parents=True, exist_ok=True)
    plugins = {
        "plugin_modules": session.plugin_modules,
        "disabled_plugins": session.disabled_plugins,
        "config_file": session.config_file and str(Path(session.config_file).resolve()),
    }
    folder = store.resolve()
    arguments = [
        json.dumps(
            {"files": list(map(str, files)), "summary": str(_place(folder, files)), "plugins": plugins}
        )
        for files in recordings
    ]
    if workers is None:
        meanwhile()
        for recording, argument in zip(recordings, arguments, strict=True):
            yield recording, _problem_in(sum_up(argument, "here"))
        return
    submit, answers = workers
    for number, argument in enumerate(arguments):
        submit(Task(number, sum_up, argument))
    meanwhile()
    left = set(range(len(recordings)))
    while left:
        for answer in answers():
            if answer.number in left:
                left.remove(answer.number)
                yield recordings[answer.number], answer.error or _problem_in(answer.text)


def _problem_in(text: str) -> str | None:
    problem = json.loads(text)["problem"]
    return None if problem is None else str(problem)


def sum_up(argument: str, _place: str) -> str:
    """The task: read one recording, and write the summary of its ranks to where it was asked for.

    Paths go in, and what is wrong with the recording comes out, the same wherever it is read; whoever asks
    sees the same file system.
    """
    asked = json.loads(argument)
    session = _session(*(json.dumps(asked["plugins"][name]) for name in sorted(asked["plugins"])))
    files = [Path(path) for path in asked["files"]]
    try:
        saved = _summary_of(files, session)
        save_summary(Path(asked["summary"]), saved)
    except InterruptedRunError:
        raise
    except RplError as error:
        return json.dumps({"problem": error.fact.removeprefix(f"{files[0]}: ")})
    return json.dumps({"problem": None})


def _summary_of(files: Sequence[Path], session: Session) -> SavedSummary:
    catalog = session.host.catalog
    before = [path.stat() for path in files]
    recording = load_recording(files, catalog.readers().contributions, ranks=True)
    if not recording.timing_runs:
        raise BadDataError("it holds no times of kernels")
    trace = recording.timing_runs[0]
    rules = [contribution.value for contribution in catalog.of(COLLECTIVE_RULES).contributions]
    hashes = dict(zip(trace.source.paths, trace.source.sha256, strict=True))
    from rpl_analysis.ranks.summary import summarise

    return SavedSummary(
        tuple(
            RecordedFile(
                str(path), status.st_size, status.st_mtime_ns, hashes.get(str(path)) or sha256_of(path)
            )
            for path, status in zip(files, before, strict=True)
        ),
        summarise(trace, files[0].name, rules),
    )


@lru_cache(maxsize=1)
def _session(config_file: str, disabled: str, modules: str) -> Session:
    """The plugins of this worker, found once for all tasks."""
    from rpl_core.cli.session import Session

    return Session(
        config_file=json.loads(config_file),
        disabled_plugins=tuple(json.loads(disabled)),
        plugin_modules=tuple(json.loads(modules)),
    )
