"""``rpl ranks``: one answer about a job of any number of ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import option, settled, takes
from rpl_core.cli.session import session_of
from rpl_core.errors import UsageError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.ranks.answer import Grouping
    from rpl_core.cli.session import Session


@frozen
class RanksCall:
    """One ``rpl ranks``; ``None``: not said."""

    recordings: tuple[Path, ...]
    output: Path | None = option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="Keep summaries, ranks.json and ranks.html here.",
    )
    jobs: int | None = option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Processes that read (default: by cores and memory).",
    )
    cluster: str | None = option("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers read.")
    executor: str | None = option(
        "--executor", metavar="NAME", help="Where to read (default: processes of this machine)."
    )
    group_by: str | None = option(
        "--group-by", metavar="host|N", help="Compare machines, or ranks by number modulo N."
    )
    as_json: bool = option("--json", is_flag=True, help="Print ranks.json on stdout.")


@click.command("ranks")
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@takes(RanksCall)
@click.pass_context
def ranks(context: click.Context, /, recordings: tuple[Path, ...], **flags: Any) -> None:
    """Say where the time of a job went, which ranks hold up the others, and why.

    Every recording is summed up by itself, so any number of ranks fits. With -o the summaries are kept, and
    the same command reads recordings that are new or changed; DIR alone is answered from its summaries.

    \b
    rpl ranks FOLDER-OF-RANKS -o job
    rpl ranks FOLDER-OF-RANKS -o job --jobs 16 --group-by host
    rpl ranks job --json
    """
    from rpl_core.process_start import import_numpy_alone

    import_numpy_alone()
    session = session_of(context)
    _run_ranks(session, settled(RanksCall, session, flags, recordings=recordings))


def _run_ranks(session: Session, call: RanksCall) -> None:
    """Sum up what is not yet, answer, write and show."""
    from rpl_analysis.ranks.gather import SUMMARIES, GatherRequest, gather, gather_kept

    group_of = _grouping(call.group_by)
    job = call.recordings[0] if len(call.recordings) == 1 and _is_job(call.recordings[0]) else None
    if call.output is None and job is None and (call.cluster is not None or call.executor is not None):
        raise UsageError(
            "workers elsewhere need a place for summaries that they share", next_step="add -o DIR"
        )
    if call.output is not None and job is None and not _is_job(call.output) and _occupied(call.output):
        raise UsageError(f"{call.output} holds something else", next_step="choose another -o")
    with _job_directory(job or call.output) as place:
        if job is not None:
            gathered = gather_kept(job / SUMMARIES)
        else:
            request = GatherRequest(place / SUMMARIES, call.jobs, call.cluster, call.executor)
            with session.output.progress("ranks", total=None) as step:
                gathered = gather(call.recordings, request, session, step, _import_what_answers)
        from rpl_analysis.cli.ranks_answer import answer_ranks

        answer_ranks(session, gathered, group_of, place if job or call.output else None, as_json=call.as_json)


def _import_what_answers() -> None:
    import rpl_analysis.cli.ranks_answer  # noqa: F401 - it is only loaded, while workers read


def _grouping(asked: str | None) -> Grouping | None:
    if asked is None:
        return None
    if asked == "host":
        return lambda rank, _number: rank.hostname or rank.identity.node
    if asked.isascii() and asked.isdigit() and int(asked) > 0:
        several = int(asked)
        return lambda _rank, number: f"{number % several} of {several}"
    raise UsageError(f"--group-by {asked[:40]!r} is no group", next_step="write host, or a number of ranks")


def _is_job(directory: Path) -> bool:
    from rpl_analysis.ranks.gather import SUMMARIES

    return (directory / SUMMARIES).is_dir()


def _occupied(directory: Path) -> bool:
    return directory.exists() and (not directory.is_dir() or any(directory.iterdir()))


@contextmanager
def _job_directory(chosen: Path | None) -> Iterator[Path]:
    if chosen is not None:
        chosen.mkdir(parents=True, exist_ok=True)
        yield chosen
        return
    with tempfile.TemporaryDirectory(prefix="rpl-ranks-") as place:
        yield Path(place)
