"""Captured memory as a dictionary of bytes: what is read, hashed, compared, reached and kept, byte by byte.

Hashes are XXH3 of each MiB (docs/REPLAY.md) by the public library. A launch is a list of addresses that it
reads and of bytes that it writes, so what a replay leaves is known without any replayer.
"""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest
import xxhash
import zstandard

from rpl_core.errors import (
    BadDataError,
    InterruptedRunError,
    MissingError,
    NoVerdictError,
    RplError,
    TimeLimitError,
    UsageError,
)
from rpl_core.model.metric import Origin
from rpl_vmreplay.capture.folder import Capture, Variable, difference, open_capture
from rpl_vmreplay.capture.plain_memory import PlainMemory, accesses_of, reproduction
from rpl_vmreplay.capture.records import Dispatch, Region
from rpl_vmreplay.capture.shrink import shrink
from rpl_vmreplay.capture.wholeness import problems_of
from rpl_vmreplay.interfaces import (
    AccessLog,
    Failure,
    MemoryEdit,
    MemoryRange,
    RegionHashes,
    Replayer,
    ReplayError,
    ReplayRequest,
    ReplayResult,
    Reservation,
    ReserveResult,
)
from rpl_vmreplay.replay.outcome import (
    error_of_exception,
    exit_code_of,
    ranges_of,
    replay_document,
    verdict_of,
)

MIB, PAGE = 1 << 20, 4096
BASE = 0x7F0000200000  # of the fixtures' captures
MANUAL = Path(__file__).parents[3] / "docs" / "REPLAY_JSON_SCHEMA.md"


def hashed(content):
    chunks = (content[at : at + MIB] for at in range(0, len(content), MIB))
    return b"".join(xxhash.xxh3_64_intdigest(chunk).to_bytes(8, "little") for chunk in chunks)


def drawn_memory(rng):
    """Regions that lie apart or touch; one of a MiB or more with holes in it."""
    memory, at = {}, 0x10000
    sizes = [rng.choice((1, 100, PAGE)) for _ in range(rng.randint(0, 3))]
    sizes.insert(rng.randint(0, len(sizes)), rng.choice((MIB, MIB + 5, 2 * MIB + 5)))
    for size in sizes:
        at += rng.choice((0, 0, 64, 3 * PAGE))
        content = bytearray(size)
        for _ in range(4):
            place = rng.randrange(size)
            content[place : place + 3] = rng.randbytes(min(3, size - place))
        memory[at] = bytes(content)
        at += size
    return memory


def written(folder, memory, *, packed=False, before=False, after=None, variables=()):
    """A capture of such memory, with hashes of it and of what it was ``after`` the launch."""
    (folder / "memory").mkdir(parents=True)
    (folder / "module_variables").mkdir()
    for base, content in memory.items():
        stem = folder / "memory" / f"region_{base:x}"
        if packed:
            Path(f"{stem}.bin.zst").write_bytes(zstandard.compress(content))
        else:
            Path(f"{stem}.bin").write_bytes(content)
        if before:
            Path(f"{stem}.pre.xxh3").write_bytes(hashed(content))
        if after is not None:
            Path(f"{stem}.post.xxh3").write_bytes(hashed(after[base]))
    for name, content, end, _ in variables:
        (folder / "module_variables" / f"{name}.bin").write_bytes(content)
        (folder / "module_variables" / f"{name}.post.xxh3").write_bytes(hashed(end))
    for name in ("kernarg.bin", "kernel.hsaco"):
        (folder / name).write_bytes(b"the same")
    told = SimpleNamespace(
        hash="xxh3" if before or after is not None else "none",
        compression="zstd" if packed else "none",
        post="none" if after is None else "hashes",
    )
    flags = {"is_pool": True, "is_vmem": False, "contains_kernarg": False}
    return Capture(
        folder=folder,
        layout="rpl",
        dispatch=Dispatch(
            mangled_name="k.kd", demangled_name="k()", agent_name="gfx942", isa_name="gfx942",
            wavefront_size=64, grid=(1, 1, 1), block=(1, 1, 1), group_segment_size=0,
            private_segment_size=0, kernarg_size=8, dispatch_index=0,
        ),
        regions=tuple(Region(base=base, size=len(content), **flags) for base, content in memory.items()),
        variables=tuple(
            Variable(name=name, size=len(content), blob=f"module_variables/{name}.bin")
            for name, content, _, _ in variables
        ),
        complete=True,
        extras=SimpleNamespace(memory=told, host_writers=False),
        told_variables={
            f"module_variables/{name}.bin": SimpleNamespace(changed_by_launch=changed)
            for name, _, _, changed in variables
        },
    )  # fmt: skip


