"""``rpl ranks``: one answer about a job of any number of ranks."""

from __future__ import annotations

from pathlib import Path

import click

from rpl_core.cli.session import session_of


@click.command("ranks")
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Keep summaries, ranks.json and ranks.html here."
)
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Processes that read (default: by cores and memory)."
)
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers read.")
@click.option("--executor", metavar="NAME", help="Where to read (default: processes of this machine).")
@click.option("--group-by", metavar="host|N", help="Compare machines, or ranks by number modulo N.")
@click.option("--json", "as_json", is_flag=True, help="Print ranks.json on stdout.")
@click.pass_context
def ranks(
    context: click.Context,
    /,
    recordings: tuple[Path, ...],
    output: Path | None,
    jobs: int | None,
    cluster: str | None,
    executor: str | None,
    group_by: str | None,
    as_json: bool,
) -> None:
    """Say where the time of a job went, which ranks hold up the others, and why.

    Every recording is summed up by itself, so any number of ranks fits. With -o the summaries are kept, and
    the same command reads recordings that are new or changed; DIR alone is answered from its summaries.

    \b
    rpl ranks FOLDER-OF-RANKS -o job
    rpl ranks FOLDER-OF-RANKS -o job --jobs 16 --group-by host
    rpl ranks job --json
    """
    from rpl_core.cli.process_start import import_numpy_alone

    import_numpy_alone()
    from rpl_analysis.cli.ranks_command import RanksCall, run_ranks

    run_ranks(session_of(context), RanksCall(recordings, output, jobs, cluster, executor, group_by), as_json)
