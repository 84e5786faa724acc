"""``rpl capture``: what a capture holds, whether it is whole, how two differ. Needs neither GPU nor ROCm.

``rpl isolate``: capture one launch of a program with the memory that it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand
from rpl_core.cli.session import Session, session_of
from rpl_core.text import counted

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_core.errors import RplError
    from rpl_vmreplay.capture.folder import Capture, Difference
    from rpl_vmreplay.capture.plain_memory import Accesses
    from rpl_vmreplay.capture.records import Extras, Region
    from rpl_vmreplay.isolate import IsolateRequest, Outcome

# What the commands of `rpl replay` share: their one document, the folder they are for, and options.

DEFAULT_FOLDER = Path("isolate_capture")


class JsonCommand(click.Command):
    """With --json it prints ``failure(error)`` when it fails, be it for words that it does not know."""

    def __init__(self, *words: Any, failure: Callable[[RplError], dict[str, Any]], **attributes: Any) -> None:
        super().__init__(*words, **attributes)
        self._failure = failure

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from rpl_core.errors import UsageError

        as_json = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if as_json:
                self._print(ctx, UsageError(error.format_message()))
            raise

    def invoke(self, ctx: click.Context) -> Any:
        from rpl_core.errors import RplError

        try:
            return super().invoke(ctx)
        except RplError as error:
            if ctx.params.get("as_json"):
                self._print(ctx, error)
            raise

    def _print(self, ctx: click.Context, error: RplError) -> None:
        from rpl_core.cli.session import session_of

        session_of(ctx).output.json(self._failure(error))


class JsonPluginOptionsCommand(JsonCommand, PluginOptionsCommand):
    """The same with the options that plugins declare for it."""


def replayer_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Where to run, by the name of a replayer or of the device that it replays on; ``text`` is its help."""
    return click.option("--replayer", "--device", default=None, metavar="NAME", help=text)


