"""``rpl isa-mix``: the instructions of a code object by class, per kernel and loop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_emu.instruction_mix import FunctionMix


@click.command("isa-mix")
@click.argument("code_object", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def isa_mix(context: click.Context, code_object: Path, as_json: bool) -> int:
    """Count the instructions of CODE_OBJECT by class: per kernel, per function, per loop. Nothing runs.

    \b
    rpl isa-mix kernel.hsaco
    rpl isa-mix ./app --json
    """
    from rpl_emu.instruction_mix import instruction_mix

    output = session_of(context).output
    mixes = instruction_mix(code_object)
    if as_json:
        import attrs

        output.json({"schema_version": "1.0", "functions": [attrs.asdict(mix) for mix in mixes]})
    else:
        for mix in mixes:
            _print_mix(output, mix)
    return 0


def _print_mix(output: Output, mix: FunctionMix) -> None:
    output.line(f"{mix.name} ({'kernel' if mix.kernel else 'function'}): {mix.instructions} instructions")
    for class_, count in sorted(mix.classes.items(), key=lambda item: (-item[1], item[0])):
        output.line(f"  {class_:16} {count:>7}")
    for loop in mix.loops:
        inside = ", ".join(f"{class_} {count}" for class_, count in loop.classes.items())
        output.line(f"  loop 0x{loop.head:x} to 0x{loop.end:x}: {inside}")
    for refused in mix.refused:
        output.note(refused)
