"""``rpl replay``: run captured launches again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of
from rpl_vmreplay.cli.captures import JsonPluginOptionsCommand, replayer_option
from rpl_vmreplay.cli.compare import compare
from rpl_vmreplay.cli.full_vm import full_vm

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_core.cli.session import Session
    from rpl_core.errors import RplError
    from rpl_vmreplay.interfaces.replayer import ReserveRequest, ReserveResult


# `rpl replay reserve-check`: whether the addresses of a capture can be had here.


_FOLDER = click.Path(path_type=Path)


def _failure_document(error: RplError) -> dict[str, Any]:
    from rpl_vmreplay.replay.outcome import SCHEMA_VERSION, error_of_exception

    nothing = dict.fromkeys(("verdict", "gpu_agent", "runtime"))
    told = error_of_exception(error)
    return {"schema_version": SCHEMA_VERSION, **nothing, "reservations": [], "error": told}


@click.command("reserve-check", cls=JsonPluginOptionsCommand, failure=_failure_document)
@click.argument("capture", type=_FOLDER, required=False)
@click.option("--capture-dir", type=_FOLDER, help="The same as CAPTURE (default: ./isolate_capture).")
@replayer_option("Whom to ask: a replayer, or a device (default: RPL_DEVICE, else hsa: a GPU).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def reserve_check(context: click.Context, /, as_json: bool, **flags: Any) -> int:
    """Ask the runtime for the addresses of CAPTURE, page by page, and give them back; nothing is run.

    Without a capture three fixed places are asked for.

    Exit code 0: all were given exactly; 1: a reservation failed; 2: other addresses were given.
    """
    from rpl_vmreplay.cli.captures import named_folder
    from rpl_vmreplay.replayers import chosen_replayer

    session = session_of(context)
    request = _request(session, named_folder(flags["capture"], flags["capture_dir"]), flags)
    result = chosen_replayer(session, flags["replayer"]).reserve(request)
    return _told(session.output, request, result, as_json=as_json)


def _request(session: Session, folder: Path | None, flags: dict[str, Any]) -> ReserveRequest:
    from rpl_core.cli.command_options import option_values
    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.cli.captures import DEFAULT_FOLDER
    from rpl_vmreplay.interfaces.replayer import ReserveRequest
    from rpl_vmreplay.replay.reservations import PROBES, ranges_of

    options = option_values(session, "reserve-check", flags)
    if folder is None and not DEFAULT_FOLDER.exists():
        return ReserveRequest(PROBES, options=options)
    capture = open_capture(folder or DEFAULT_FOLDER)
    return ReserveRequest(ranges_of(capture), capture.dispatch.isa_name, options)


def _told(output: Output, request: ReserveRequest, result: ReserveResult, *, as_json: bool) -> int:
    from rpl_core.errors import RplError
    from rpl_vmreplay.replay.outcome import exit_code_of
    from rpl_vmreplay.replay.reservations import verdict_of

    verdict, failure = verdict_of(result), result.failure
    if as_json:
        output.json(_document(result))
    else:
        rows = [
            (f"0x{one.requested:x}", _returned(one.returned), str(one.size), "exact" if one.exact else "NO")
            for one in result.reservations
        ]
        if rows:
            output.table(("REQUESTED", "RETURNED", "BYTES", "EXACT"), rows, right=("BYTES",))
        output.line("undecided" if verdict is None else f"{verdict.name.lower()}: {_count(request, result)}")
    if failure is not None:
        said = RplError(failure.fact, cause=failure.cause, next_step=failure.next_step)
        output.note(f"rpl: {said.one_line()}")
    if verdict is not None:
        return int(verdict)
    return 0 if failure is None else exit_code_of(failure)


def _returned(address: int | None) -> str:
    return "nothing" if address is None else f"0x{address:x}"


def _count(request: ReserveRequest, result: ReserveResult) -> str:
    exact = sum(one.exact for one in result.reservations)
    return f"{exact} of {len(request.ranges)} reservations are where they were asked for"


def _document(result: ReserveResult) -> dict[str, Any]:
    from rpl_vmreplay.replay.outcome import SCHEMA_VERSION, error_of, reservation_document
    from rpl_vmreplay.replay.reservations import verdict_of

    verdict = verdict_of(result)
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": None if verdict is None else verdict.name.lower(),
        "reservations": [reservation_document(one) for one in result.reservations],
        "gpu_agent": result.environment.device,
        "runtime": result.environment.runtime,
        "error": None if result.failure is None else error_of(result.failure),
    }


@click.group("replay")
def replay() -> None:
    """Run captures of one kernel launch again, alone and as often as you like.

    Those of `rpl isolate`, of the first rocm-perf-lab and of kerncap are taken.

    \b
    rpl replay full-vm captured
    rpl replay compare captured before.hsaco after.hsaco --pairs 20
    """


replay.add_command(compare)
replay.add_command(full_vm)
replay.add_command(reserve_check)
