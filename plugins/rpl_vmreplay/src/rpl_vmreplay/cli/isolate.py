"""``rpl isolate``: capture one launch of a program with the memory that it needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand
from rpl_core.cli.session import Session, session_of

if TYPE_CHECKING:
    from rpl_vmreplay.isolate import IsolateRequest, Outcome

DEFAULT_FOLDER = "isolate_capture"


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
        session.output.json(_plain(outcome))
    if outcome.error is not None:
        raise outcome.error
    if not as_json:
        session.output.line(outcome.fact)
    for warning in outcome.warnings:
        session.output.note(f"warning: {warning}")
    return int(outcome.exit_code)


def _request(session: Session, application: tuple[str, ...], flags: dict[str, Any]) -> IsolateRequest:
    from rpl_core.cli.command_options import option_values
    from rpl_core.process.launch import application_command
    from rpl_vmreplay.isolate import IsolateRequest, require_expression
    from rpl_vmreplay.native_parts import CAPTURE_TOOL, NATIVE_FOLDER, find_part

    kernel = flags["kernel"]
    return IsolateRequest(
        command=application_command(application),
        library=find_part(CAPTURE_TOOL, option_values(session, "isolate", flags)[NATIVE_FOLDER]),
        output=flags["output"] or Path(DEFAULT_FOLDER),
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


def _plain(outcome: Outcome) -> dict[str, Any]:
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
