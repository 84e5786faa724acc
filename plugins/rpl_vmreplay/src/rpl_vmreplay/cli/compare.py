"""``rpl replay compare``: whether another code object computes what the captured launch computed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of
from rpl_vmreplay.cli.captures import replayer_option

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.compare.judge import Judgement, OutputResult
    from rpl_vmreplay.interfaces.replayer import Replayer

_FILE = click.Path(path_type=Path)
#: What a verdict means, wherever one is shown.
COVERS = "for the captured input only: other sizes, values or launches were not tried"


@click.command("compare")
@click.argument("folder", metavar="CAPTURE", type=_FILE)
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
@click.option("--ulps", type=click.IntRange(0), default=0, show_default=True,
              help="Units in the last place by which floats may differ, beside A's own spread.")  # fmt: skip
@click.option("--type", "unknown", type=click.Choice(["bytes", "f64", "f32", "f16", "bf16"]), default="bytes",
              show_default=True, help="Of results whose type the kernel's name does not tell.")  # fmt: skip
@click.option("--kernel-timeout", type=click.FloatRange(0, min_open=True), default=60.0, metavar="S",
              help="Seconds for one launch of A (default: 60).")  # fmt: skip
@replayer_option("Where to run: a replayer or its device; default: one that logs writes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def compare(context: click.Context, /, folder: Path, a: Path, b: Path, as_json: bool, **flags: Any) -> int:
    """Replay the launch of CAPTURE with the kernel of A and with that of B, and compare what they write.

    What A writes is poisoned before each run, except for what it reads first. Before B is called equal, wrong
    versions of A must be noticed. The verdict is for the captured input only.

    \b
    rpl replay compare isolate_capture isolate_capture/kernel.hsaco faster.hsaco

    Exit code 0: equal; 1: different; 65: another launch interface; 75: blind or undecided.
    """
    import tempfile

    from rpl_core.cli.command_options import option_values
    from rpl_vmreplay.cli.captures import logging_replayer, whole_capture
    from rpl_vmreplay.compare.data_types import DataType
    from rpl_vmreplay.compare.judge import Allowance, compare_code
    from rpl_vmreplay.compare.subjects import subjects_of

    session = session_of(context)
    capture = whole_capture(folder)
    replayer = logging_replayer(session, flags["replayer"])
    with tempfile.TemporaryDirectory(prefix="rpl-compare-") as place:
        found = compare_code(
            capture,
            replayer,
            subjects_of(capture, a, b, Path(place)),
            allowance=Allowance(flags["ulps"], DataType(flags["unknown"])),
            time_limit_s=flags["kernel_timeout"],
            options=option_values(session, "full-vm", {}),
        )
    if as_json:
        session.output.json(document(capture, replayer, found))
    else:
        _print(session.output, replayer, found)
    return _exit_code(found)


def _exit_code(found: Judgement) -> int:
    from rpl_core.exit_codes import ExitCode
    from rpl_vmreplay.compare.judge import Verdict

    codes = {Verdict.EQUAL: ExitCode.OK, Verdict.DIFFERENT: ExitCode.NEGATIVE_FINDING}
    return int(codes.get(found.verdict, ExitCode.NO_VERDICT))


def _print(output: Output, replayer: Replayer, found: Judgement) -> None:
    from rpl_core.text.safety import readable

    output.line(f"{found.verdict.value.upper()}: {readable(found.reason)}")
    output.line(f"({COVERS}; replayer {replayer.name}, {found.replays} replays)")
    rows = [_row(one) for one in found.outputs]
    output.table(("BEHIND", "TYPE", "BYTES", "DIFFERING", "WORST", "TOLERANCE"), rows, right=(2, 3, 4, 5))
    for one in found.outputs:
        if one.first is not None:
            output.line(f"first at 0x{one.first.address:x}: {one.found} instead of {one.expected}")
    for outside in found.outside:
        output.line(f"written beside: {outside.size} bytes at 0x{outside.address:x}")
    if found.poisoned_bytes is not None:
        kept = f"kept, since A reads them first: {found.read_first_bytes}"
        output.line(f"poisoned: {found.poisoned_bytes} bytes; {kept}")
    if found.controls:
        noticed = sum(one.outcome.value in ("noticed", "crashed") for one in found.controls)
        output.line(f"wrong kernels noticed: {noticed} of {len(found.controls)}")
    for edit in found.survivors:
        output.line(f"not noticed: {readable(edit)}")


def _row(one: OutputResult) -> tuple[str, ...]:
    from rpl_core.text.safety import readable

    name = readable(one.output.argument or f"0x{one.output.base:x}")
    measures = (one.output.size, one.differing, _ulps(one.worst), one.tolerance)
    return (name, one.output.kind.value, *(str(value) for value in measures))


def _ulps(distance: int) -> int | str:
    from rpl_vmreplay.compare.data_types import NOT_A_NUMBER

    return distance if distance < NOT_A_NUMBER else "-"


def document(capture: Capture, replayer: Replayer, found: Judgement) -> dict[str, Any]:
    """``ulps`` that are no numbers are null: bytes, or not-a-number against a number."""
    return {
        "schema_version": "1.0",
        "verdict": found.verdict.value,
        "reason": found.reason,
        "covers": COVERS,
        "kernel": capture.dispatch.demangled_name,
        "replayer": {"name": replayer.name, "origin": replayer.origin.value},
        "replays": found.replays,
        "outputs": [_plain(one) for one in found.outputs],
        "written_beside": [{"address": one.address, "size": one.size} for one in found.outside],
        "poisoned_bytes": found.poisoned_bytes,
        "read_first_bytes": found.read_first_bytes,
        "controls": [{"edit": one.edit, "outcome": one.outcome.value} for one in found.controls],
        "survivors": list(found.survivors),
    }


def _plain(one: OutputResult) -> dict[str, Any]:
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
        "first": None
        if one.first is None
        else {"address": one.first.address, "expected": one.expected, "found": one.found},
    }
