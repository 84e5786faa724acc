"""``rpl ranks``: one answer about a job of any number of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rpl_core.cli.command_options import option, settled, takes
from rpl_core.cli.session import session_of
from rpl_core.values import frozen


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
    from rpl_analysis.cli.ranks_command import run_ranks

    session = session_of(context)
    run_ranks(session, settled(RanksCall, session, flags, recordings=recordings))
