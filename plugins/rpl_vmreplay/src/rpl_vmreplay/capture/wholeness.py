"""Instruction sets by their names, such as ``amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rpl_core.errors import BadDataError
from rpl_vmreplay.capture.files import (
    CODE_OBJECT,
    DISPATCH,
    EXTRAS,
    HASH_BYTES,
    KERNARG,
    LARGEST_SENTINEL_BYTES,
    REGIONS,
    SENTINEL,
    MemoryRegion,
    ModuleVariable,
    Region,
    Sentinel,
    Variable,
    chunk_hash,
    read_json,
)
from rpl_vmreplay.capture.folder import (
    BLOCK_BYTES,
    PACKED_SUFFIX,
    Capture,
    blocks_with_data,
    packed_size_problem,
)


def isa_difference(wanted: str, given: str) -> str | None:
    """Why what is made for ``wanted`` does not run on ``given``; ``None`` if it does, or none is named.

    The rule of native/replay/runtime/isa.cpp: the same processor, and each feature that ``wanted`` names has
    the same setting.
    """
    if not wanted or not given:
        return None
    processor, features = _target(wanted)
    other, others = _target(given)
    if processor != other:
        return f"{processor} and {other}"
    for name, sign in features.items():
        if others.get(name) != sign:
            return f"{name}{sign} and {name + others[name] if name in others else 'no ' + name}"
    return None


def isa_problem(parts: Iterable[tuple[str, str]], agent: str) -> str | None:
    """The first of the parts of a launch (what it is, its instruction set) that is not for ``agent``."""
    for what, isa in parts:
        if (difference := isa_difference(isa, agent)) is not None:
            return f"{what} is for {isa}, and this runs {agent} only ({difference})"
    return None


def _target(name: str) -> tuple[str, dict[str, str]]:
    """Processor and features. ``gfx9-4-generic`` has dashes of its own, behind the two before it."""
    _, separator, rest = name.partition("--")
    if not separator:
        first, colon, features = name.partition(":")
        rest = first.rpartition("-")[2] + colon + features
    processor, *features_of = rest.split(":")
    return processor, {one[:-1]: one[-1] for one in features_of if one}


# Whether a capture is whole: every file is there, plain, as large as said, with the bytes of its hashes.

ELF_MAGIC = b"\x7fELF"
#: Hashes of a region of 8 TiB: no GPU has as much, and they are read at once.
_LARGEST_HASHES = 64 << 20
#: Every file whose hash the sentinel holds.
SEALED = (DISPATCH, REGIONS, EXTRAS, KERNARG, CODE_OBJECT)


def problems_of(capture: Capture, *, contents: bool = True) -> Iterator[str]:
    """Every reason why the capture can't be replayed as it is.

    Without ``contents`` only from the names, kinds and sizes of its files, which takes no time.
    """
    found = False
    for problem in _outer_problems(capture):
        found = True
        yield problem
    if contents and not found and capture.extras is not None:
        yield from _content_problems(capture)


def _outer_problems(capture: Capture) -> Iterator[str]:
    if capture.complete is False:
        yield "the capture was cut short: the tool did not say that it finished"
    yield from _file_problems(capture.folder, KERNARG, capture.dispatch.kernarg_size)
    yield from _code_object_problems(capture.folder)
    for region in capture.regions:
        yield from _region_problems(capture, region)
    for variable in capture.variables:
        yield from _file_problems(capture.folder, variable.blob, variable.size)
        yield from _hash_file_problems(capture, variable)
    if 0 in capture.dispatch.grid or 0 in capture.dispatch.block:
        yield f"{DISPATCH}: a launch of no work-items"
    if capture.extras is not None:
        yield from _disagreements(capture)
    elif capture.layout == "rpl":
        yield f"{EXTRAS} is absent"


def _region_problems(capture: Capture, region: Region) -> Iterator[str]:
    for path in filter(None, (capture.path_of(region), capture.path_after(region))):
        packed = path.suffix == PACKED_SUFFIX
        found = tuple(_file_problems(capture.folder, _name(capture, path), None if packed else region.size))
        yield from found
        if packed and not found and (problem := packed_size_problem(path, region.size)):
            yield problem
    chunks = -(-region.size // BLOCK_BYTES)
    if capture.extras is not None and chunks * HASH_BYTES > _LARGEST_HASHES:
        yield f"the region at 0x{region.base:x} is larger than the memory of any GPU"
    yield from _hash_file_problems(capture, region)


def _hash_file_problems(capture: Capture, part: Region | Variable) -> Iterator[str]:
    for moment in ("pre", "post"):
        if hashes := capture.hashes_of(part, moment):
            size = -(-part.size // BLOCK_BYTES) * HASH_BYTES
            yield from _file_problems(capture.folder, _name(capture, hashes), size)


def _name(capture: Capture, path: Path) -> str:
    return path.relative_to(capture.folder).as_posix()


def _disagreements(capture: Capture) -> Iterator[str]:
    """Where ``capture.json`` and the other lists say different things."""
    extras = capture.extras
    assert extras is not None
    listed = {(one.base, one.size) for one in capture.regions}
    told = {(one.base, one.size) for one in extras.memory.regions}
    if listed != told:
        base = min(base for base, _ in listed ^ told)
        yield f"{EXTRAS} and {REGIONS} list different regions, the first at 0x{base:x}"
    files = [one.file for one in extras.module_variables]
    if len(set(files)) != len(files):
        yield f"{EXTRAS}: two variables are said to be in one file"
    if extras.agent.isa and (difference := isa_difference(capture.dispatch.isa_name, extras.agent.isa)):
        yield f"{EXTRAS} and {DISPATCH} name different instruction sets: {difference}"
    launched = extras.dispatch.group_segment
    if launched is not None and launched.launched != capture.dispatch.group_segment_size:
        yield f"{EXTRAS} and {DISPATCH} tell different bytes of LDS"


def _content_problems(capture: Capture) -> Iterator[str]:
    yield from _seal_problems(capture.folder)
    told = capture.extras.code_object.xxh3 if capture.extras is not None else None
    if told is not None and _hash_of(capture.folder / CODE_OBJECT) != told:
        yield f"{CODE_OBJECT} is not the code object that {EXTRAS} tells of"
    parts: tuple[Region | Variable, ...] = (*capture.regions, *capture.variables)
    for part in parts:
        try:
            yield from _hash_problems(capture, part)
        except BadDataError as error:
            yield error.fact


def _seal_problems(folder: Path) -> Iterator[str]:
    sentinel = read_json(folder, SENTINEL, Sentinel, LARGEST_SENTINEL_BYTES)
    for name in SEALED:
        sealed = sentinel.files.get(name)
        if sealed is None:
            yield f"{SENTINEL} does not name {name}"
            continue
        if (folder / name).stat().st_size != sealed.size or _hash_of(folder / name) != sealed.xxh3:
            yield f"{name} was changed since it was written"


def _hash_of(path: Path) -> str:
    import xxhash

    digest = xxhash.xxh3_64()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _hash_problems(capture: Capture, part: Region | Variable) -> Iterator[str]:
    """The bytes against the hashes, these against the seal, and whether anything changed against both."""
    told: MemoryRegion | ModuleVariable | None
    after: Path | None = None
    if isinstance(part, Region):
        before, after = capture.path_of(part), capture.path_after(part)
        told, base, name = capture.extras_of(part), part.base, f"0x{part.base:x}"
    else:
        before, told, base = capture.folder / part.blob, capture.extras_of_variable(part), 0
        name = f"the variable {part.name}"
    for path, moment in ((before, "pre"), (after, "post")):
        hashes = capture.hashes_of(part, moment)
        if hashes is not None and told is not None:
            sealed = told.hashes.pre if moment == "pre" else told.hashes.post
            if sealed is not None and _hash_of(hashes) != sealed:
                yield f"{_name(capture, hashes)} was changed since it was written"
        if path is None:
            continue
        if hashes is None:
            if path.suffix == PACKED_SUFFIX:  # else its size says all that can be known
                for _ in blocks_with_data(path, part.size):
                    pass
        elif (wrong := _first_wrong_chunk(path, part.size, hashes.read_bytes())) is not None:
            yield f"{_name(capture, path)} does not match its hash in the chunk at 0x{base + wrong:x}"
    pre, post = capture.hashes_of(part, "pre"), capture.hashes_of(part, "post")
    if told is None or told.changed_by_launch is None or pre is None or post is None:
        return
    if told.changed_by_launch != (pre.read_bytes() != post.read_bytes()):
        yield f"{EXTRAS} and the hashes disagree whether the launch changed {name}"


def _first_wrong_chunk(path: Path, size: int, hashes: bytes) -> int | None:
    """The offset of the first chunk that isn't what its hash says; holes are zeros and are not read."""
    zeros = chunk_hash(bytes(BLOCK_BYTES))
    expected = 0
    for offset, block in blocks_with_data(path, size):
        if (hole := _first_that_is_not(zeros, hashes, expected, offset)) is not None:
            return hole
        index = offset // BLOCK_BYTES
        if hashes[index * HASH_BYTES : (index + 1) * HASH_BYTES] != chunk_hash(block):
            return offset
        expected = offset + len(block)
    last = size // BLOCK_BYTES * BLOCK_BYTES
    if (hole := _first_that_is_not(zeros, hashes, expected, last)) is not None:
        return hole
    rest = size % BLOCK_BYTES
    if expected < size and rest and hashes[-HASH_BYTES:] != chunk_hash(bytes(rest)):
        return last
    return None


