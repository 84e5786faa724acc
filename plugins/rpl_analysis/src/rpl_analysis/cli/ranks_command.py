"""What ``rpl ranks`` does, behind its options."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_analysis.ranks.gather import SUMMARIES, GatherRequest, gather, gather_kept
from rpl_core.errors import UsageError

if TYPE_CHECKING:
    from rpl_analysis.cli.ranks import RanksCall
    from rpl_analysis.ranks.answer import Grouping
    from rpl_analysis.ranks.summary import RankSummary
    from rpl_core.cli.session import Session


def run_ranks(session: Session, call: RanksCall) -> None:
    """Sum up what is not yet, answer, write and show."""
    group_of = _grouping(call.group_by)
    kept = call.recordings[0] if len(call.recordings) == 1 and _is_job(call.recordings[0]) else None
    if call.output is None and kept is None and (call.cluster is not None or call.executor is not None):
        raise UsageError(
            "workers elsewhere need a place for summaries that they share", next_step="add -o DIR"
        )
    if call.output is not None and kept is None and not _is_job(call.output) and _is_full(call.output):
        raise UsageError(f"{call.output} holds something else", next_step="choose another -o")
    with _place(kept or call.output) as place:
        if kept is not None:
            gathered = gather_kept(kept / SUMMARIES)
        else:
            request = GatherRequest(place / SUMMARIES, call.jobs, call.cluster, call.executor)
            with session.output.progress("ranks", total=None) as step:
                gathered = gather(call.recordings, request, session, step, _import_what_answers)
        from rpl_analysis.cli.ranks_answer import answer_ranks

        answer_ranks(
            session, gathered, group_of, place if kept or call.output else None, as_json=call.as_json
        )


def _import_what_answers() -> None:
    import rpl_analysis.cli.ranks_answer  # noqa: F401 - it is only loaded, while workers read


def _grouping(asked: str | None) -> Grouping | None:
    if asked is None:
        return None
    if asked == "host":
        return lambda rank, _number: rank.hostname or rank.identity.node
    if asked.isascii() and asked.isdigit() and int(asked) > 0:
        return _modulo(int(asked))
    raise UsageError(f"--group-by {asked[:40]!r} is no group", next_step="write host, or a number of ranks")


def _modulo(several: int) -> Grouping:
    def group_of(_rank: RankSummary, number: int) -> str:
        return f"{number % several} of {several}"

    return group_of


def _is_job(directory: Path) -> bool:
    return (directory / SUMMARIES).is_dir()


def _is_full(directory: Path) -> bool:
    return directory.exists() and (not directory.is_dir() or any(directory.iterdir()))


@contextmanager
def _place(named: Path | None) -> Iterator[Path]:
    if named is not None:
        named.mkdir(parents=True, exist_ok=True)
        yield named
        return
    with tempfile.TemporaryDirectory(prefix="rpl-ranks-") as place:
        yield Path(place)
