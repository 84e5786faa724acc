"""What the emulator is told of drawn launches, read back, and what is made of its answers.

A script stands for the program: it keeps its words and the folder that it is given, and answers what a test
drew. Memory is a dictionary of bytes here; files of ranges are read with ``struct``.
"""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from rpl_core.errors import BadDataError, MissingError, RplError
from rpl_emu import replay, software_gpu
from rpl_vmreplay.capture import folder as captures
from rpl_vmreplay.capture import plain_memory, wholeness
from rpl_vmreplay.interfaces import (
    Fill,
    InputsRequest,
    LaunchInput,
    MemoryEdit,
    MemoryRange,
    ReplayError,
    ReplayRequest,
    Rounding,
)
from rpl_vmreplay.replay import captured_code

BASE = 0x7F0000000000
SCRIPT = """#!/bin/sh
cd {folder}
printf '%s\\n' "$@" > words
while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done
cp -r "$out" given
cp answers/* "$out" 2>/dev/null
cat printed
cat said >&2
exit $(cat status)
"""


class Emulator:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "answers").mkdir()
        (folder / "run").write_text(SCRIPT.format(folder=folder))
        (folder / "run").chmod(0o755)
        self.answers()

    def answers(self, printed: str = "", said: str = "", status: int = 0, **files: bytes) -> None:
        for name, content in (("printed", printed), ("said", said), ("status", str(status))):
            (self.folder / name).write_text(content)
        for name, data in files.items():
            (self.folder / "answers" / name).write_bytes(data)

    @property
    def words(self) -> list[str]:
        return (self.folder / "words").read_text().splitlines()

    def given(self, name: str) -> bytes:
        return (self.folder / "given" / Path(name).name).read_bytes()


@pytest.fixture
def emulator(tmp_path, monkeypatch):
    made = Emulator(tmp_path)
    monkeypatch.setattr(software_gpu, "find_program", lambda: tmp_path / "run")
    monkeypatch.setenv(software_gpu.RUNTIME_VARIABLE, "none")
    monkeypatch.delenv(software_gpu.LLVM_VARIABLE, raising=False)
    return made


