"""What the emulator is told of a launch, and two kernels on many inputs in one process of it."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError, RplError
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.interfaces.replayer import (
    Failure,
    Finding,
    InputAnswer,
    InputsRequest,
    InputsResult,
    LaunchEnd,
    LaunchInput,
    MemoryEdit,
    MemoryRange,
    ReplayError,
    WrittenPair,
)
from rpl_vmreplay.replay.captured_code import fitting_arguments, other_code

if TYPE_CHECKING:
    from rpl_vmreplay.capture.plain_memory import Change, PlainMemory


_WORD_BYTES = 8


def write_plan(memory: PlainMemory, path: Path, code: Path | None = None) -> None:
    """``code`` takes the place of the captured one. Raises BadDataError for names that a plan can't hold,
    and what ``PlainMemory`` raises."""
    path.write_text("".join("\t".join(line) + "\n" for line in _plan_lines(memory, path, code)))


def _plan_lines(memory: PlainMemory, path: Path, code: Path | None) -> Iterator[tuple[str, ...]]:
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


# Two kernels on many inputs in one process of the emulator (``rpl-emu inputs``).

#: One launch that was begun in time may still run so long beyond it, at the emulator's slowest.
_GRACE_S = 120.0
#: The two kernels, their memory and what is known of each word.
_MOST_MEMORY_BYTES = 16 << 30


def compare_inputs(capture: Capture, request: InputsRequest) -> InputsResult:
    """Raises ``MissingError`` (the program, an opcode) and ``BadDataError``, as one launch does."""
    from rpl_vmreplay.capture.plain_memory import PlainMemory

    with tempfile.TemporaryDirectory(prefix="rpl-emulated-inputs-") as name:
        folder = Path(name)
        _write_plan(PlainMemory(capture, folder), request, folder)
        (folder / "list").write_text("".join(_input_lines(request.inputs, folder)))
        words = ["inputs", str(folder / "plan"), "--hsaco", str(request.baseline)]
        words += ["--against", str(request.other), "--list", str(folder / "list"), "--out", str(folder)]
        words += ["--max-instructions", str(request.most_instructions)]
        words += ["--memory-limit", str(_MOST_MEMORY_BYTES)]
        if request.time_limit_s is not None:
            words += ["--timeout", str(request.time_limit_s)]
        documents, broke = _call(words, request.time_limit_s)
        answers = [one for one in documents if "input" in one]
        last = next((one for one in documents if "done" in one), None)
        failure = None
        if broke is not None:
            name = request.inputs[len(answers)].name if len(answers) < len(request.inputs) else "the last one"
            failure = Failure(
                ReplayError.UNSUPPORTED,
                f"{broke.fact}, at this input: {name}",
                cause=broke.cause,
                next_step="nothing is known of the inputs behind it; please report the emulator's defect",
            )
        elif (refused := next(_refusals(answers), None)) is not None:
            # How the launch would have ended is not known, so the input and those behind it say nothing.
            number, why = refused
            answers = answers[:number]
            failure = Failure(ReplayError.UNSUPPORTED, f"{why}, at this input: {request.inputs[number].name}")
        elif last is None and not answers:
            failure = Failure(ReplayError.TIME_LIMIT, "no input was compared in time")
        reached = {"instructions": 0, "of": 0} if last is None else last["b_unreached"]
        return InputsResult(
            tuple(_answer(one, folder) for one in answers), reached["instructions"], reached["of"], failure
        )


def _write_plan(memory: PlainMemory, request: InputsRequest, folder: Path) -> None:
    """As for a replay, with the memory beside in its order: each one a file of holes."""

    write_plan(memory, folder / "plan")
    others: list[list[str]] = []
    regions: list[list[str]] = []
    for line in (folder / "plan").read_text().splitlines():
        fields = line.split("\t")
        (regions if fields[0] == "region" else others).append(fields)
    for number, one in enumerate(request.beside):
        path = folder / f"beside-{number}"
        with path.open("wb") as file:
            file.truncate(one.size)
        regions.append(["region", str(one.address), str(one.size), str(path)])
    regions.sort(key=lambda fields: int(fields[1]))
    (folder / "plan").write_text("".join("\t".join(one) + "\n" for one in [*others, *regions]))


def _input_lines(inputs: Sequence[LaunchInput], folder: Path) -> Iterator[str]:
    files: dict[bytes, Path] = {}

    def place(content: bytes) -> Path:
        if content not in files:
            files[content] = folder / f"content-{len(files)}"
            files[content].write_bytes(content)
        return files[content]

    for one in inputs:
        yield "input\n"
        yield "\t".join(("grid", *map(str, one.grid))) + "\n"
        yield "\t".join(("block", *map(str, one.block))) + "\n"
        yield f"kernarg\t{place(one.kernarg)}\n"
        for fill in one.fills:
            if fill.size and fill.pattern:
                yield f"fill\t{fill.address}\t{fill.size}\t{place(fill.pattern)}\n"
        if one.sanitize:
            yield "sanitize\n"
        if one.twice:
            yield "twice\n"


def _call(words: Sequence[str], seconds: float | None) -> tuple[list[Any], RplError | None]:
    """The lines that it printed, and how it broke off, if it was not the time that ended it."""
    from rpl_emu.native_program import command_of, environment

    command = command_of(words)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=environment(),
            timeout=None if seconds is None else seconds + _GRACE_S,
        )
        printed, said = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        status = done.returncode
    except subprocess.TimeoutExpired as late:
        printed = (late.stdout or b"").decode("utf-8", "replace")
        status, said = 0, ""
    lines = [json.loads(line) for line in printed[: printed.rfind("\n") + 1].splitlines()]
    if status == 0:
        return lines, None
    fact = next((line.removeprefix("rpl-emu: ") for line in said.splitlines() if line), "it said nothing")
    if not lines and status == 69:
        raise MissingError(fact)
    if not lines and status in (64, 65, 124):
        raise BadDataError(fact)
    how = f"signal {-status}" if status < 0 else f"status {status}"
    broke = RplError(f"the emulator ended with {how}", cause=fact)
    if not lines:
        raise broke
    return lines, broke


def _refusals(answers: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Where a launch reached what the emulator does not offer, and what that is."""
    for number, told in enumerate(answers):
        for end in (told["a"], told.get("b")):
            if end is not None and end["outcome"] == "not_offered":
                yield number, end["reason"]


