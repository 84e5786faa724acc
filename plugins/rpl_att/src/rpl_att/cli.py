"""``rpl att``: thread traces: listing, source, difference, export.

Imports of the readers wait until a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from rpl_att.showing import Chosen

_PLACE = click.Path(path_type=Path)
_SHOWN_CHANGES = 30


@click.group("att", short_help="Look at thread traces: listing, source, difference, export.")
def att() -> None:
    """Look at AMD thread traces: what every instruction cost, and what each wait waited for.

    PATH is a run directory recorded with `rpl profile --deep-analysis`, or a folder in which rocprofv3 --att
    or rocprofv2 left a decoded trace.

    \b
    rpl att show rpl-runs/latest --sort stall --top 20
    rpl att diff before after
    """


def _choice(command: Any) -> Any:
    command = click.option("--dispatch", type=int, metavar="ID", help="Dispatch id, if several were traced.")(
        command
    )
    return click.option("--kernel", metavar="NAME", help="A kernel's name, or a part of one.")(command)


def _chosen(path: Path, kernel: str | None, dispatch: int | None) -> Chosen:
    from rpl_att.showing import choose_trace, with_figures

    return with_figures(choose_trace(path, kernel, dispatch))


@att.command("show")
@click.argument("path", type=_PLACE)
@_choice
@click.option("--source", is_flag=True, help="By line of source instead of by instruction.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the N first, by --sort.")
@click.option(
    "--sort",
    type=click.Choice(["line", "cycles", "stall", "latency", "hits"]),
    help="Order of instructions (default: line; cycles with --top).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show(
    context: click.Context,
    /,
    path: Path,
    kernel: str | None,
    dispatch: int | None,
    source: bool,
    top: int | None,
    sort: str | None,
    as_json: bool,
) -> None:
    """List the instructions of a traced kernel with hits, cycles and what each wait waited for.

    \b
    rpl att show rpl-runs/latest --kernel gemm
    rpl att show ui_output_agent_1_dispatch_3 --source
    rpl att show rpl-runs/latest --top 20 --sort stall
    """
    from rpl_att.showing import (
        hot_text,
        listing_text,
        ordered_instructions,
        source_lines,
        source_text,
        summary_lines,
        waits_of,
    )
    from rpl_core.cli.output import USUAL_WIDTH, terminal_width
    from rpl_core.errors import UsageError

    output = session_of(context).output
    if source and (top or sort):
        raise UsageError("--top and --sort order instructions", next_step="leave out --source, or them")
    chosen = _chosen(path, kernel, dispatch)
    order = sort or ("cycles" if top else "line")
    if as_json:
        document: dict[str, Any] = {"att": chosen.block.model_dump(mode="json")}
        if source:
            document["source"] = [line.model_dump(mode="json") for line in source_lines(chosen)]
        else:
            document["instructions"] = [
                row.model_dump(mode="json") for row in ordered_instructions(chosen, order, top)
            ]
            document["waits"] = [wait.model_dump(mode="json") for wait in waits_of(chosen)]
        output.json(document)
        return
    width = terminal_width()
    text = source_text(chosen, width) if source else listing_text(chosen, order, top, width)
    if hot := hot_text(chosen, width or USUAL_WIDTH):
        output.line(f"{hot}\n")
    for line in summary_lines(chosen):
        output.line(line)
    output.line()
    output.line(text)


@att.command("diff")
@click.argument("before", type=_PLACE)
@click.argument("after", type=_PLACE)
@_choice
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def diff(
    context: click.Context,
    /,
    before: Path,
    after: Path,
    kernel: str | None,
    dispatch: int | None,
    as_json: bool,
) -> None:
    """Compare two traces per wave: fractions, then the instructions whose cycles changed most."""
    from rpl_att.showing import difference

    output = session_of(context).output
    compared = difference(_chosen(before, kernel, dispatch), _chosen(after, kernel, dispatch))
    if as_json:
        output.json(compared.plain())
        return
    figures = [(name, _number(a), _number(b)) for name, (a, b) in compared.figures.items()]
    output.table(("FIGURE", "BEFORE", "AFTER"), figures, right=("BEFORE", "AFTER"))
    output.line()
    rows = [
        (
            _number(row.change),
            _number(row.before),
            _number(row.after),
            _line(row.line_before),
            _line(row.line_after),
            row.isa,
        )
        for row in compared.rows[:_SHOWN_CHANGES]
    ]
    columns = ("CYCLES/WAVE", "BEFORE", "AFTER", "LINE", "LINE", "ISA")
    output.table(columns, rows, right=columns[:-1])


@att.command("export")
@click.argument("path", type=_PLACE)
@_choice
@click.option(
    "--format",
    "form",
    type=click.Choice(["speedscope", "flamegraph"]),
    default="speedscope",
    show_default=True,
    help="speedscope JSON, or collapsed stacks for flamegraph.pl.",
)
@click.option("-o", "--output", "target", type=_PLACE, help="Write to this file instead of stdout.")
@click.pass_context
def export(
    context: click.Context,
    /,
    path: Path,
    kernel: str | None,
    dispatch: int | None,
    form: str,
    target: Path | None,
) -> None:
    """Write the cycles of a traced kernel by source line and instruction for a flame graph."""
    import json

    from rpl_att.showing import collapsed, speedscope
    from rpl_core.files import write_atomic

    output = session_of(context).output
    chosen = _chosen(path, kernel, dispatch)
    text = collapsed(chosen) if form == "flamegraph" else json.dumps(speedscope(chosen), indent=1) + "\n"
    if target is None:
        output.raw(text)
        return
    write_atomic(target, text, named=True)
    output.note(f"written to {target}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


def _line(value: int | None) -> str:
    return "-" if value is None else str(value)