class Captured:
    """A drawn launch: pieces of memory that lie apart, variables, and whether its tool told addresses."""

    def __init__(self, draw: random.Random, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.content = {
            BASE + number * 4096: draw.randbytes(8 * draw.randint(1, 9))
            for number in range(draw.randint(1, 3))
        }
        regions = [SimpleNamespace(base=base, size=len(data)) for base, data in self.content.items()]
        self.variables = [
            SimpleNamespace(name=f"v{number}", size=4, blob=f"v{number}.bin") for number in range(2)
        ]
        for variable in self.variables:
            (folder / variable.blob).write_bytes(draw.randbytes(4))
        told = SimpleNamespace(
            dispatch=SimpleNamespace(kernarg_address=BASE + 64),
            module_variables=[
                SimpleNamespace(name="v0", address=0x100),
                SimpleNamespace(name="v1", address=None),
                SimpleNamespace(name="lost", address=0x300),
            ],
        )
        self.capture = SimpleNamespace(
            folder=folder,
            regions=regions,
            variables=self.variables,
            extras=draw.choice((None, told)),
            dispatch=SimpleNamespace(
                mangled_name="_Z1kPf [clone .kd]",
                grid=tuple(draw.randint(1, 99) for _ in range(3)),
                block=(draw.choice((32, 64)), 1, 2),
                group_segment_size=draw.randint(0, 64),
                private_segment_size=draw.randint(0, 64),
                isa_name="gfx942",
            ),
        )
        self.memory = SimpleNamespace(
            capture=self.capture,
            path_of=lambda region: folder / f"region_{region.base:x}",
            read=self.read,
            hashes=lambda changes: tuple(changes),
        )
        self.image = draw.choice((None, SimpleNamespace(base=BASE + (1 << 30))))
        self.may, self.pointers = draw.random() < 0.5, draw.choice(((), ("f",)))
        self.fitting = draw.choice((None, b"made to fit"))
        own = SimpleNamespace(code=SimpleNamespace(target="captured"))
        monkeypatch.setattr(captured_code, "captured_code", lambda _: own)
        monkeypatch.setattr(captured_code, "image_of", lambda _, code: self.image if code is own else 1)
        monkeypatch.setattr(captured_code, "may_call_pointers", lambda _: self.may)
        monkeypatch.setattr(captured_code, "code_pointers", lambda *_: self.pointers)
        monkeypatch.setattr(captured_code, "elsewhere", lambda *_: ())
        monkeypatch.setattr(replay, "other_code", lambda _, code: code)
        monkeypatch.setattr(replay, "fitting_arguments", lambda *_: self.fitting)
        monkeypatch.setattr(captured_code, "target_of", lambda _, code: code.name)
        monkeypatch.setattr(wholeness, "isa_problem", lambda parts, isa: self.isa_problem(parts, isa))
        self.unfit = ""
        monkeypatch.setattr(captures, "open_capture", lambda _: self.capture)
        monkeypatch.setattr(plain_memory, "PlainMemory", lambda *_: self.memory)

    def isa_problem(self, parts: list[tuple[str, str]], isa: str) -> str | None:
        assert isa == "gfx942:sramecc+:xnack-"
        wrong = [f"{what} is for {target}" for what, target in parts if target == self.unfit]
        return wrong[0] if wrong else None

    def read(self, address: int, size: int) -> bytes:
        base = next(base for base, data in self.content.items() if base <= address < base + len(data))
        return self.content[base][address - base : address - base + size]

    def plan(self, code: Path | None) -> list[list[str]]:
        """As docs/EMULATOR.md has it: kernel, sizes, arguments, code, memory, variables."""
        launch, folder = self.capture.dispatch, self.capture.folder
        at = self.capture.extras.dispatch.kernarg_address if self.capture.extras else 0
        stays = self.image is not None and self.may and bool(self.pointers)
        begin, kernarg = self.image.base if self.image else 0, str(folder / "kernarg.bin")
        return [
            ["kernel", "_Z1kPf"],
            ["grid", *map(str, launch.grid)],
            ["block", *map(str, launch.block)],
            ["lds", str(launch.group_segment_size)],
            ["scratch", str(launch.private_segment_size)],
            ["kernarg", *(("0", "filled") if code and self.fitting else (str(at), kernarg))],
            ["pinned" if stays else "code", str(begin), str(folder / "kernel.hsaco")],
            *(
                ["region", str(base), str(len(data)), str(folder / f"region_{base:x}")]
                for base, data in self.content.items()
            ),
            *(["variable", "4", one.name, str(folder / one.blob)] for one in self.variables),
        ]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_of_a_launch(tmp_path, monkeypatch, seed):
    captured = Captured(random.Random(seed), tmp_path, monkeypatch)
    for code in (None, tmp_path / "other.hsaco"):
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        replay.write_plan(captured.memory, out / "plan", code)
        found = [line.split("\t") for line in (out / "plan").read_text().splitlines()]
        expected = captured.plan(code)
        if expected[5][2] == "filled":
            assert (out / "kernarg.bin").read_bytes() == captured.fitting
            expected[5][2] = str(out / "kernarg.bin")
        assert found == expected


def test_a_name_that_would_break_a_line_is_refused(tmp_path, monkeypatch):
    captured = Captured(random.Random(1), tmp_path, monkeypatch)
    for character in "\t\r\n":
        captured.variables[0].name = f"a{character}b"
        with pytest.raises(BadDataError, match="a tab or the end of a line"):
            replay.write_plan(captured.memory, tmp_path / "plan")


#: Which the code has, and where: as captured, elsewhere, or not at all.
VARIABLES = ((("v1", 0x200),), (("v1", 0x200), ("v0", 0x100)), (("v0", 0xFE),))


def ranges(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", *pair) for pair in pairs)


def options_of(words: list[str]) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for word, behind in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            found[word] = True if behind.startswith("--") else behind
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_replay_is_asked_for_and_told(emulator, tmp_path, monkeypatch, seed):
    draw = random.Random(seed)
    captured = Captured(draw, tmp_path, monkeypatch)
    base, data = draw.choice(list(captured.content.items()))
    edits = tuple(
        MemoryEdit(base + at, draw.randbytes(4))
        for at in draw.sample(range(0, len(data) - 4, 4), draw.randint(0, 1))
    )
    written, at = [], base
    while at + 8 <= base + len(data):
        size = draw.randint(1, 8)
        written.append((at, draw.randbytes(size)))
        at += size + draw.choice((0, 3, 20))
    variable = (0x100, draw.randbytes(2))
    reads = [(base, 8), (base + 16, 4)]
    told = {
        "stale_arguments": draw.choice(([], ["hidden_heap_v1", "hidden_queue_ptr"])),
        "disassembler": "LLVM 22",
        "rounded": draw.random() < 0.5,
        "not_to_the_bit": [{"opcode": "v_exp_f32", "why": "by a table"}],
        "variables": [
            {"name": name, "address": place, "size": 4}
            for name, place in draw.choice(VARIABLES)
        ],
        "findings": [{"kind": "race", "at": "k+0x4", "other": other, "group": [1, 2, 0], "times": 3}
                     for other in ("k+0x4", "k+0x8")],
    }  # fmt: skip
    emulator.answers(
        json.dumps(told),
        **{
            "written.ranges": ranges(*((address, len(one)) for address, one in [variable, *written])),
            "written.bytes": b"".join(one for _, one in [variable, *written]),
            "read_first.ranges": ranges(*reads),
        },
    )
    seen = {}

    def reproduction(capture, request, hashes, variables):
        seen.update(hashes=hashes, variables=variables)
        return True, None, ()

    monkeypatch.setattr(plain_memory, "reproduction", reproduction)
    whole = MemoryRange(base, len(data))
    inside = MemoryRange(base + 3, draw.randint(1, len(data) - 3))
    request = ReplayRequest(
        tmp_path,
        iterations=draw.randint(1, 3),
        warm_ups=draw.randint(0, 2),
        recopy=draw.random() < 0.5,
        code_object=draw.choice((None, tmp_path / "other.hsaco")),
        edits=edits,
        keep=(whole, inside),
        hashes=draw.random() < 0.7,
        access_log=draw.random() < 0.5,
        patch_hidden_args=draw.random() < 0.5,
        time_limit_s=draw.choice((None, 2.5)),
        variation=draw.randint(0, 4),
        keep_variables=draw.random() < 0.7,
        sanitize=draw.random() < 0.5,
        rounding=draw.choice(tuple(Rounding)),
        keep_halves=draw.random() < 0.5,
    )
    result = replay.EmulatedReplayer().replay(request)

    assert result.failure is None
    words = options_of(emulator.words)
    launches = request.iterations + request.warm_ups
    expected = {
        "--iterations": str(launches),
        "--order": str(request.variation),
        "--seed": str(request.variation + 1),
        "--rounding": None if request.rounding is Rounding.NEAREST else request.rounding.value,
        "--keep-halves": request.keep_halves,
        "--no-recopy": not request.recopy,
        "--sanitize": request.sanitize,
        "--patch-hidden-args": request.patch_hidden_args,
        "--hsaco": str(request.code_object) if request.code_object else None,
        "--timeout": str(2.5 * launches) if request.time_limit_s else None,
    }
    assert {name: words.get(name) for name in expected} == {n: v or None for n, v in expected.items()}
    assert ("--edits" in words) == bool(edits)
    if edits:
        assert emulator.given("edits.ranges") == ranges(*((one.address, 4) for one in edits))
        assert emulator.given("edits.bytes") == b"".join(one.data for one in edits)

    memory = {start + i: byte for start, one in captured.content.items() for i, byte in enumerate(one)}
    for address, change in [*((one.address, one.data) for one in edits), *written]:
        memory.update({address + i: byte for i, byte in enumerate(change)})
    for kept, asked in zip(result.kept, request.keep, strict=True):
        assert kept == bytes(memory[asked.address + i] for i in range(asked.size))
    blobs = {}
    for one in told["variables"]:
        content = {
            one["address"] + i: b for i, b in enumerate((tmp_path / f"{one['name']}.bin").read_bytes())
        }
        changes = {variable[0] + i: byte for i, byte in enumerate(variable[1])}
        blobs[one["name"]] = bytes(changes.get(at, byte) for at, byte in content.items())
    addresses = {one["name"]: one["address"] for one in told["variables"]}
    assert {one.name: (one.data, one.address) for one in result.variables} == (
        {name: (blob, addresses[name]) for name, blob in blobs.items()} if request.keep_variables else {}
    )
    assert result.reproduced is (True if request.hashes else None)
    if request.hashes:
        assert result.hashes == seen["hashes"] == (*((e.address, e.data) for e in edits), variable, *written)
        assert seen["variables"] == {f"{name}.bin": blob for name, blob in blobs.items()}
    else:
        assert (result.hashes, result.reproduced_reason) == (None, "hashes were not asked for")
    if request.access_log:
        assert result.accesses.read_first == tuple(MemoryRange(*one) for one in reads)
        assert result.accesses.written == tuple(
            MemoryRange(address, len(one)) for address, one in [variable, *written]
        )
    assert (result.accesses is None) == (result.accesses_reason is not None) == (not request.access_log)
    stale = tuple(told["stale_arguments"])
    assert result.stale_arguments == stale
    assert result.patched_arguments == (stale if request.patch_hidden_args else ())
    assert result.rounded == told["rounded"]
    assert (result.findings is None) == (not request.sanitize)
    if request.sanitize:
        assert [one.text for one in result.findings] == [
            "race at k+0x4, workgroup (1, 2, 0), 3 times",
            "race at k+0x4 and k+0x8, workgroup (1, 2, 0), 3 times",
        ]
    assert result.notes[0] == "v_exp_f32: by a table"
    said = " ".join(result.notes)
    assert ("hidden_heap_v1, hidden_queue_ptr" in said) == bool(stale)
    knows = captured.capture.extras is not None
    assert ("no variable lost" in said) == knows
    assert ("no variable v0" in said) == (knows and "v0" not in addresses)
    assert ("variable v0 lies elsewhere" in said) == (knows and addresses.get("v0") == 0xFE)
    assert ("no variable v1" in said) == (knows and "v1" not in addresses)
    assert "variable v1 lies" not in said  # nobody knows where it lay


@pytest.mark.parametrize(
    ("status", "kind"),
    [(3, ReplayError.LAYOUT_CLASH), (4, ReplayError.GPU_FAULT), (124, ReplayError.TIME_LIMIT),
     (65, ReplayError.BAD_CODE), (69, ReplayError.UNSUPPORTED)],
)  # fmt: skip
@pytest.mark.parametrize("said", ["rpl-emu: it is so\nmore", ""])
def test_how_a_replay_fails(emulator, tmp_path, monkeypatch, status, kind, said):
    Captured(random.Random(1), tmp_path, monkeypatch)
    emulator.answers(said=said, status=status)
    result = replay.EmulatedReplayer().replay(ReplayRequest(tmp_path))
    assert result.failure.kind is kind
    assert (result.failure.fact == "it is so") == bool(said)
    assert result.kept == ()


def end(outcome: str = "ended", reason: str = "") -> dict[str, object]:
    return {"outcome": outcome, "reason": reason, "findings": [], "instructions": 7}


def answer(number: int, *, b: dict[str, object] | None = None, **more: object) -> dict[str, object]:
    told = {"input": number, "a": end(), "watched": False}
    if b is None:
        return told
    rest = {
        "same_results": False, "stable": True, "bytes": 16, "differs": False, "outside": 0,
        "outside_at": "0x0", "variables": [], "cooperation": None, "lds_unlike": False,
        "barriers": 2, "atomics": 3,
    }  # fmt: skip
    return {**told, "b": b, **rest, **more}


#: Two that fill with the same, one of nothing and one with nothing.
FILLS = (
    *(Fill(BASE + 8, 64, b"\1\2"), Fill(BASE + 80, 0, b"x")),
    *(Fill(BASE + 96, 8, b""), Fill(BASE, 8, b"\1\2")),
)


def inputs(*, count: int) -> tuple[LaunchInput, ...]:
    return tuple(
        LaunchInput(
            f"input {number}",
            (64 * (number + 1), 1, 2),
            (64, 1, 1),
            bytes([number % 2] * 16),
            FILLS,
            sanitize=number == 0,
            twice=number != 1,
        )
        for number in range(count)
    )  # fmt: skip


def request_of(folder: Path, count: int, **more: object) -> InputsRequest:
    return InputsRequest(
        folder, folder / "a.hsaco", folder / "b.hsaco", inputs(count=count),
        beside=(MemoryRange(BASE - 4096, 100), MemoryRange(BASE + (1 << 40), 10)), **more,
    )  # fmt: skip


@pytest.mark.parametrize("limit", [None, 3.0])
def test_inputs_are_told_and_answered(emulator, tmp_path, monkeypatch, limit):
    captured = Captured(random.Random(5), tmp_path, monkeypatch)
    told = [
        answer(
            0, b=end(), differs=True, outside=12, outside_at="0xff", variables=["v0"], cooperation="ballot"
        ),
        answer(1),
        answer(2, b=end("fault", "at 0x0"), same_results=True, lds_unlike=True, stable=False),
        {"done": True, "b_unreached": {"instructions": 3, "of": 40}},
    ]
    emulator.answers(
        "".join(json.dumps(one) + "\n" for one in told),
        **{"0.ranges": ranges((BASE, 2), (BASE + 8, 3)), "0.a": b"abcde", "0.b": b"ABCDE"},
    )
    request = request_of(tmp_path, 3, time_limit_s=limit, most_instructions=77)
    result = replay.EmulatedReplayer().compare_inputs(request)

    words = options_of(emulator.words)
    assert (words["--hsaco"], words["--against"]) == (str(tmp_path / "a.hsaco"), str(tmp_path / "b.hsaco"))
    assert (words["--max-instructions"], words.get("--timeout")) == ("77", None if limit is None else "3.0")
    assert int(words["--memory-limit"]) == 16 * 2**30
    plan = [line.split("\t") for line in emulator.given("plan").decode().splitlines()]
    memory = [line for line in plan if line[0] == "region"]
    beside = {one.address: one.size for one in request.beside}
    assert plan[-len(memory) :] == memory
    assert [int(line[1]) for line in memory] == sorted([*captured.content, *beside])
    for line in memory:
        if int(line[1]) in beside:
            assert emulator.given(line[3]) == bytes(beside[int(line[1])]) == bytes(int(line[2]))
    kinds = [line for line in captured.plan(None) if line[0] != "region"]
    assert plan[: -len(memory)] == kinds

    blocks = emulator.given("list").decode().split("input\n")[1:]
    for block, one in zip(blocks, request.inputs, strict=True):
        lines = [line.split("\t") for line in block.splitlines()]
        assert lines[:2] == [["grid", *map(str, one.grid)], ["block", *map(str, one.block)]]
        assert (lines[2][0], emulator.given(lines[2][1])) == ("kernarg", one.kernarg)
        fills = [line for line in lines if line[0] == "fill"]
        assert [(int(a), int(s), emulator.given(name)) for _, a, s, name in fills] == [
            (BASE + 8, 64, b"\1\2"), (BASE, 8, b"\1\2"),
        ]  # fmt: skip
        assert len({name for *_, name in fills}) == 1  # one file for what is the same
        assert [line[0] for line in lines[5:]] == [w for w in ("sanitize", "twice") if getattr(one, w)]

    assert result.failure is None
    assert (result.unreached, result.instructions) == (3, 40)
    first, second, third = result.answers
    assert [(p.address, p.baseline, p.other) for p in first.differing] == [
        (BASE, b"ab", b"AB"), (BASE + 8, b"cde", b"CDE"),
    ]  # fmt: skip
    assert (first.outside, first.variables, first.cooperation) == (MemoryRange(255, 12), ("v0",), "ballot")
    assert (first.same_results, first.stable, first.written_bytes) == (False, True, 16)
    assert (first.barriers, first.atomics, first.lds_unlike) == (2, 3, False)
    assert (second.other, second.differing, second.outside) == (None, (), None)
    assert (third.other.outcome, third.other.reason, third.other.instructions) == ("fault", "at 0x0", 7)
    assert (third.same_results, third.stable, third.lds_unlike, third.differing) == (True, False, True, ())


REFUSED = "it has no such opcode"


@pytest.mark.parametrize(
    ("told", "said", "status", "answers", "kind", "fact"),
    [
        # Whatever a launch reached that is not offered, it and those behind it say nothing.
        ([answer(0, b=end()), answer(1, b=end("not_offered", REFUSED)), answer(2)], "", 0, 1,
         ReplayError.UNSUPPORTED, f"{REFUSED}, at this input: input 1"),
        ([{**answer(0), "a": end("not_offered", REFUSED)}, answer(1)], "", 0, 0,
         ReplayError.UNSUPPORTED, f"{REFUSED}, at this input: input 0"),
        ([answer(0), answer(1)], "rpl-emu: lost", 70, 2,
         ReplayError.UNSUPPORTED, "the emulator ended with status 70, at this input: input 2"),
        ([answer(0), answer(1), answer(2)], "", 70, 3,
         ReplayError.UNSUPPORTED, "the emulator ended with status 70, at this input: the last one"),
        ([], "", 0, 0, ReplayError.TIME_LIMIT, "no input was compared in time"),
        ([answer(0)], "", 0, 1, None, None),  # the time was over behind it
        ([], "rpl-emu: no LLVM", 69, 0, ReplayError.UNSUPPORTED, "no LLVM"),
        ([], "rpl-emu: no code", 65, 0, ReplayError.BAD_CODE, "no code"),
        ([], "rpl-emu: no code", 64, 0, ReplayError.BAD_CODE, "no code"),
        ([], "", 124, 0, ReplayError.BAD_CODE, "it said nothing"),
    ],
)  # fmt: skip
def test_how_inputs_end(emulator, tmp_path, monkeypatch, told, said, status, answers, kind, fact):
    Captured(random.Random(2), tmp_path, monkeypatch)
    emulator.answers("".join(json.dumps(one) + "\n" for one in told), said, status)
    result = replay.EmulatedReplayer().compare_inputs(request_of(tmp_path, 3))
    assert len(result.answers) == answers
    assert (None if result.failure is None else (result.failure.kind, result.failure.fact)) == (
        None if kind is None else (kind, fact)
    )
    assert (result.unreached, result.instructions) == (0, 0)  # nobody told
    if status == 70:
        assert result.failure.cause == (said.removeprefix("rpl-emu: ") or "it said nothing")
        assert "report" in result.failure.next_step


@pytest.mark.parametrize(
    ("unfit", "fact"),
    [("gfx942", "the launch is for gfx942"), ("captured", "the captured code is for captured"),
     ("b.hsaco", "the code object is for b.hsaco")],
)  # fmt: skip
def test_code_of_another_gpu_is_refused(emulator, tmp_path, monkeypatch, unfit, fact):
    Captured(random.Random(1), tmp_path, monkeypatch).unfit = unfit
    replayer = replay.EmulatedReplayer()
    for found in (
        replayer.replay(ReplayRequest(tmp_path, code_object=tmp_path / "b.hsaco")),
        replayer.compare_inputs(request_of(tmp_path, 1)),
    ):
        assert (found.failure.kind, found.failure.fact) == (ReplayError.ISA_MISMATCH, fact)
    assert not (tmp_path / "words").exists()
    found = replayer.replay(ReplayRequest(tmp_path, against=tmp_path / "b.hsaco"))
    assert found.failure.kind is (ReplayError.ISA_MISMATCH if unfit != "b.hsaco" else ReplayError.UNSUPPORTED)


def test_an_emulator_that_breaks_before_it_answers(emulator, tmp_path, monkeypatch):
    Captured(random.Random(2), tmp_path, monkeypatch)
    emulator.answers(said="\nrpl-emu: out of memory\n", status=70)
    with pytest.raises(RplError, match="ended with status 70") as raised:
        replay.EmulatedReplayer().compare_inputs(request_of(tmp_path, 1))
    assert raised.value.cause == "out of memory"


def test_what_is_missing_is_told(tmp_path, monkeypatch):
    def gone():
        raise MissingError("no rpl-emu", next_step="build it")

    monkeypatch.setattr(software_gpu, "find_program", gone)
    assert replay.EmulatedReplayer().missing() == "no rpl-emu. Next: build it."
    monkeypatch.setattr(software_gpu, "find_program", lambda: tmp_path)
    assert replay.EmulatedReplayer().missing() is None
