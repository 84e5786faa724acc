"""``rpl transform``: what the transformation plugins would change in a file, and the changed source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import Session, session_of
from rpl_optimize.hookspecs import TRANSFORMATIONS

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_optimize.interfaces.transformation import KernelSource
    from rpl_optimize.transform import OfferedCandidate, Offers


@click.command("transform")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kernel", metavar="NAME", help="Only candidates for this kernel.")
@click.option(
    "--build",
    "build_command",
    metavar="COMMAND",
    help="How the file is compiled, with {source} and {output}, for its includes and defines; it is not run.",
)
@click.option(
    "--compile-database",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="compile_commands.json that says so, in place of --build.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--apply", "candidate_id", metavar="ID", help="Print the source with this candidate applied.")
@click.pass_context
def transform(
    context: click.Context,
    file: Path,
    kernel: str | None,
    build_command: str | None,
    compile_database: Path | None,
    as_json: bool,
    candidate_id: str | None,
) -> int:
    """List the source changes that plugins propose for FILE, with the verdict of every guard.

    FILE is never written. `--apply ID` prints the changed source; a refused candidate is not applied
    (exit code 1). Whether a change helps is for a measurement to say.

    \b
    rpl transform kernel.hip
    rpl transform kernel.hip --build "hipcc -Iinclude -DSIZE=4 {source} -o {output}"
    rpl transform kernel.hip --apply ID > changed.hip
    """
    import attrs

    from rpl_core.errors import UsageError
    from rpl_optimize.loop.meaning import reading_without_build
    from rpl_optimize.transform import collect_offers, installed, read_source, require_transformations

    if as_json and candidate_id is not None:
        raise UsageError("--apply prints source code, so it can't be combined with --json")
    if build_command is not None and compile_database is not None:
        raise UsageError("--build and --compile-database both say how the file is compiled: name one")
    session = session_of(context)
    source = read_source(file, kernel)
    reading = reading_without_build(file, source.text, build_command, compile_database)
    source = attrs.evolve(source, reading=reading)
    transformations = installed(session.host.catalog.of(TRANSFORMATIONS))
    require_transformations(source, transformations)
    offers = collect_offers(source, transformations)
    facts = [diagnostic.fact for diagnostic in session.host.diagnostics]
    for line in [*facts, *(failure.one_line() for failure in offers.failures)]:
        session.output.note(f"warning: {line}")
    if candidate_id is not None:
        return _apply(offers.get(candidate_id), source, session.output)
    if as_json:
        session.output.json(
            {"file": str(file), "candidates": [_candidate_json(c) for c in offers.candidates]}
        )
    else:
        _show(offers, session.output)
        if not offers.candidates:
            session.output.note(_nothing(session, source))
    return 0


def _apply(offered: OfferedCandidate, source: KernelSource, output: Output) -> int:
    from rpl_core.errors import ExitCode
    from rpl_optimize.transform import apply_edits

    if not offered.candidate.allowed:
        output.note(f"refused: {offered.id} is not applied")
        for line in _refusals(offered):
            output.note(f"  {line}")
        return int(ExitCode.NEGATIVE_FINDING)
    click.echo(apply_edits(source.text, offered.candidate.edits), nl=False)
    return int(ExitCode.OK)


def _nothing(session: Session, source: KernelSource) -> str:
    """That nothing was found, by whom, and for which kernels there would be something."""
    import attrs

    from rpl_optimize.transform import collect_offers, installed

    transformations = installed(session.host.catalog.of(TRANSFORMATIONS))
    if source.kernel is None:
        names = ", ".join(offered.transformation.name for offered in transformations)
        return f"no candidates: {names} found nothing that could be changed"
    whole = collect_offers(attrs.evolve(source, kernel=None), transformations)
    kernels = {offered.candidate.kernel for offered in whole.candidates}
    others = ", ".join(sorted(kernel for kernel in kernels if kernel is not None)) or "none"
    return f"no candidates for the kernel {source.kernel!r}; kernels of this file with candidates: {others}"


def _show(offers: Offers, output: Output) -> None:
    if not offers.candidates:
        return
    columns = ("ID", "LINE", "KERNEL", "VERDICT", "SUMMARY")
    rows = [
        (
            offered.id,
            str(offered.candidate.line),
            offered.candidate.kernel or "-",
            "allowed" if offered.candidate.allowed else "refused",
            offered.candidate.summary,
        )
        for offered in offers.candidates
    ]
    output.table(columns, rows, right=("LINE",))
    for offered in offers.candidates:
        for line in _refusals(offered):
            output.line(f"{offered.id}: {line}")


def _refusals(offered: OfferedCandidate) -> list[str]:
    return [
        f"guard {guard.guard}"
        + (f", line {guard.line}" if guard.line is not None else "")
        + f": {guard.reason}"
        for guard in offered.candidate.guards
        if not guard.passed
    ]


def _candidate_json(offered: OfferedCandidate) -> dict[str, Any]:
    candidate = offered.candidate
    return {
        "id": offered.id,
        "plugin": offered.plugin,
        "transformation": offered.transformation,
        "kernel": candidate.kernel,
        "line": candidate.line,
        "summary": candidate.summary,
        "allowed": candidate.allowed,
        "guards": [
            {"guard": g.guard, "passed": g.passed, "reason": g.reason, "line": g.line}
            for g in candidate.guards
        ],
        "edits": [
            {"begin": e.begin, "end": e.end, "replacement": e.replacement.decode("utf-8", "replace")}
            for e in candidate.edits
        ],
    }
