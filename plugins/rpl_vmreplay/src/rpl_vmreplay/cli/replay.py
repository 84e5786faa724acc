"""``rpl replay``: run captured launches again.

Also whether two builds of a kernel compute the same on one of them (``rpl replay compare``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import Session, session_of
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_vmreplay.cli.capture import JsonCommand, JsonPluginOptionsCommand, replayer_option, timeout_option

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_core.errors import RplError
    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.compare.judge import Judgement, OutputResult, Subjects
    from rpl_vmreplay.compare.pair import Turns
    from rpl_vmreplay.interfaces import (
        Replayer,
        ReplayRequest,
        ReplayResult,
        ReserveRequest,
        ReserveResult,
    )

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
    output = session.output
    from rpl_core.errors import ExitCode, RplError
    from rpl_vmreplay.replay.outcome import exit_code_of

    failure = result.failure
    if failure is not None:
        said = RplError(failure.fact, cause=failure.cause, next_step=failure.next_step)
        output.note(f"rpl: {said.one_line()}")
    elif not as_json:
        _print_replay(output, capture, request, result)
    for note in result.notes:
        output.note(f"note: {note}")
    if failure is not None:
        return exit_code_of(failure)
    return int(ExitCode.NEGATIVE_FINDING if result.reproduced is False else ExitCode.OK)


def _replay_request(session: Session, flags: dict[str, Any]) -> tuple[Capture, ReplayRequest]:
    from rpl_core.cli.command_options import option_values
    from rpl_vmreplay.capture.wholeness import whole_capture
    from rpl_vmreplay.cli.capture import DEFAULT_FOLDER, named_folder
    from rpl_vmreplay.interfaces import ReplayRequest

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
    from rpl_vmreplay.interfaces import ReplayError
    from rpl_vmreplay.replay import chosen_replayer, without_gpu

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


def _print_replay(output: Output, capture: Capture, request: ReplayRequest, result: ReplayResult) -> None:
    from rpl_core.text import readable
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
    from rpl_vmreplay.cli.capture import named_folder
    from rpl_vmreplay.replay import chosen_replayer

    session = session_of(context)
    request = _reserve_request(session, named_folder(flags["capture"], flags["capture_dir"]), flags)
    result = chosen_replayer(session, flags["replayer"]).reserve(request)
    return _tell_reserve(session.output, request, result, as_json=as_json)


def _reserve_request(session: Session, folder: Path | None, flags: dict[str, Any]) -> ReserveRequest:
    from rpl_core.cli.command_options import option_values
    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.cli.capture import DEFAULT_FOLDER
    from rpl_vmreplay.interfaces import ReserveRequest
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
            (
                f"0x{reservation.requested:x}",
                "nothing" if reservation.returned is None else f"0x{reservation.returned:x}",
                str(reservation.size),
                "exact" if reservation.exact else "NO",
            )
            for reservation in result.reservations
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


def _count(request: ReserveRequest, result: ReserveResult) -> str:
    exact = sum(reservation.exact for reservation in result.reservations)
    return f"{exact} of {len(request.ranges)} reservations are where they were asked for"


def _document(result: ReserveResult) -> dict[str, Any]:
    from rpl_vmreplay.replay.outcome import SCHEMA_VERSION, error_of, reservation_document, verdict_of

    verdict = verdict_of(result)
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": None if verdict is None else verdict.name.lower(),
        "reservations": [reservation_document(reservation) for reservation in result.reservations],
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


# ``rpl replay compare``: whether another code object computes what the captured launch computed.


_MICROSECOND = 1000
_FILE = click.Path(path_type=Path)


@frozen
class _Given:
    """What the options of one call say, by the names that click gives them; ``None``: not said."""

    ulps: int
    unknown: str
    pairs: int | None
    cold_caches: bool
    kernel_timeout: float
    sanitize: bool
    captured_input_only: bool
    exact: bool
    replayer: str | None


def _failure_document(error: RplError) -> dict[str, Any]:
    from rpl_vmreplay.replay.outcome import SCHEMA_VERSION, error_of_exception

    nothing = ("kernel", "replayer", "poisoned_bytes", "read_first_bytes", "found_share", "findings", "times")
    lists = ("outputs", "inputs", "written_beside", "controls", "survivors", "usual_findings")
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": None,
        "reason": "nothing was compared",
        "covers": "nothing",
        "replays": 0,
        **dict.fromkeys(nothing),
        **{name: [] for name in lists},
        "error": error_of_exception(error),
    }


@click.command("compare", cls=JsonCommand, failure=_failure_document)
@click.argument("folder", metavar="CAPTURE", type=_FILE)
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
@click.option("--ulps", type=click.IntRange(0), default=0, show_default=True,
              help="Units in the last place by which floats may differ, beside A's own spread.")  # fmt: skip
@click.option("--type", "unknown", type=click.Choice(["bytes", "f64", "f32", "f16", "bf16"]), default="bytes",
              show_default=True, help="Of results whose type the kernel's name does not tell.")  # fmt: skip
@click.option("--pairs", type=click.IntRange(2, 1_000_000), metavar="N",
              help="If equal, launch both in turns N times each and compare their times.")  # fmt: skip
@click.option("--cold-caches", is_flag=True, help="With --pairs: empty caches before each launch.")
@timeout_option("Seconds for one launch of A")
@click.option("--sanitize", is_flag=True,
              help="Fail where nobody can look for races and reads of what nobody wrote.")  # fmt: skip
@click.option(
    "--captured-input-only", is_flag=True, help="Try no other numbers in the place of the captured ones."
)
@click.option("--exact", is_flag=True, help="Exit code 1 where B differs by rounding only.")
@replayer_option("Where to run: a replayer or its device; default: one that logs writes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def compare(context: click.Context, /, folder: Path, a: Path, b: Path, as_json: bool, **flags: Any) -> int:
    """Replay the launch of CAPTURE with the kernel of A and with that of B, and compare what they write.

    What A writes is poisoned before each run, except for what it reads first. Before B is called equal, wrong
    versions of A must be noticed. Other numbers than the captured ones are tried, too; other sizes are not.

    \b
    rpl replay compare isolate_capture isolate_capture/kernel.hsaco faster.hsaco
    rpl replay compare isolate_capture isolate_capture/kernel.hsaco faster.hsaco --pairs 30

    Exit code 0: equal, or differs by rounding only; 1: different; 65: another launch interface; 75: blind
    or undecided.
    """
    import tempfile

    from rpl_vmreplay.capture.wholeness import whole_capture
    from rpl_vmreplay.compare.pair import subjects_of
    from rpl_vmreplay.replay import logging_replayer

    session = session_of(context)
    capture = whole_capture(folder)
    given = _Given(**flags)
    replayer = logging_replayer(session, given.replayer)
    with tempfile.TemporaryDirectory(prefix="rpl-compare-") as place:
        subjects = subjects_of(capture, a, b, Path(place))
        judgement, turns = _compared(session, capture, subjects, replayer, given)
    if as_json:
        session.output.json({**document(capture, replayer, judgement), "times": _times(turns)})
    else:
        _print_judgement(session.output, replayer, judgement)
        _print_times(session.output, turns)
    return _exit_code(judgement, exact=given.exact)


def _exit_code(judgement: Judgement, *, exact: bool) -> int:
    from rpl_core.errors import ExitCode
    from rpl_vmreplay.compare.judge import Verdict

    codes = {
        Verdict.EQUAL: ExitCode.OK,
        Verdict.ROUNDING: ExitCode.NEGATIVE_FINDING if exact else ExitCode.OK,
        Verdict.DIFFERENT: ExitCode.NEGATIVE_FINDING,
    }
    return int(codes.get(judgement.verdict, ExitCode.NO_VERDICT))


def _compared(
    session: Session, capture: Capture, subjects: Subjects, replayer: Replayer, given: _Given
) -> tuple[Judgement, Turns | None]:
    """What is different behind the timed launches is different."""
    import attrs

    from rpl_core.cli.command_options import option_values
    from rpl_vmreplay.compare.judge import ACCEPTED, Allowance, Verdict
    from rpl_vmreplay.compare.outputs import DataType
    from rpl_vmreplay.compare.pair import TurnsRequest, compare_code, drawn_order, take_turns

    options, limit_s = option_values(session, "full-vm", {}), given.kernel_timeout
    allowance = Allowance(given.ulps, DataType(given.unknown), not given.captured_input_only)
    judgement = compare_code(
        capture,
        replayer,
        subjects,
        allowance=allowance,
        time_limit_s=limit_s,
        options=options,
        sanitize=given.sanitize or None,
    )
    if not given.pairs or judgement.verdict not in ACCEPTED or judgement.yardstick is None:
        return judgement, None
    order, cold = drawn_order(given.pairs), given.cold_caches
    request = TurnsRequest(capture, subjects, judgement.yardstick, order, limit_s, cold)
    turns = take_turns(request, _with_times(session, replayer, given.replayer), options)
    if turns.different:
        judgement = attrs.evolve(judgement, verdict=Verdict.DIFFERENT, reason=turns.problem or "")
    return judgement, turns


def _with_times(session: Session, replayer: Replayer, name: str | None) -> Replayer:
    """The one for GPUs, unless another one was asked for."""
    from rpl_vmreplay.replay import DEFAULT_REPLAYER, replayer_of

    return replayer if name is not None else replayer_of(session, DEFAULT_REPLAYER)


def _print_judgement(output: Output, replayer: Replayer, judgement: Judgement) -> None:
    from rpl_core.text import readable

    output.line(f"{judgement.verdict.value.upper()}: {readable(judgement.reason)}")
    output.line(f"({judgement.covers}; replayer {replayer.name}, {counted(judgement.replays, 'replay')})")
    rows = [_row(one) for one in judgement.outputs]
    columns = ("BEHIND", "TYPE", "BYTES", "DIFFERING", "WORST", "TOLERANCE")
    output.table(columns, rows, right=columns[2:])
    for one in judgement.outputs:
        if one.first is not None:
            output.line(f"first at 0x{one.first.address:x}: {one.found} instead of {one.expected}")
    for outside in judgement.outside:
        output.line(f"written beside: {outside.size} bytes at 0x{outside.address:x}")
    if judgement.poisoned_bytes is not None:
        kept = f"kept, since A reads them first: {judgement.read_first_bytes}"
        output.line(f"poisoned: {judgement.poisoned_bytes} bytes; {kept}")
    for given in judgement.inputs:
        why = "" if given.reason is None else f" ({readable(given.reason)})"
        output.line(f"with {given.name}: {given.outcome.value}{why}")
    if judgement.controls:
        noticed = sum(control.outcome.value in ("noticed", "crashed") for control in judgement.controls)
        without = sum(control.outcome.value == "no effect" for control in judgement.controls)
        share = "-" if judgement.found_share is None else f"{judgement.found_share:.0%}"
        output.line(
            f"wrong kernels noticed: {noticed} of {len(judgement.controls)}, {share} of those that change "
            f"anything; "
            f"{without} change nothing with this input"
        )
    for text in judgement.findings or ():
        output.line(f"found: {readable(text)}")
    for kind in judgement.usual_findings:
        output.line(f"A has it, too, so it does not count: {kind}")
    for edit in judgement.survivors:
        output.line(f"not noticed: {readable(edit)}")


def _print_times(output: Output, turns: Turns | None) -> None:
    from rpl_core.text import readable

    if turns is None:
        return
    if turns.problem is not None:
        output.line(f"no times: {readable(turns.problem)}")
        return
    told = _times(turns)
    assert told is not None
    output.line(
        f"times ({told['origin']}): A {told['a_median']:.3f} us, B {told['b_median']:.3f} us; B / A "
        f"{told['ratio']:.4f}, half of the pairs {told['ratio_quartiles'][0]:.4f} to "
        f"{told['ratio_quartiles'][1]:.4f}; {counted(len(turns.pairs), 'pair')}"
    )


def _times(turns: Turns | None) -> dict[str, Any] | None:
    """In microseconds; ratios are medians and quartiles over the pairs."""
    import statistics

    if turns is None:
        return None
    sides = [[pair[side] / _MICROSECOND for pair in turns.pairs] for side in (0, 1)]
    medians = [statistics.median(side) if side else None for side in sides]
    ratios = turns.ratios
    quartiles = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else None
    return {
        "unit": "microseconds",
        "origin": None if turns.origin is None else turns.origin.value,
        "problem": turns.problem,
        "a": sides[0],
        "b": sides[1],
        "a_median": medians[0],
        "b_median": medians[1],
        "ratio": statistics.median(ratios) if ratios else None,
        "ratio_quartiles": None if quartiles is None else [quartiles[0], quartiles[2]],
    }


def _row(one: OutputResult) -> tuple[str, ...]:
    from rpl_core.text import readable

    name = readable(one.output.argument or f"0x{one.output.base:x}")
    measures = (one.output.size, one.differing, _ulps(one.worst), one.tolerance)
    return (name, one.output.kind.value, *(str(value) for value in measures))


def _ulps(distance: int) -> int | str:
    from rpl_vmreplay.compare.outputs import NOT_A_NUMBER

    return distance if distance < NOT_A_NUMBER else "-"


def document(capture: Capture, replayer: Replayer, judgement: Judgement) -> dict[str, Any]:
    """``ulps`` that are no numbers are null: bytes, or not-a-number against a number."""
    return {
        "schema_version": "1.0",
        "verdict": judgement.verdict.value,
        "reason": judgement.reason,
        "covers": judgement.covers,
        "kernel": capture.dispatch.demangled_name,
        "replayer": {"name": replayer.name, "origin": replayer.origin.value},
        "replays": judgement.replays,
        "outputs": [_output_json(output) for output in judgement.outputs],
        "inputs": [
            {"name": one.name, "outcome": one.outcome.value, "reason": one.reason} for one in judgement.inputs
        ],
        "found_share": judgement.found_share,
        "written_beside": [{"address": one.address, "size": one.size} for one in judgement.outside],
        "poisoned_bytes": judgement.poisoned_bytes,
        "read_first_bytes": judgement.read_first_bytes,
        "controls": [
            {"edit": control.edit, "outcome": control.outcome.value} for control in judgement.controls
        ],
        "survivors": list(judgement.survivors),
        "findings": None if judgement.findings is None else list(judgement.findings),
        "usual_findings": list(judgement.usual_findings),
        "error": None,
    }


def _output_json(one: OutputResult) -> dict[str, Any]:
    worst = _ulps(one.worst)
    return {
        "argument": one.output.argument,
        "address": one.output.base,
        "type": one.output.kind.value,
        "bytes": one.output.size,
        "baseline_spread_ulps": one.spread,
        "tolerance_ulps": one.tolerance,
        "differing": one.differing,
        "worst_ulps": worst if isinstance(worst, int) else None,
        "any_order": one.any_order,
        "rounding": None
        if one.apart is None
        else {"largest_difference": one.apart, "bound_there": one.allowed},
        "first": None
        if one.first is None
        else {"address": one.first.address, "expected": one.expected, "found": one.found},
    }


replay.add_command(compare)
replay.add_command(full_vm)
replay.add_command(reserve_check)
