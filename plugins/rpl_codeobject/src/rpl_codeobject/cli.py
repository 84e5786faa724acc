"""``rpl abi-diff``: what two builds of a GPU program differ in, read from their code objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of
from rpl_core.text import counted

if TYPE_CHECKING:
    from rpl_codeobject.comparing import AbiDiff
    from rpl_codeobject.disassembly import IsaDiff
    from rpl_codeobject.kernel_code import CodeObject
    from rpl_core.cli.output import Output

_PATH = click.Path(path_type=Path)
#: Of the names in a message.
_MOST_SHOWN, _LONGEST_SHOWN = 20, 200


@click.command("abi-diff")
@click.argument("baseline", type=_PATH)
@click.argument("candidate", type=_PATH)
@click.option("--kernel", metavar="NAME", help="Compare only this kernel (name or symbol).")
@click.option(
    "--workgroup-size",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Work-items per workgroup for the occupancy (default: the largest that both builds permit).",
)
@click.option(
    "--dynamic-lds",
    type=click.IntRange(0),
    default=0,
    metavar="BYTES",
    help="LDS that launches add to the static size (default: 0).",
)
@click.option("--isa", is_flag=True, help="Also compare the instructions; needs llvm-objdump.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def abi_diff(
    context: click.Context,
    baseline: Path,
    candidate: Path,
    kernel: str | None,
    workgroup_size: int | None,
    dynamic_lds: int,
    isa: bool,
    as_json: bool,
) -> int:
    """Compare the kernels of CANDIDATE with those of BASELINE.

    Takes .hsaco files, offload bundles, and executables with a .hip_fatbin section. Exit code 1 when launches
    that fit BASELINE would not fit CANDIDATE; more registers, spills, LDS or scratch are shown and leave 0.

    \b
    rpl abi-diff before.hsaco after.hsaco
    rpl abi-diff ./app ./app-new --kernel scale --isa
    """
    from rpl_codeobject.comparing import compare_code_objects
    from rpl_codeobject.occupancy import LaunchAssumption
    from rpl_codeobject.reading import read_code_objects
    from rpl_core.errors import BadDataError, ExitCode
    from rpl_core.pipeline import architectures

    before, after = read_code_objects(baseline), read_code_objects(candidate)
    launch = LaunchAssumption(workgroup_size, dynamic_lds)
    session = session_of(context)
    diff = compare_code_objects(
        before, after, kernel=kernel, launch=launch, architecture_of=architectures(None, session.host)
    )
    if not diff.compared and not diff.differences:
        known = sorted({k.name for side in (before, after) for c in side for k in c.kernels})
        shown = ", ".join(name[:_LONGEST_SHOWN] for name in known[:_MOST_SHOWN])
        more = f" and {len(known) - _MOST_SHOWN} more" if len(known) > _MOST_SHOWN else ""
        raise BadDataError(
            f"no kernel {kernel!r} in either file" if kernel else "neither file has a kernel",
            next_step=f"known kernels: {shown}{more}" if known else None,
        )
    instructions = _compare_isa(before, after, kernel) if isa else {}
    output = session.output
    if as_json:
        output.json(_abi_diff_json(diff, instructions, baseline, candidate))
    else:
        _show(diff, instructions, output)
    return int(ExitCode.OK if diff.compatible else ExitCode.NEGATIVE_FINDING)


def _compare_isa(
    before: tuple[CodeObject, ...], after: tuple[CodeObject, ...], kernel: str | None
) -> dict[str, IsaDiff]:
    from rpl_codeobject.disassembly import compare_instructions, disassemble

    diffs = {}
    newer = {code_object.target: code_object for code_object in reversed(after)}
    for old in before:
        new = newer.get(old.target)
        if new is None:
            continue
        left, right = disassemble(old), disassemble(new)
        for record in old.kernels:
            if kernel in {None, record.name, record.symbol} and record.name in right:
                key = f"{record.name} ({old.architecture})"
                diffs[key] = compare_instructions(left[record.name], right[record.name])
    return diffs


def _show(diff: AbiDiff, instructions: dict[str, IsaDiff], output: Output) -> None:
    kernels = counted(diff.compared, "kernel")
    compatible = "compatible" if diff.compatible else "NOT compatible"
    output.line(f"{compatible}: {kernels} in both files, {counted(len(diff.differences), 'difference')}")
    if diff.differences:
        rows = [
            (d.severity.value, d.kernel or "-", d.what, d.before or "-", d.after or "-", d.reason)
            for d in diff.differences
        ]
        output.table(("SEVERITY", "KERNEL", "WHAT", "BASELINE", "CANDIDATE", "REASON"), rows)
    for text in diff.unknown:
        output.line(f"not compared: {text}")
    for name, isa in instructions.items():
        output.line(f"instructions of {name}: {isa.sentence()}")


def _abi_diff_json(
    diff: AbiDiff, instructions: dict[str, IsaDiff], baseline: Path, candidate: Path
) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "baseline": str(baseline),
        "candidate": str(candidate),
        "compatible": diff.compatible,
        "kernels_compared": diff.compared,
        "differences": [
            {
                "severity": d.severity.value,
                "kernel": d.kernel,
                "what": d.what,
                "baseline": d.before,
                "candidate": d.after,
                "reason": d.reason,
            }
            for d in diff.differences
        ],
        "not_compared": list(diff.unknown),
        "instructions": {
            name: {
                "verdict": isa.verdict.value,
                "baseline": isa.instructions_before,
                "candidate": isa.instructions_after,
                "loops_only_in_baseline": [len(loop.shape) for loop in isa.before],
                "loops_only_in_candidate": [len(loop.shape) for loop in isa.after],
            }
            for name, isa in instructions.items()
        },
    }