def put(memory, changes):
    """The memory with bytes in it; what lies beyond the region of an address is dropped."""
    new = {base: bytearray(content) for base, content in memory.items()}
    for address, data in changes:
        for base, content in new.items():
            if base <= address < base + len(content):
                part = data[: base + len(content) - address]
                content[address - base : address - base + len(part)] = part
    return {base: bytes(content) for base, content in new.items()}


def drawn_changes(rng, memory):
    """Among them some across the border of a MiB, over others, to the very end, and to no region at all."""
    changes = [(0x100, b"nobody")]
    for base, content in memory.items():
        near = [rng.randrange(len(content)), len(content) - 1, 0, max(0, min(MIB, len(content)) - 2)]
        changes += [(base + at, rng.randbytes(rng.randint(1, min(9, len(content) - at)))) for at in near]
    rng.shuffle(changes)
    return changes


@pytest.mark.parametrize("seed", range(8))
def test_memory_is_read_and_hashed_as_it_was_captured(tmp_path, seed):
    rng = random.Random(seed)
    memory = drawn_memory(rng)
    capture = written(tmp_path / "capture", memory, packed=seed % 2 == 1, before=seed % 3 == 0)
    (tmp_path / "scratch").mkdir()
    plain = PlainMemory(capture, tmp_path / "scratch")
    for base, content in memory.items():
        for _ in range(5):
            at = rng.randrange(len(content))
            size = rng.randint(1, len(content) - at)
            assert plain.read(base + at, size) == content[at : at + size]
            assert plain.region_of(base + at).base == base
        with pytest.raises(ValueError, match="not in one captured region"):
            plain.read(base + len(content) - 1, 2)
    assert plain.region_of(min(memory) - 1) is None
    assert plain.region_of(max(base + len(content) for base, content in memory.items())) is None
    changes = drawn_changes(rng, memory)
    for some in ([], changes):
        expected = put(memory, some)
        found = {one.base: (one.size, one.chunks) for one in plain.hashes(some)}
        assert found == {base: (len(content), hashed(content)) for base, content in expected.items()}


def asked(**more):
    return ReplayRequest(Path("capture"), **more)


