"""``rpl isa-mix``: the instructions of a code object by class, per kernel and loop."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from rpl_core.cli.session import session_of
from rpl_core.text import counted
from rpl_core.values import frozen

#: What the assembler puts behind a function to fill its last lines.
_PADDING = "s_nop"
_ARCHITECTURE = "gfx942"
#: ``e_machine`` of an ELF file, EM_AMDGPU = 224 (LLVM, AMDGPUUsage).
_AMDGPU = (224).to_bytes(2, "little")


@click.command("isa-mix")
@click.argument("code_object", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def isa_mix(context: click.Context, code_object: Path, as_json: bool) -> int:
    """Count the instructions of CODE_OBJECT by class: per kernel, per function, per loop. Nothing runs.

    Takes what `rpl abi-diff` takes: .hsaco files, offload bundles, executables with a .hip_fatbin section.

    \b
    rpl isa-mix kernel.hsaco
    rpl isa-mix ./app --json
    """
    output = session_of(context).output
    mixes = instruction_mix(code_object)
    if as_json:
        import attrs

        output.json({"schema_version": "1.0", "functions": [attrs.asdict(mix) for mix in mixes]})
    else:
        for mix in mixes:
            what = "kernel" if mix.kernel else "function"
            output.line(f"{mix.name} ({what}): {counted(mix.instructions, 'instruction')}")
            for class_, count in sorted(mix.classes.items(), key=lambda item: (-item[1], item[0])):
                output.line(f"  {class_:16} {count:>7}")
            for loop in mix.loops:
                inside = ", ".join(f"{class_} {count}" for class_, count in loop.classes.items())
                output.line(f"  loop 0x{loop.head:x} to 0x{loop.end:x}: {inside}")
            for refused in mix.refused:
                output.note(refused)
    return 0


@frozen
class Loop:
    """What a backward branch spans: addresses of the first and the last instruction."""

    head: int
    end: int
    classes: dict[str, int]


@frozen
class FunctionMix:
    name: str
    kernel: bool
    instructions: int
    classes: dict[str, int]
    opcodes: dict[str, int]
    loops: tuple[Loop, ...]
    refused: tuple[str, ...]


def instruction_mix(code_object: Path) -> tuple[FunctionMix, ...]:
    """Of all code for gfx942 that the file holds. Raises the emulator's errors."""
    with TemporaryDirectory(prefix="rpl-isa-mix-") as folder:
        parts = _device_code(code_object, Path(folder))
        return tuple(mix for part in parts for mix in _functions(part))


def _device_code(path: Path, folder: Path) -> list[Path]:
    """The code objects of a program or bundle, unpacked into ``folder``; of any other file itself."""
    from rpl_codeobject.reading import read_code_objects
    from rpl_core.errors import BadDataError

    if not path.is_file():
        return [path]  # the decoder says what is wrong with it
    try:
        code_objects = read_code_objects(path)
    except BadDataError:
        with path.open("rb") as file:
            machine = file.read(20)[18:20]
        if machine == _AMDGPU:
            return [path]  # a code object without metadata has instructions all the same
        raise
    if len(code_objects) == 1 and path.stat().st_size == len(code_objects[0].elf):
        return [path]
    parts = []
    emulated = [code_object for code_object in code_objects if code_object.architecture == _ARCHITECTURE]
    for number, code_object in enumerate(emulated):
        parts.append(folder / f"{number}.hsaco")
        parts[-1].write_bytes(code_object.elf)
    if not parts:
        others = ", ".join(sorted({code_object.architecture for code_object in code_objects})) or "no GPU"
        raise BadDataError(f"{path} holds code for {others}, none for {_ARCHITECTURE}")
    return parts


def _functions(code_object: Path) -> list[FunctionMix]:
    from rpl_emu.software_gpu import call

    document = call(["decode", str(code_object), "--json"]).document
    return [_function(name, content) for name, content in sorted(document.items())]


def _function(name: str, content: Mapping[str, Any]) -> FunctionMix:
    code = list(content["instructions"])
    while code and code[-1]["opcode"] == _PADDING:
        code.pop()
    ends: dict[int, int] = {}
    for instruction in code:
        if "target" in instruction and instruction["target"] <= instruction["at"]:
            ends[instruction["target"]] = max(ends.get(instruction["target"], 0), instruction["at"])
    places: dict[str, list[int]] = {}
    for instruction in sorted(code, key=lambda instruction: int(instruction["at"])):
        places.setdefault(instruction["class"] or "unknown", []).append(instruction["at"])
    return FunctionMix(
        name,
        bool(content["kernel"]),
        len(code),
        {class_: len(addresses) for class_, addresses in sorted(places.items())},
        dict(sorted(Counter(instruction["opcode"] for instruction in code).items())),
        tuple(Loop(head, end, _between(places, head, end)) for head, end in sorted(ends.items())),
        tuple(instruction["refused"] for instruction in code if "refused" in instruction),
    )


def _between(places: Mapping[str, Sequence[int]], head: int, end: int) -> dict[str, int]:
    inside = {c: bisect_right(at, end) - bisect_left(at, head) for c, at in sorted(places.items())}
    return {class_: count for class_, count in inside.items() if count}
