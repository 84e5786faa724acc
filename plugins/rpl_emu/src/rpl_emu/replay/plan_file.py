"""What ``rpl-emu replay`` is told: a plan of the launch, edits of its memory, and what it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_vmreplay.replay.captured_code import fitting_arguments, other_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rpl_vmreplay.capture.plain_memory import Change, PlainMemory
    from rpl_vmreplay.interfaces.replayer import MemoryEdit

_WORD_BYTES = 8


def write_plan(memory: PlainMemory, path: Path, code: Path | None = None) -> None:
    """``code`` takes the place of the captured one. Raises BadDataError for names that a plan can't hold,
    and what ``PlainMemory`` raises."""
    path.write_text("".join("\t".join(line) + "\n" for line in _lines(memory, path, code)))


def _lines(memory: PlainMemory, path: Path, code: Path | None) -> Iterator[tuple[str, ...]]:
    from rpl_vmreplay.replay.captured_code import captured_code, code_pointers, image_of, may_call_pointers

    capture = memory.capture
    launch, extras = capture.dispatch, capture.extras
    yield "kernel", _safe(launch.mangled_name.partition(" ")[0])
    yield "grid", *map(str, launch.grid)
    yield "block", *map(str, launch.block)
    yield "lds", str(launch.group_segment_size)
    yield "scratch", str(launch.private_segment_size)
    kernarg_at = None if extras is None else extras.dispatch.kernarg_address
    arguments = None if code is None else fitting_arguments(capture, other_code(capture, code))
    if arguments is None:
        yield "kernarg", str(kernarg_at or 0), _place(capture.folder / "kernarg.bin")
    else:
        filled = path.with_name("kernarg.bin")
        filled.write_bytes(arguments)
        yield "kernarg", "0", _place(filled)
    own = captured_code(capture)
    image = image_of(capture, own)
    pinned = image is not None and may_call_pointers(own) and code_pointers(memory, image)
    code_at = 0 if image is None else image.base
    yield "pinned" if pinned else "code", str(code_at), _place(capture.folder / "kernel.hsaco")
    for region in capture.regions:
        yield "region", str(region.base), str(region.size), _place(memory.path_of(region))
    for variable in capture.variables:
        yield "variable", str(variable.size), _safe(variable.name), _place(capture.folder / variable.blob)


def _place(path: Path) -> str:
    return _safe(str(path.absolute()))


def _safe(text: str) -> str:
    if any(character in text for character in "\t\r\n"):
        raise BadDataError(f"a name with a tab or the end of a line in it: {text!r}")
    return text


def write_edits(edits: Sequence[MemoryEdit], stem: Path) -> None:
    """As ``STEM.ranges`` and ``STEM.bytes``."""
    words = (number for edit in edits for number in (edit.address, len(edit.data)))
    stem.with_suffix(".ranges").write_bytes(b"".join(word.to_bytes(_WORD_BYTES, "little") for word in words))
    stem.with_suffix(".bytes").write_bytes(b"".join(edit.data for edit in edits))


def read_ranges(path: Path) -> list[tuple[int, int]]:
    """Pairs of address and size."""
    content = path.read_bytes()
    words = [
        int.from_bytes(content[at : at + _WORD_BYTES], "little") for at in range(0, len(content), _WORD_BYTES)
    ]
    return list(zip(words[::2], words[1::2], strict=True))


def read_changes(stem: Path) -> list[Change]:
    """What ``STEM.ranges`` and ``STEM.bytes`` say together."""
    content, at = stem.with_suffix(".bytes").read_bytes(), 0
    changes = []
    for address, size in read_ranges(stem.with_suffix(".ranges")):
        changes.append((address, content[at : at + size]))
        at += size
    return changes