@pytest.mark.parametrize("seed", range(4))
def test_a_replay_that_left_other_bytes_is_told_by_the_chunks_that_differ(tmp_path, seed):
    rng = random.Random(seed)
    memory = drawn_memory(rng)
    end = put(memory, drawn_changes(rng, memory))
    capture = written(tmp_path / "capture", memory, before=True, after=end)

    def left(memory):
        return [RegionHashes(base, len(content), hashed(content)) for base, content in memory.items()]

    assert reproduction(capture, asked(), left(end), {}) == (True, None, ())
    base, content = rng.choice(sorted(end.items()))
    places = {0, rng.randrange(len(content)), len(content) - 1}
    wrong = put(end, [(base + at, bytes([content[at] ^ 1])) for at in places])
    chunks = sorted({at // MIB for at in places})
    differing = tuple(MemoryRange(base + n * MIB, min(MIB, len(content) - n * MIB)) for n in chunks)
    assert reproduction(capture, asked(), left(wrong), {}) == (False, None, differing)
    known, reason, _ = reproduction(capture, asked(), left(end)[:-1], {})
    assert (known, "no hashes" in reason) == (None, True)


ONCE = {"iterations": 1, "warm_ups": 0}


@pytest.mark.parametrize(
    ("request_", "memory", "variables", "expected", "said"),
    [
        (asked(recopy=False, **ONCE), {}, "right", True, None),
        (asked(recopy=False, iterations=2), {}, "right", None, "not restored between launches"),
        (asked(recopy=False, iterations=1, warm_ups=1), {}, "right", None, "not restored between launches"),
        (asked(iterations=9, warm_ups=9), {}, "right", True, None),
        (asked(edits=(MemoryEdit(0x10000, b"a"),)), {}, "right", None, "changed before the launch"),
        (asked(), {"host_writers": True}, "right", None, "wrote to memory while it was captured"),
        (asked(), {"post": "none"}, "right", None, "no hashes of the memory"),
        (asked(), {"hash": "none"}, "right", None, "no hashes of the memory"),
        (asked(), {}, "wrong", False, "variables of the module are not what the captured launch left: two"),
        (asked(), {}, "absent", True, None),
        (asked(), {}, "absent and changed", None, "changed the variable one, which this code has not"),
        (asked(), {}, "absent and unknown", None, "changed the variable one, which this code has not"),
    ],
)
def test_what_can_be_said_of_a_replay(tmp_path, request_, memory, variables, expected, said):
    changed = {"absent and changed": True, "absent and unknown": None}.get(variables, False)
    kept = (("one", b"first", b"first", changed), ("two", b"second", b"after", True))
    content = {0x10000: b"captured"}
    capture = written(tmp_path / "capture", content, before=True, after=content, variables=kept)
    for name, value in memory.items():
        setattr(capture.extras if name == "host_writers" else capture.extras.memory, name, value)
    found = {"module_variables/one.bin": b"first", "module_variables/two.bin": b"after"}
    if variables.startswith("absent"):
        del found["module_variables/one.bin"]
    elif variables == "wrong":
        found["module_variables/two.bin"] = b"other"
    same, reason, differing = reproduction(
        capture, request_, [RegionHashes(0x10000, 8, hashed(b"captured"))], found
    )
    assert (same, differing) == (expected, ())
    assert reason == said if said is None else said in reason


@pytest.mark.parametrize("seed", range(8))
def test_two_captures_differ_in_the_bytes_that_are_not_the_same(tmp_path, seed):
    rng = random.Random(seed)
    memory = drawn_memory(rng)
    other = put(memory, drawn_changes(rng, memory)[: rng.randint(0, 6)])
    if len(other) > 1 and seed % 2:
        del other[max(other)]
    table = [("table", b"abcdef", b"", None)]
    changed = [("table", b"abcxyf", b"", None)] if seed % 3 else table
    before = written(tmp_path / "a", memory, packed=seed % 4 == 1, variables=table)
    after = written(tmp_path / "b", other, packed=seed % 4 == 2, variables=changed)
    if seed % 2:
        (tmp_path / "b" / "kernarg.bin").write_bytes(b"the sums and more")
    expected = [("kernarg.bin", 5, 2 + 9)] if seed % 2 else []
    for base, content in sorted(other.items()):
        places = (
            [at for at in range(len(content)) if content[at] != memory[base][at]]
            if (content != memory[base])
            else []
        )
        if places:
            expected.append((f"region 0x{base:x}", base + places[0], len(places)))
    if seed % 3:
        expected.append(("variable table", 3, 2))
    found = difference(before, after)
    assert [(one.name, one.first, one.count) for one in found.bytes] == expected
    gone = [f"0x{base:x}, {len(content)} bytes" for base, content in memory.items() if base not in other]
    assert (found.only_before, found.only_after, found.fields) == (tuple(gone), (), ())
    assert found.alike == (not expected and not gone)


# A replayer that does what a list says, on whatever capture it is given.


class Listed(Replayer):
    """``reads`` and ``writes`` of a launch, by the number of the order of its workgroups."""

    name, summary, devices, origin, logs_accesses = "listed", "for tests", ("gfx942",), Origin.MODELLED, True

    def __init__(self, reads, writes, **more):
        self.reads, self.writes, self.more = reads, writes, more
        self.asked = []

    def replay(self, request):
        self.asked.append(request)
        capture = open_capture(request.capture)
        memory = {r.base: capture.path_of(r).read_bytes() for r in capture.regions}

        def bytes_at(memory, place):
            (base,) = [b for b, c in memory.items() if b <= place.address < b + len(c)]
            found = memory[base][place.address - base : place.address - base + place.size]
            assert len(found) == place.size, "it reaches what was not captured"
            return found

        for address, size in self.reads[request.variation % len(self.reads)]:
            bytes_at(memory, MemoryRange(address, size))
        changes = self.writes[request.variation % len(self.writes)]
        for address, data in changes:
            bytes_at(memory, MemoryRange(address, len(data)))
        end = put(memory, changes)
        known = {}
        if request.hashes:
            left = [RegionHashes(base, len(content), hashed(content)) for base, content in end.items()]
            variables = {v.blob: (capture.folder / v.blob).read_bytes() for v in capture.variables}
            same, reason, differing = reproduction(capture, request, left, variables)
            known = {"reproduced": same, "reproduced_reason": reason, "differing": differing}
        log = AccessLog(
            tuple(MemoryRange(*one) for one in sorted(self.reads[request.variation % len(self.reads)])),
            tuple(MemoryRange(address, len(data)) for address, data in sorted(changes)),
        )
        return ReplayResult(
            self.name,
            self.origin,
            kept=tuple(bytes_at(end, place) for place in request.keep),
            accesses=log if request.access_log and self.logs_accesses else None,
            accesses_reason=None if self.logs_accesses else "it can't",
            **{**known, **self.more},
        )


LAST = BASE + 3 * MIB + 99
#: What the launch of the fixtures' capture does to reach the end that is kept: one byte.
WRITES = [[(LAST, b"x")]]
READS = [[(BASE + 5, 4), (BASE + PAGE - 2, 4)], [(BASE + 5, 4), (BASE + 2 * MIB, 4)], [(BASE + 8 * MIB, 8)]]


def test_accesses_are_those_of_any_order_of_the_workgroups(write_rpl_capture):
    replayer = Listed(READS, WRITES)
    found = accesses_of(open_capture(write_rpl_capture()), replayer, 7.0)
    bytes_read = {at + n for order in READS for at, size in order for n in range(size)}
    assert {one.address + n for one in found.read_first for n in range(one.size)} == bytes_read
    assert found.written == (MemoryRange(LAST, 1),)
    assert (found.bytes, found.reproduced, found.reproduced_reason) == (len(bytes_read) + 1, True, None)
    assert [request.variation for request in replayer.asked] == [0, 1, 2]
    assert {request.time_limit_s for request in replayer.asked} == {7.0}
    # What the memory is afterwards is asked for once, in the order that hardware would take most likely.
    assert [request.hashes for request in replayer.asked] == [True, False, False]
    # Written bytes that are read count once.
    twice = accesses_of(open_capture(write_rpl_capture("b")), Listed([[(LAST - 1, 2)]], WRITES))
    assert twice.bytes == 2


FAILURES = {
    ReplayError.TIME_LIMIT: TimeLimitError,
    ReplayError.BAD_CODE: BadDataError,
    ReplayError.ISA_MISMATCH: BadDataError,
    ReplayError.GPU_FAULT: BadDataError,
    ReplayError.UNDECIDABLE: NoVerdictError,
    ReplayError.NO_DEVICE: MissingError,
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_replay_that_fails_ends_the_look_at_its_accesses(write_rpl_capture, kind):
    failing = Listed(READS, WRITES, failure=Failure(kind, "it failed"))
    with pytest.raises(FAILURES[kind], match="it failed"):
        accesses_of(open_capture(write_rpl_capture()), failing)


@pytest.mark.parametrize(
    ("mode", "left_out", "cause"),
    [
        ("full", True, "had freed it (1 range"),
        ("full", False, "referenced"),
        ("referenced", True, "referenced"),
    ],
)
def test_memory_that_was_not_captured_is_told_with_the_reason(
    write_rpl_capture, change_json, mode, left_out, cause
):
    folder = write_rpl_capture()
    freed = [{"base": 0x1000, "size": 64, "kind": "locked_host", "changed_by_launch": None}] * left_out
    change_json(folder / "capture.json", lambda told: told["memory"].update(mode=mode, left_out=freed))
    fault = Listed(READS, WRITES, failure=Failure(ReplayError.GPU_FAULT, "fault at 0x1000"))
    with pytest.raises(BadDataError, match="that the capture does not hold: fault at 0x1000") as caught:
        accesses_of(open_capture(folder), fault)
    assert cause in caught.value.cause


def test_a_replayer_that_logs_nothing_can_not_tell(write_rpl_capture):
    silent = Listed(READS, WRITES)
    silent.logs_accesses = False
    with pytest.raises(MissingError, match="does not tell what a launch reads"):
        accesses_of(open_capture(write_rpl_capture()), silent)


@pytest.mark.parametrize("packed", [False, True])
def test_a_shrunk_capture_holds_the_pages_that_the_launch_touches(write_rpl_capture, tmp_path, packed):
    whole = open_capture(write_rpl_capture())
    memory = {r.base: whole.path_of(r).read_bytes() for r in whole.regions}
    if packed:
        # The launch is played on plain bytes: the packed capture is what is read.
        whole = open_capture(write_rpl_capture("packed", packed=True))
        for region in whole.regions:
            (whole.folder / region.file_name).write_bytes(memory[region.base])
    replayer = Listed(READS, WRITES)
    if packed:
        replayer.replay = lambda request: Listed.replay(replayer, request_of(request, tmp_path, whole))
    made = shrink(whole, replayer, tmp_path / "small").capture
    touched = {at + n for order in READS for at, size in order for n in range(size)} | {LAST}
    pages = sorted({at // PAGE * PAGE for at in touched})
    expected = {}
    for page in pages:
        (base,) = [b for b, c in memory.items() if b <= page < b + len(c)]
        content = memory[base][page - base : page - base + PAGE]
        last = max(expected, default=0)
        # Pages that touch are one region, unless another one begins between them.
        if last and last + len(expected[last]) == page and page not in memory:
            expected[last] += content
        else:
            expected[page] = content
    assert {r.base: made.path_of(r).read_bytes() for r in made.regions} == expected
    end = put(expected, WRITES[0])
    for region in made.regions:
        told = made.extras_of(region)
        assert made.hashes_of(region, "pre").read_bytes() == hashed(expected[region.base])
        assert made.hashes_of(region, "post").read_bytes() == hashed(end[region.base])
        assert told.changed_by_launch == (end[region.base] != expected[region.base])
    assert list(problems_of(made)) == []
    assert made.extras.memory.bytes == sum(map(len, expected.values()))
    assert (made.dispatch, made.complete) == (whole.dispatch, True)
    for name in ("kernarg.bin", "kernel.hsaco", "module_variables/0.bin", "module_variables/0.post.xxh3"):
        assert (made.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert not list(tmp_path.glob(".rpl-shrink*"))


def request_of(request, tmp_path, whole):
    """The same replay of a capture that is not packed, which this replayer can read."""
    if request.capture != whole.folder:
        return request
    return attrs.evolve(request, capture=tmp_path / "isolate_capture")


@pytest.mark.parametrize(
    ("writes", "error", "said"),
    [
        ([[(LAST, b"y")]], NoVerdictError, "leaves other memory than the captured launch did"),
        # Only the second order of workgroups, so the first look can't see it.
        ([[(LAST, b"x")], [(LAST, b"x"), (BASE + 64, b"z")], [(LAST, b"x")]], None, None),
    ],
)
def test_a_launch_that_leaves_something_else_is_not_shrunk(write_rpl_capture, tmp_path, writes, error, said):
    capture = open_capture(write_rpl_capture())
    if error is None:
        made = shrink(capture, Listed(READS, writes), tmp_path / "small").capture
        assert any(r.base <= BASE + 64 < r.end for r in made.regions)
        return
    with pytest.raises(error, match=said):
        shrink(capture, Listed(READS, writes), tmp_path / "small")
    assert not (tmp_path / "small").exists()


def test_a_launch_that_does_something_else_each_time_is_not_shrunk(write_rpl_capture, tmp_path):
    class Moody(Listed):
        def replay(self, request):
            self.reads = [[(BASE + 8 * len(self.asked), 4)]]
            return super().replay(request)

    with pytest.raises(BadDataError, match="does not replay as the whole one"):
        shrink(open_capture(write_rpl_capture()), Moody(READS, WRITES), tmp_path / "small")
    assert not (tmp_path / "small").exists()


# What is told of it.


def test_errors_have_the_exit_codes_of_the_manual():
    """The table of docs/REPLAY_JSON_SCHEMA.md: | `kind`, `kind` | meaning | exit code |."""
    lines = MANUAL.read_text().partition("| `error.kind` |")[2].splitlines()[2:]
    table = {}
    for line in lines[: lines.index("")]:
        kinds, *_, code = (cell.strip() for cell in line.strip("| ").split("|"))
        table |= dict.fromkeys(kinds.replace("`", "").split(", "), int(code))
    assert {kind.value: exit_code_of(Failure(kind, "x")) for kind in ReplayError}.items() <= table.items()
    ended = {
        "usage": UsageError,
        "bad_capture": BadDataError,
        "missing": MissingError,
        "time_limit": TimeLimitError,
        "interrupted": InterruptedRunError,
        "internal": RplError,
    }
    for kind, error in ended.items():
        told = error_of_exception(error("fact", next_step="step"))
        assert (told["kind"], told["fact"], told["next_step"]) == (kind, "fact", "step")
        assert int(error("fact").exit_code) == table[kind]
    assert ended.keys() | {kind.value for kind in ReplayError} == table.keys()


def test_a_replay_is_told_whole(tmp_path):
    """Keys of docs/REPLAY_JSON_SCHEMA.md, each with a value that no other one has."""
    capture = written(tmp_path / "capture", {0x1000: b"memory"})
    for name in ("dispatch.json", "memory_regions.json"):
        (tmp_path / "capture" / name).write_text(name)
    differing = tuple(MemoryRange(n * MIB, 7) for n in range(130))
    result = ReplayResult(
        "mine", Origin.SYNTHETIC, times_ns=(3000, 1000, 2000), warm_up_ns=(9000,), wall_ns=50_000,
        reservations=(Reservation(0x1000, 4096, 0x2000),), reproduced=False, differing=differing,
        restored_bytes=11, flushed_bytes=12, notes=("noted",), stale_arguments=("heap",),
        patched_arguments=("printf",), failure=Failure(ReplayError.GPU_FAULT, "fault", "cause", "step", 0x77),
    )  # fmt: skip
    told = replay_document(capture, asked(iterations=3, warm_ups=1, recopy=False), result)
    assert told["kernel"]["name"] == "k.kd"
    assert told["kernel"]["captured_code"] is True
    assert told["kernel"]["hsaco_path"] == str(tmp_path / "capture" / "kernel.hsaco")
    execution = {"iterations": 3, "mode": "stateful", "warm_ups": 1, "cache_mode": "cold",
                 "flushed_bytes": 12, "restored_bytes": 11, "replayer": "mine"}  # fmt: skip
    assert execution.items() <= told["execution"].items()
    times = {"origin": "synthetic", "average": 2, "min": 1, "max": 3, "median": 2, "p95": 3, "cv": 0.5,
             "raw": [3, 1, 2], "warm_up_raw": [9], "total_wall": 50}  # fmt: skip
    assert times.items() <= told["timing"].items()
    assert told["differing"] == [{"address": n * MIB, "size": 7} for n in range(100)]
    reservation = {"requested": 0x1000, "size": 4096, "returned": 0x2000, "exact": False}
    assert told["reservations"] == [reservation]
    error = {"kind": "gpu_fault", "fact": "fault", "cause": "cause", "next_step": "step", "address": 0x77}
    assert told["error"] == error
    code = tmp_path / "other.hsaco"
    plain = replay_document(capture, asked(code_object=code), ReplayResult("mine", Origin.MEASURED))
    assert (plain["kernel"]["hsaco_path"], plain["kernel"]["captured_code"]) == (str(code), False)
    assert (plain["execution"]["mode"], plain["execution"]["cache_mode"]) == ("stateless", "warm")
    assert (plain["timing"]["average"], plain["timing"]["total_wall"]) == (None, None)
    assert plain["error"] is None
    # The hash is of what stands before the launch: a byte of memory, and it is another one.
    before = told["capture"]["hash"]
    (tmp_path / "capture" / "memory" / "region_1000.bin").write_bytes(b"Memory")
    assert replay_document(capture, asked(), result)["capture"]["hash"] != before


@pytest.mark.parametrize("seed", range(20))
def test_addresses_are_asked_for_in_whole_pages_once(seed):
    """Every page that holds a captured byte, and no other one; what touches is one range."""
    rng = random.Random(seed)
    regions, at = [], 0x10000
    for _ in range(rng.randint(1, 8)):
        at += rng.choice((0, 1, 100, PAGE - 1, PAGE, 3 * PAGE))
        size = rng.choice((1, 50, PAGE, PAGE + 1, 2 * PAGE))
        regions.append(SimpleNamespace(base=at, size=size, end=at + size))
        at += size
    rng.shuffle(regions)
    pages = {byte // PAGE for one in regions for byte in range(one.base, one.end)}
    found = ranges_of(SimpleNamespace(regions=tuple(regions)))
    asked_for = [
        page for one in found for page in range(one.address // PAGE, (one.address + one.size) // PAGE)
    ]
    assert sorted(pages) == asked_for
    assert all(one.address % PAGE == one.size % PAGE == 0 for one in found)
    assert all(a.address + a.size < b.address for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("returned", "failure", "verdict"),
    [
        ((0x1000, 0x2000), None, 0),
        ((0x1000, 0x9000), None, 2),
        ((), None, 0),
        ((0x1000,), ReplayError.RESERVE_FAILED, 1),
        ((0x1000,), ReplayError.LAYOUT_CLASH, 1),
        ((0x9000, 0x2000), ReplayError.RELOCATED, 2),
        ((0x1000,), ReplayError.NO_RUNTIME, None),
        ((0x1000,), ReplayError.NO_VIRTUAL_MEMORY, None),
    ],
)
def test_the_verdict_on_addresses_is_that_of_the_worst(returned, failure, verdict):
    """docs/REPLAY.md, `rpl replay reserve-check`: all as asked 0, a failure 1, other addresses 2."""
    given = zip((0x1000, 0x2000), returned, strict=False)
    result = ReserveResult(
        tuple(Reservation(asked_for, PAGE, got) for asked_for, got in given),
        failure=None if failure is None else Failure(failure, "it failed"),
    )
    assert verdict_of(result) == verdict
