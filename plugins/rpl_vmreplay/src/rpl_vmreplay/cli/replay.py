"""``rpl replay``: run captured launches again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import Session, session_of
from rpl_vmreplay.cli.captures import JsonPluginOptionsCommand, replayer_option, timeout_option
from rpl_vmreplay.cli.compare import compare

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_core.errors import RplError
    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.interfaces.replayer import ReplayRequest, ReplayResult, ReserveRequest, ReserveResult


_FOLDER = click.Path(path_type=Path)


def _replay_failure_document(error: RplError) -> dict[str, Any]:
    from rpl_vmreplay.replay.outcome import failure_document

    return failure_document(error)


@click.command("full-vm", cls=JsonPluginOptionsCommand, failure=_replay_failure_document)
@click.argument("capture", type=_FOLDER, required=False)
@click.option("--capture-dir", type=_FOLDER, help="The same as CAPTURE (default: ./isolate_capture).")
@click.option(
    "--iterations", type=click.IntRange(1, 1_000_000), default=1, help="How many launches are timed."
)
@click.option(
    "--warm-ups", type=click.IntRange(0, 1_000_000), default=0, help="Launches before, which don't count."
)
@click.option("--no-recopy", is_flag=True, help="Restore the memory before the first launch only.")
@click.option("--cold-caches", is_flag=True, help="Make what caches hold give way before each launch.")
@click.option("--hsaco", type=_FOLDER, metavar="FILE", help="Run this code object's kernel instead.")
@click.option("--patch-hidden-args", is_flag=True, help="Zero hidden arguments that lead into the program.")
@timeout_option("Seconds for one launch")
@replayer_option("Where to run it: a replayer, or a device (default: RPL_DEVICE, else hsa: a GPU).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def full_vm(context: click.Context, /, as_json: bool, **flags: Any) -> int:
    """Run the launch of CAPTURE again with the memory that it had, and compare what it leaves.

    Each launch starts from the captured memory; with --no-recopy only the first does.

    \b
    rpl replay full-vm isolate_capture --iterations 20
    rpl replay full-vm isolate_capture --hsaco faster.hsaco --json

    Exit code 0: it ran; 1: the memory afterwards is not that of the captured launch, or memory could not be
    reserved, mapped or copied; 3: other addresses; 4: GPU fault; 5: another kind of GPU; 6: no virtual
    memory; 75: not decidable; 124: time limit.
    """
    from rpl_vmreplay.replay.outcome import replay_document

    session = session_of(context)
    capture, request = _replay_request(session, flags)
    result = _run(session, flags, capture, request)
    if as_json:
        session.output.json(replay_document(capture, request, result))
    return _tell_replay(session.output, capture, request, result, as_json=as_json)


def _replay_request(session: Session, flags: dict[str, Any]) -> tuple[Capture, ReplayRequest]:
    from rpl_core.cli.command_options import option_values
    from rpl_vmreplay.capture.wholeness import whole_capture
    from rpl_vmreplay.cli.captures import DEFAULT_FOLDER, named_folder
    from rpl_vmreplay.interfaces.replayer import ReplayRequest

    capture = whole_capture(named_folder(flags["capture"], flags["capture_dir"]) or DEFAULT_FOLDER)
    request = ReplayRequest(
        capture=capture.folder,
        iterations=flags["iterations"],
        warm_ups=flags["warm_ups"],
        recopy=not flags["no_recopy"],
        code_object=flags["hsaco"],
        cold_caches=flags["cold_caches"],
        patch_hidden_args=flags["patch_hidden_args"],
        time_limit_s=flags["kernel_timeout"],
        options=option_values(session, "full-vm", flags),
    )
    return capture, request


def _run(session: Session, flags: dict[str, Any], capture: Capture, request: ReplayRequest) -> ReplayResult:
    """Where there is no GPU, or nothing to drive one, the remedy that needs none comes first."""
    import attrs

    from rpl_core.errors import MissingError
    from rpl_vmreplay.interfaces.replayer import ReplayError
    from rpl_vmreplay.replayers import chosen_replayer, without_gpu

    replayer = chosen_replayer(session, flags["replayer"])

    def remedy(usual: str | None) -> str | None:
        other = without_gpu(session, replayer, capture.dispatch.isa_name)
        return usual if other is None else f"{other}{f'; or {usual}' if usual else ''}"

    try:
        result = replayer.replay(request)
    except MissingError as error:
        error.next_step = remedy(error.next_step)
        raise
    failure = result.failure
    if failure is None or failure.kind not in (ReplayError.NO_RUNTIME, ReplayError.NO_DEVICE):
        return result
    return attrs.evolve(result, failure=attrs.evolve(failure, next_step=remedy(failure.next_step)))


def _tell_replay(
    output: Output, capture: Capture, request: ReplayRequest, result: ReplayResult, *, as_json: bool
) -> int:
    from rpl_core.errors import RplError
    from rpl_core.exit_codes import ExitCode
    from rpl_vmreplay.replay.outcome import exit_code_of

    failure = result.failure
    if failure is not None:
        said = RplError(failure.fact, cause=failure.cause, next_step=failure.next_step)
        output.note(f"rpl: {said.one_line()}")
    elif not as_json:
        _print(output, capture, request, result)
    for note in result.notes:
        output.note(f"note: {note}")
    if failure is not None:
        return exit_code_of(failure)
    return int(ExitCode.NEGATIVE_FINDING if result.reproduced is False else ExitCode.OK)


def _print(output: Output, capture: Capture, request: ReplayRequest, result: ReplayResult) -> None:
    from rpl_core.text.safety import readable
    from rpl_vmreplay.replay.outcome import timing_of

    where = result.environment
    timing = timing_of(result.times_ns)
    output.line(f"kernel            {readable(capture.dispatch.demangled_name)}")
    output.line(f"on                {readable(where.product or where.device or 'unknown')}")
    output.line(f"iterations        {request.iterations}, after {request.warm_ups} warm-ups")
    output.line(f"memory recopy     {_recopy(request, result)}")
    if timing.average is None:
        output.line("average GPU time  unknown: this replayer knows no time")
    else:
        output.line(f"average GPU time  {timing.average:.3f} us ({result.origin.value})")
    if result.wall_ns is not None:
        output.line(f"total wall time   {result.wall_ns / 1e9:.3f} s")
    reason = f": {result.reproduced_reason}" if result.reproduced_reason else ""
    said = {True: "yes", False: "NO", None: "unknown"}[result.reproduced]
    output.line(f"reproduced        {said}{reason}")
    for one in result.differing[:10]:
        output.line(f"  differs in the {one.size} bytes at 0x{one.address:x}")


def _recopy(request: ReplayRequest, result: ReplayResult) -> str:
    if not request.recopy:
        return "no"
    if result.restored_bytes is None:
        return "yes"
    return f"yes, of the {result.restored_bytes} bytes that launches change"


# The group, and ``rpl replay reserve-check``.

# `rpl replay reserve-check`: whether the addresses of a capture can be had here.


def _reserve_failure_document(error: RplError) -> dict[str, Any]:
    from rpl_vmreplay.replay.outcome import SCHEMA_VERSION, error_of_exception

    nothing = dict.fromkeys(("verdict", "gpu_agent", "runtime"))
    told = error_of_exception(error)
    return {"schema_version": SCHEMA_VERSION, **nothing, "reservations": [], "error": told}


@click.command("reserve-check", cls=JsonPluginOptionsCommand, failure=_reserve_failure_document)
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
    request = _reserve_request(session, named_folder(flags["capture"], flags["capture_dir"]), flags)
    result = chosen_replayer(session, flags["replayer"]).reserve(request)
    return _tell_reserve(session.output, request, result, as_json=as_json)


def _reserve_request(session: Session, folder: Path | None, flags: dict[str, Any]) -> ReserveRequest:
    from rpl_core.cli.command_options import option_values
    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.cli.captures import DEFAULT_FOLDER
    from rpl_vmreplay.interfaces.replayer import ReserveRequest
    from rpl_vmreplay.replay.outcome import PROBES, ranges_of

    options = option_values(session, "reserve-check", flags)
    if folder is None and not DEFAULT_FOLDER.exists():
        return ReserveRequest(PROBES, options=options)
    capture = open_capture(folder or DEFAULT_FOLDER)
    return ReserveRequest(ranges_of(capture), capture.dispatch.isa_name, options)


def _tell_reserve(output: Output, request: ReserveRequest, result: ReserveResult, *, as_json: bool) -> int:
    from rpl_core.errors import RplError
    from rpl_vmreplay.replay.outcome import exit_code_of, verdict_of

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
    from rpl_vmreplay.replay.outcome import SCHEMA_VERSION, error_of, reservation_document, verdict_of

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
