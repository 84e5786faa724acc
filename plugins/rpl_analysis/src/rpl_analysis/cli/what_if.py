"""``rpl what-if``: what faster kernels would bring the application."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_analysis.contracts import plain_values
from rpl_analysis.contracts.dag import FasterKernelPart, WhatIf, WhatIfAnswerPart
from rpl_analysis.options import COPIES, NAMES
from rpl_analysis.range_option import RANGE
from rpl_analysis.text import (
    between,
    duration_ns,
    linker_names,
    named_few,
    names_like,
    one_unit,
    shorten_apart,
    shown_names,
    times_as_fast,
)
from rpl_core.cli.command_options import PluginOptionsCommand, analysis_request, option_values
from rpl_core.cli.session import session_of
from rpl_core.contracts import SCHEMA_VERSION
from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.text import did_you_mean

if TYPE_CHECKING:
    from rpl_analysis.what_if import Answer
    from rpl_core.cli.output import Output
    from rpl_core.cli.session import Session

_NAME_WIDTH = 48
_FREE = ("free", "inf")
#: Factors beyond these say nothing about a kernel any more (chosen).
_LEAST_FACTOR, _LARGEST_FACTOR = 0.001, 1000.0


@click.command("what-if", cls=PluginOptionsCommand)
@click.argument("changes", nargs=-1, required=True, metavar="KERNEL=FACTOR...")
@click.option(
    "--run",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Run directory or recording (default: the latest run).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def what_if(
    context: click.Context,
    /,
    changes: tuple[str, ...],
    recordings: tuple[Path, ...],
    as_json: bool,
    **flags: Any,
) -> None:
    """Predict the time of the application if each KERNEL (a name or a part of one) were FACTOR times as fast.

    FACTOR is 1.5, 2x or free. The graph of the run is solved again, for every kernel alone and for all of
    them at once. Nothing is executed.

    \b
    rpl what-if gemm=1.5x
    rpl what-if gemm=2 softmax=free --run rpl-runs/latest
    """
    from rpl_core.cli.output import shown_while_long

    session = session_of(context)
    paths = recordings or (session.latest_run,)
    with shown_while_long("what-if", paths):
        document, names = _answer(session, changes, paths, flags)
    if as_json:
        session.output.json(plain_values(document))
    else:
        with one_unit(document.recorded_ns):
            _show(session.output, document, names)


def _answer(
    session: Session, changes: Sequence[str], paths: tuple[Path, ...], flags: Mapping[str, Any]
) -> tuple[WhatIf, dict[str, str]]:
    """The prediction for ``changes`` (``KERNEL=FACTOR``) on the run that the documents speak of.

    With it, how the run's kernels and copies are called.
    """
    # What loads numpy: the help of the command needs none of it.
    from rpl_analysis.documents.load import chosen_range
    from rpl_analysis.execution_graph.analyzer import median_run, why_no_graph
    from rpl_analysis.phases import restricted
    from rpl_analysis.what_if import FasterKernel, ReplayedRun
    from rpl_core.ingest import load_recording
    from rpl_core.pipeline import run_directory_of

    asked = [_parsed(text) for text in changes]
    request = analysis_request(session, flags, run_directory_of(paths), command="what-if")
    within = chosen_range(paths, option_values(session, "what-if", flags)[RANGE])
    recording = restricted(load_recording(paths, session.host.catalog.readers().contributions), within)
    chosen = median_run(recording)
    if chosen is None:
        raise BadDataError(
            f"there is no graph to solve: {why_no_graph(recording)}",
            next_step="record a kernel trace without counters",
        )
    run, trace = chosen
    replayed = ReplayedRun(trace, include_copies=request.options[COPIES])
    named = [FasterKernel(_name(part, replayed.names), factor) for part, factor in asked]
    for name in sorted({change.name for change in named}):
        if sum(change.name == name for change in named) > 1:
            raise UsageError(f"{name[:80]!r} is asked for more than once", next_step="give one factor each")
    predicted = replayed.predict(named)
    shown = shown_names(replayed.names, request.options[NAMES], linker_names((trace,)))
    document = WhatIf(
        schema_version=SCHEMA_VERSION,
        origin=trace.origin.value,
        run=run,
        range=within,
        machine=predicted.machine,
        machines=predicted.machines,
        recorded_ns=predicted.recorded_ns,
        alone=tuple(_part(answer) for answer in predicted.alone),
        together=_part(predicted.together),
        at_most=replayed.at_most,
    )
    return document, shown


def _parsed(text: str) -> tuple[str, float]:
    """Part of a name and a factor; names may hold "=" themselves."""
    name, _, factor = text.rpartition("=")
    value = factor.strip().lower()
    if value in _FREE:
        number = math.inf
    else:
        try:
            number = float(value.removesuffix("x"))
        except ValueError:
            number = math.nan
    if not name or not (_LEAST_FACTOR <= number <= _LARGEST_FACTOR or number == math.inf):
        raise UsageError(
            f"{text!r} is no KERNEL=FACTOR",
            next_step=f"write gemm=1.5x, gemm=2 or gemm=free; factors from {_LEAST_FACTOR:g} to"
            f" {_LARGEST_FACTOR:g}",
        )
    return name, number


def _name(part: str, names: Sequence[str]) -> str:
    matching = names_like(part, names)
    if len(matching) == 1:
        return matching[0]
    if not matching:
        meant = did_you_mean(part, (*shown_names(names).values(), *names))
        raise MissingError(
            f"no kernel or copy of the run matches {part!r}{meant}", next_step="see `rpl report`"
        )
    called = shown_names(names)
    few = named_few([called[name] for name in matching])
    raise UsageError(f"{len(matching)} kernels match {part!r}: {few}", next_step="give more of the name")


def _part(answer: Answer) -> WhatIfAnswerPart:
    return WhatIfAnswerPart(
        changes=tuple(
            FasterKernelPart(name=change.name, factor=change.factor if math.isfinite(change.factor) else None)
            for change in answer.changes
        ),
        application_ns=answer.application_ns,
        application_gain_ns=answer.gain_ns,
        application_speedup=answer.speedup,
        application_gain_at_most_ns=answer.gain_at_most_ns,
    )


def _show(output: Output, document: WhatIf, names: Mapping[str, str]) -> None:
    """The answers as a table, with what they rest on; ``names`` says how the kernels are called."""
    marks = "" if document.origin == "measured" else f"  [{document.origin}: not a measurement of hardware]"
    place = f" on {document.machine}, 1 of {document.machines} machines" if document.machines > 1 else ""
    work = "" if document.range is None else f" in the ranges {document.range[:_NAME_WIDTH]!r}"
    output.line(
        f"application  {duration_ns(document.recorded_ns)} as recorded{work}{place} (timing run"
        f" {document.run + 1}){marks}"
    )
    output.line()
    asked = document.alone or (document.together,)
    short = shorten_apart(names.values(), _NAME_WIDTH)
    recorded = document.recorded_ns
    rows = [_row(short[names[answer.changes[0].name]], _factor(answer), answer, recorded) for answer in asked]
    if document.alone:
        rows.append(_row("all of these at once", "", document.together, recorded))
    columns = ("what if", "faster by", "application", "gain", "speed-up")
    output.table(columns, rows, right=columns[1:])
    output.line()
    output.line("Modelled: durations do not depend on what runs beside them; launches, host time,")
    output.line("waits and the order in which the host submits stay as recorded.")
    if any(answer.application_gain_at_most_ns is not None for answer in (*asked, document.together)):
        output.line("Ranges: which stream waited for which is not (all) recorded.")
    if document.at_most:
        output.line("Gains are at most these: no API calls recorded, the host may have needed the gaps.")


def _row(title: str, factor: str, answer: WhatIfAnswerPart, recorded_ns: int) -> tuple[str, ...]:
    least, most = answer.application_gain_ns, answer.application_gain_at_most_ns
    ends = (least,) if most is None else (least, most)
    application = between(*(duration_ns(recorded_ns - gain) for gain in reversed(ends)))
    speedup = between(*(times_as_fast(recorded_ns, gain) for gain in ends))
    return (title, factor, application, between(*map(duration_ns, ends)), speedup)


def _factor(answer: WhatIfAnswerPart) -> str:
    factor = answer.changes[0].factor
    return "free" if factor is None else f"{factor:g}x"