def _answer(told: Any, folder: Path) -> InputAnswer:
    baseline = _end(told["a"])
    if "b" not in told:
        return InputAnswer(baseline, watched=told["watched"])
    return InputAnswer(
        baseline,
        _end(told["b"]),
        watched=told["watched"],
        same_results=told["same_results"],
        stable=told["stable"],
        written_bytes=told["bytes"],
        differing=tuple(_pairs(folder, told["input"])) if told["differs"] else (),
        outside=MemoryRange(int(told["outside_at"], 16), told["outside"]) if told["outside"] else None,
        variables=tuple(told["variables"]),
        cooperation=told["cooperation"],
        lds_unlike=told["lds_unlike"],
        barriers=told["barriers"],
        atomics=told["atomics"],
    )


def finding(told: Any) -> Finding:
    other = f" and {told['other']}" if told["other"] != told["at"] else ""
    group = ", ".join(map(str, told["group"]))
    return Finding(
        told["kind"], f"{told['kind']} at {told['at']}{other}, workgroup ({group}), {told['times']} times"
    )


def _end(told: Any) -> LaunchEnd:
    found = tuple(map(finding, told["findings"]))
    return LaunchEnd(told["outcome"], told["reason"], found, told["instructions"])


def _pairs(folder: Path, number: int) -> Iterator[WrittenPair]:

    sides = [(folder / f"{number}.{side}").read_bytes() for side in ("a", "b")]
    at = 0
    for address, size in read_ranges(folder / f"{number}.ranges"):
        yield WrittenPair(address, *(side[at : at + size] for side in sides))
        at += size