def timeout_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How long a kernel may run; ``text`` says for what."""
    limit = click.FloatRange(0, min_open=True)
    return click.option(
        "--kernel-timeout", type=limit, default=60.0, metavar="S", help=f"{text} (default: 60)."
    )


def named_folder(argument: Path | None, option: Path | None) -> Path | None:
    """Raises UsageError when two different ones are named."""
    from rpl_core.errors import UsageError

    if argument is not None and option is not None and argument.absolute() != option.absolute():
        raise UsageError(
            f"CAPTURE is {argument} and --capture-dir is {option}", next_step="name one of them only"
        )
    return argument if argument is not None else option


@click.command("isolate", cls=PluginOptionsCommand)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@click.option("--kernel", metavar="REGEX", help="Kernels to look at, by mangled or demangled name.")
@click.option(
    "--dispatch", type=click.IntRange(0, (1 << 63) - 1), default=0, help="Which of their launches, from 0."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help=f"Folder (default: ./{DEFAULT_FOLDER})."
)
@click.option("--replace", is_flag=True, help="Give up the capture in the folder once the new one is whole.")
@click.option(
    "--regions",
    type=click.Choice(["full", "referenced"]),
    default="full",
    help="All memory, or only that to which the arguments lead.",
)
@click.option(
    "--after",
    type=click.Choice(["hashes", "bytes", "none"]),
    default="hashes",
    help="What to keep of the memory after the launch.",
)
@click.option("--no-hash", is_flag=True, help="Keep no hashes of the memory.")
@click.option("--compress", is_flag=True, help="Pack the memory by zstd.")
@click.option("--no-low-addresses", is_flag=True, help="Leave the choice of addresses to the program's run.")
@click.option("--drain-timeout", type=click.FloatRange(0, min_open=True), metavar="S",
              help="Seconds for work in flight.")  # fmt: skip
@click.option("--kernel-timeout", type=click.FloatRange(0, min_open=True), metavar="S",
              help="Seconds for the launch.")  # fmt: skip
@click.option("--time-limit", type=float, metavar="S", help="Seconds that the program may take.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def isolate(context: click.Context, /, application: tuple[str, ...], as_json: bool, **flags: Any) -> int:
    """Run APPLICATION and capture one launch of a kernel with all memory that it may need.

    The program's own result and exit code stay as they are; its output goes to stderr. Processes that it
    starts write to `<folder>_<pid>`.

    \b
    rpl isolate --kernel 'softmax' -- ./app 100
    rpl isolate --kernel '^gemm<' --dispatch 3 -o before -- ./app 100

    Exit code 0: captured; 1: no launch matched; 69: the tool or its runtime is missing; 75: work in flight
    did not end; 76: the program failed.
    """
    from rpl_vmreplay.isolate import isolate as run
    from rpl_vmreplay.isolate import outcome_of

    session = session_of(context)
    request = _request(session, application, flags)
    isolated = run(request, session.output.note)
    outcome = outcome_of(request, isolated)
    if as_json:
        session.output.json(_outcome_json(outcome))
    if outcome.error is not None:
        raise outcome.error
    if not as_json:
        session.output.line(outcome.fact)
    for warning in outcome.warnings:
        session.output.note(f"warning: {warning}")
    return int(outcome.exit_code)


def _request(session: Session, application: tuple[str, ...], flags: dict[str, Any]) -> IsolateRequest:
    from rpl_core.cli.command_options import option_values
    from rpl_core.process import application_command
    from rpl_vmreplay.isolate import IsolateRequest, require_expression
    from rpl_vmreplay.native_parts import CAPTURE_TOOL, NATIVE_FOLDER, find_part

    kernel = flags["kernel"]
    return IsolateRequest(
        command=application_command(application),
        library=find_part(CAPTURE_TOOL, option_values(session, "isolate", flags)[NATIVE_FOLDER]),
        output=flags["output"] or DEFAULT_FOLDER,
        kernel=None if kernel is None else require_expression(kernel),
        dispatch=flags["dispatch"],
        regions=flags["regions"],
        post=flags["after"],
        hashing=not flags["no_hash"],
        compress=flags["compress"],
        low_addresses=not flags["no_low_addresses"],
        drain_timeout_s=flags["drain_timeout"],
        kernel_timeout_s=flags["kernel_timeout"],
        time_limit_s=session.setting("time-limit", flags["time_limit"]),
        replace=flags["replace"],
    )


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "state": outcome.state,
        "fact": outcome.fact,
        "folder": outcome.folder,
        "matches": outcome.matches,
        "launches": outcome.launches,
        "nearest": list(outcome.nearest),
        "warnings": list(outcome.warnings),
    }


_FOLDER = click.Path(path_type=Path)


@click.command("shrink")
@click.argument("folder", type=_FOLDER)
@click.option("-o", "--output", "target", type=_FOLDER, required=True, help="Folder of the new capture.")
@replayer_option("What tells the accesses; default: a replayer that logs them.")
@timeout_option("Seconds for one replay")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def shrink(
    context: click.Context,
    /,
    folder: Path,
    target: Path,
    replayer: str | None,
    kernel_timeout: float,
    as_json: bool,
) -> int:
    """Write a capture of the same launch with those pages of FOLDER only that it touches.

    The launch is replayed with a log of its accesses, its workgroups in three orders. The new capture is
    verified and replayed before it takes its place. It is for this code: another kernel that
    reads other pages ends in a fault there.

    \b
    rpl capture shrink isolate_capture -o small

    Exit code 0: written; 65: not whole, or the launch reaches memory that FOLDER lacks; 75: a replay does
    not leave what the captured launch left; 124: time limit.
    """
    from rpl_vmreplay.capture.shrink import shrink as shrink_capture
    from rpl_vmreplay.capture.wholeness import whole_capture
    from rpl_vmreplay.isolate import output_folder
    from rpl_vmreplay.replay import logging_replayer

    session = session_of(context)
    with output_folder(target, replace=False) as place:
        capture = whole_capture(folder)
        done = shrink_capture(capture, logging_replayer(session, replayer), place, kernel_timeout)
    new = done.capture
    if as_json:
        sizes = {"regions": len(new.regions), "bytes": new.bytes}
        before = {"regions": len(capture.regions), "bytes": capture.bytes}
        told = {"folder": str(target), **sizes, "before": before}
        session.output.json({"schema_version": "1.0", **told, "accesses": accesses_document(done.accesses)})
    else:
        kept = f"{new.bytes} of {capture.bytes} bytes"
        session.output.line(
            f"{kept} kept, in {counted(len(new.regions), 'region')} (before: {len(capture.regions)})"
        )
        if reason := done.accesses.reproduced_reason:
            session.output.note(f"whether replays leave what the launch left can't be said: {reason}")
    return 0


def accesses_told(session: Session, capture: Capture, replayer: str | None, limit_s: float) -> Accesses:
    from rpl_vmreplay.capture.plain_memory import accesses_of
    from rpl_vmreplay.replay import logging_replayer

    return accesses_of(capture, logging_replayer(session, replayer), limit_s)


def accesses_document(accesses: Accesses | None) -> dict[str, Any] | None:
    """``None`` where the launch did not come to its end."""
    if accesses is None:
        return None
    from rpl_vmreplay.capture.plain_memory import size_of

    return {
        "read_first_bytes": size_of(accesses.read_first),
        "written_bytes": size_of(accesses.written),
        "touched_bytes": accesses.bytes,
        "reproduced": accesses.reproduced,
        "reproduced_reason": accesses.reproduced_reason,
    }


# Reading captures.

#: Reasons why a capture is not whole that `verify` tells (chosen: nobody reads more).
_MOST_PROBLEMS = 1000


@click.group("capture")
def capture() -> None:
    """Look into captures of one kernel launch, check them, and compare two.

    Those of `rpl isolate`, of the first rocm-perf-lab and of kerncap are read. No GPU and no ROCm is needed.

    \b
    rpl capture info captured
    rpl capture verify captured
    """


capture.add_command(shrink)


@capture.command("info")
@click.argument("folder", type=_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def info(context: click.Context, folder: Path, as_json: bool) -> None:
    """Print the launch and the regions of memory that FOLDER holds."""
    from rpl_vmreplay.capture.folder import open_capture

    output = session_of(context).output
    opened = open_capture(folder)
    if as_json:
        output.json(_capture_json(opened))
    else:
        _print_capture(output, opened)


@capture.command("verify")
@click.argument("folder", type=_FOLDER)
@click.option("--accesses", is_flag=True,
              help="Replay the launch, too: does it reach captured memory only?")  # fmt: skip
@replayer_option("For --accesses; default: a replayer that logs them.")
@timeout_option("Seconds for one replay")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify(
    context: click.Context,
    /,
    folder: Path,
    accesses: bool,
    replayer: str | None,
    kernel_timeout: float,
    as_json: bool,
) -> int:
    """Check that FOLDER is a whole capture: every file is there, plain, and as large as the lists say.

    Where there are hashes, all bytes are read and compared with them. With --accesses the launch also runs
    again, its workgroups in three orders; a capture that lacks memory which it reaches is not whole.
    Exit code 0: whole; 65: not, with every reason.
    """
    from rpl_core.errors import BadDataError, ExitCode
    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.capture.wholeness import problems_of

    session = session_of(context)
    output = session.output
    opened = open_capture(folder)
    told_accesses = None
    # Each of hundreds of thousands of listed files may be absent: looking at them all takes minutes.
    problems = list(islice(problems_of(opened), _MOST_PROBLEMS + 1))
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [
            f"these are the first {_MOST_PROBLEMS} reasons; no others were looked for"
        ]
    if accesses and not problems:
        try:
            told_accesses = accesses_told(session, opened, replayer, kernel_timeout)
        except BadDataError as error:
            problems = [error.one_line()]
    if as_json:
        told = {"schema_version": "1.0", "whole": not problems, "problems": problems}
        output.json({**told, **({"accesses": accesses_document(told_accesses)} if accesses else {})})
    else:
        for problem in problems:
            output.line(problem)
        output.line(
            "NOT whole"
            if problems
            else f"whole: {counted(len(opened.regions), 'region')}, {opened.bytes} bytes"
        )
        if told_accesses is not None:
            reached = f"{told_accesses.bytes} bytes, all of them captured"
            read = counted(len(told_accesses.read_first), "range is", "ranges are")
            output.line(f"the launch reaches {reached} ({read} read)")
        if opened.complete is None and not problems:
            output.note("this layout can't say whether its tool finished")
    return int(ExitCode.BAD_DATA if problems else ExitCode.OK)


@capture.command("diff")
@click.argument("before", type=_FOLDER)
@click.argument("after", type=_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def diff(context: click.Context, before: Path, after: Path, as_json: bool) -> int:
    """Say how the capture AFTER differs from BEFORE: launch, arguments, code, regions, bytes.

    Exit code 0: alike; 1: they differ; 65: one of them is not whole.
    """
    from rpl_core.errors import ExitCode
    from rpl_vmreplay.capture.folder import difference

    output = session_of(context).output
    compared = difference(_sound_capture(before), _sound_capture(after))
    if as_json:
        output.json(_difference_json(compared))
    else:
        _print_difference(output, compared)
    return int(ExitCode.OK if compared.alike else ExitCode.NEGATIVE_FINDING)


def _sound_capture(folder: Path) -> Capture:
    from rpl_core.errors import BadDataError
    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.capture.wholeness import problems_of

    opened = open_capture(folder)
    if problem := next(problems_of(opened, contents=False), None):
        raise BadDataError(
            f"{folder} is not a whole capture: {problem}",
            next_step=f"rpl capture verify {folder} names all reasons",
        )
    return opened


def _print_capture(output: Output, opened: Capture) -> None:
    from rpl_core.text import readable

    launch = opened.dispatch
    output.line(f"kernel     {readable(launch.demangled_name)}")
    output.line(f"on         {readable(launch.agent_name)} ({readable(launch.isa_name)})")
    output.line(f"grid       {_sizes(launch.grid)} work-items in workgroups of {_sizes(launch.block)}")
    output.line(f"LDS        {launch.group_segment_size} bytes, private {launch.private_segment_size} bytes")
    output.line(f"arguments  {launch.kernarg_size} bytes")
    output.line(f"layout     {opened.layout}, {_completeness(opened)}")
    if opened.extras is not None:
        _print_extras(output, opened.extras)
    rows = [
        (f"0x{region.base:x}", str(region.size), _kind(opened, region), _note(opened, region))
        for region in opened.regions
    ]
    output.table(("ADDRESS", "BYTES", "KIND", "NOTE"), rows, right=("BYTES",))


def _print_extras(output: Output, extras: Extras) -> None:
    from rpl_core.text import readable
    from rpl_vmreplay.capture.folder import doubts_of

    agent, launch = extras.agent, extras.dispatch
    output.line(f"by         {readable(extras.tool.name)} {readable(extras.tool.version)}")
    output.line(f"GPU        {readable(agent.product or agent.name)}, number {agent.number}")
    output.line(f"launch     {launch.launch_index} of the process, {launch.match_index} of those that match")
    if launch.duration_ns is not None:
        output.line(f"took       {launch.duration_ns} ns")
    if (cut := extras.memory.shrunk) is not None:
        output.line(f"shrunk     to the touched pages, of {cut.regions} regions with {cut.bytes} bytes")
    for argument in extras.kernel.arguments or ():
        if argument.value_kind.startswith("hidden_"):  # the compiler's own
            continue
        name = readable(argument.name or argument.value_kind)
        output.line(f"argument   {name}, {argument.size} bytes at {argument.offset}")
    for doubt in doubts_of(extras):
        output.line(f"warning    {readable(doubt)}")


def _sizes(sizes: tuple[int, int, int]) -> str:
    return " x ".join(str(size) for size in sizes)


def _completeness(opened: Capture) -> str:
    if opened.complete is None:
        return "which can't say whether the tool finished"
    return "finished" if opened.complete else "cut short"


def _kind(opened: Capture, region: Region) -> str:
    told = opened.extras_of(region)
    if told is not None:
        return told.kind.replace("_", " ")
    return "virtual memory" if region.is_vmem else "pool" if region.is_pool else "other"


def _note(opened: Capture, region: Region) -> str:
    told = opened.extras_of(region)
    notes = {
        "kernel arguments": region.contains_kernarg,
        "changed by the launch": told is not None and told.changed_by_launch,
        "written by the host meanwhile": told is not None and told.written_by_host,
    }
    return ", ".join(note for note, holds in notes.items() if holds)


def _capture_json(opened: Capture) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "layout": opened.layout,
        "complete": opened.complete,
        "dispatch": opened.dispatch.model_dump(mode="json"),
        "regions": [region.model_dump(mode="json") for region in opened.regions],
        "variables": [variable.model_dump(mode="json") for variable in opened.variables],
        "extras": None if opened.extras is None else opened.extras.model_dump(mode="json"),
    }


def _print_difference(output: Output, difference: Difference) -> None:
    for name, old, new in difference.fields:
        output.line(f"{name}: {old} -> {new}")
    for text in difference.only_before:
        output.line(f"only before: {text}")
    for text in difference.only_after:
        output.line(f"only after: {text}")
    for one in difference.bytes:
        output.line(
            f"{one.name}: {counted(one.count, 'byte differs', 'bytes differ')}, the first at 0x{one.first:x}"
        )
    if difference.alike:
        output.line("alike")


def _difference_json(difference: Difference) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "alike": difference.alike,
        "fields": [{"name": name, "before": old, "after": new} for name, old, new in difference.fields],
        "only_before": list(difference.only_before),
        "only_after": list(difference.only_after),
        "bytes": [{"name": one.name, "first": one.first, "count": one.count} for one in difference.bytes],
    }