def _first_that_is_not(digest: bytes, hashes: bytes, begin: int, end: int) -> int | None:
    """The first whole chunk from ``begin`` to ``end`` with another hash; both are multiples of a chunk."""
    first, last = begin // BLOCK_BYTES, end // BLOCK_BYTES
    part = hashes[first * HASH_BYTES : last * HASH_BYTES]
    if part == digest * (last - first):
        return None
    places = range(0, len(part), HASH_BYTES)
    return begin + next(i for i in places if part[i : i + HASH_BYTES] != digest) // HASH_BYTES * BLOCK_BYTES


def _file_problems(folder: Path, name: str, size: int | None) -> Iterator[str]:
    path = folder / name
    if path.parent != folder and path.parent.is_symlink():
        yield f"{path.parent.name} is a link: it could lead out of the capture"
    elif not path.exists() and not path.is_symlink():
        yield f"{name} is absent"
    elif path.is_symlink() or not path.is_file():
        yield f"{name} is not a plain file"
    elif size is not None and (found := path.stat().st_size) != size:
        yield f"{name} has {found} bytes, {size} are said to be in it"


def _code_object_problems(folder: Path) -> Iterator[str]:
    found = tuple(_file_problems(folder, CODE_OBJECT, None))
    yield from found
    if not found:
        with (folder / CODE_OBJECT).open("rb") as stream:
            if stream.read(len(ELF_MAGIC)) != ELF_MAGIC:
                yield f"{CODE_OBJECT} is no code object"


def whole_capture(folder: Path) -> Capture:
    """The capture, all bytes of which match their hashes. Raises BadDataError or MissingError."""
    from rpl_vmreplay.capture.folder import open_capture

    opened = open_capture(folder)
    if problem := next(problems_of(opened), None):
        raise BadDataError(
            f"{folder} is not a whole capture: {problem}",
            next_step=f"rpl capture verify {folder} names all reasons",
        )
    return opened
