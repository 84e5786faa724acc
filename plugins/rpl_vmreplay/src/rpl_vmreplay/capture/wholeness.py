"""Whether a capture is whole, and whether its code fits a GPU: instruction sets by their names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rpl_core.errors import BadDataError
from rpl_vmreplay.capture.folder import (
    BLOCK_BYTES,
    LARGEST_SENTINEL_BYTES,
    Capture,
    Variable,
    blocks_with_data,
    chunk_hash,
    packed_size_problem,
    read_json,
)
from rpl_vmreplay.capture.layout import (
    CODE_OBJECT,
    DISPATCH,
    EXTRAS,
    HASH_BYTES,
    KERNARG,
    PACKED_SUFFIX,
    REGIONS,
    SENTINEL,
)
from rpl_vmreplay.capture.records import MemoryRegion, ModuleVariable, Region, Sentinel


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
    return processor, {feature[:-1]: feature[-1] for feature in features_of if feature}


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
    has_problems = False
    for problem in _outer_problems(capture):
        has_problems = True
        yield problem
    if contents and not has_problems and capture.extras is not None:
        yield from _content_problems(capture)


class _Listing:
    """The files of a capture by name, each folder looked at once: there may be half a million."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[str, dict[str, os.DirEntry[str]] | None] = {}

    def size_of(self, name: str) -> int:
        """Of a file that ``problem`` finds nothing wrong with."""
        return self._entry(name)[1].stat(follow_symlinks=False).st_size  # type: ignore[union-attr]

    def problem(self, name: str, size: int | None) -> str | None:
        """Why the file can't be what is said: absent, a link, no file, not of ``size`` bytes."""
        parent, entry = self._entry(name)
        if self._entries[parent] is None:
            return f"{parent} is a link: it could lead out of the capture"
        if entry is None:
            return f"{name} is absent"
        if not entry.is_file(follow_symlinks=False):
            return f"{name} is not a plain file"
        if size is not None and (bytes_there := entry.stat(follow_symlinks=False).st_size) != size:
            return f"{name} has {bytes_there} bytes, {size} are said to be in it"
        return None

    def _entry(self, name: str) -> tuple[str, os.DirEntry[str] | None]:
        parent, leaf = os.path.split(os.path.normpath(name))
        if parent not in self._entries:
            self._entries[parent] = self._listed(self._folder / parent) if parent else self._listed()
        return parent, (self._entries[parent] or {}).get(leaf)

    def _listed(self, below: Path | None = None) -> dict[str, os.DirEntry[str]] | None:
        if below is not None and below.is_symlink():
            return None
        try:
            with os.scandir(below or self._folder) as entries:
                return {entry.name: entry for entry in entries}
        except OSError:
            return {}


def _outer_problems(capture: Capture) -> Iterator[str]:
    if capture.complete is False:
        yield "the capture was cut short: the tool did not say that it finished"
    files = _Listing(capture.folder)
    yield from filter(None, [files.problem(KERNARG, capture.dispatch.kernarg_size)])
    yield from filter(None, [_code_object_problem(capture.folder, files)])
    for region in capture.regions:
        for name in filter(None, (capture.name_of(region), capture.name_after(region))):
            packed = name.endswith(PACKED_SUFFIX)
            problem = files.problem(name, None if packed else region.size)
            if packed and problem is None:
                problem = packed_size_problem(name, files.size_of(name), region.size)
            yield from filter(None, [problem])
        chunks = -(-region.size // BLOCK_BYTES)
        if capture.extras is not None and chunks * HASH_BYTES > _LARGEST_HASHES:
            yield f"the region at 0x{region.base:x} is larger than the memory of any GPU"
        yield from _hash_file_problems(capture, files, region)
    for variable in capture.variables:
        yield from filter(None, [files.problem(variable.blob, variable.size)])
        yield from _hash_file_problems(capture, files, variable)
    if 0 in capture.dispatch.grid or 0 in capture.dispatch.block:
        yield f"{DISPATCH}: a launch of no work-items"
    if capture.extras is not None:
        yield from _disagreements(capture)
    elif capture.layout == "rpl":
        yield f"{EXTRAS} is absent"


def _hash_file_problems(capture: Capture, files: _Listing, part: Region | Variable) -> Iterator[str]:
    for moment in ("pre", "post"):
        if (name := capture.hashes_name(part, moment)) is not None:
            size = -(-part.size // BLOCK_BYTES) * HASH_BYTES
            yield from filter(None, [files.problem(name, size)])


def _disagreements(capture: Capture) -> Iterator[str]:
    """Where ``capture.json`` and the other lists say different things."""
    extras = capture.extras
    assert extras is not None
    listed = {(region.base, region.size) for region in capture.regions}
    told = {(region.base, region.size) for region in extras.memory.regions}
    if listed != told:
        base = min(base for base, _ in listed ^ told)
        yield f"{EXTRAS} and {REGIONS} list different regions, the first at 0x{base:x}"
    files = [variable.file for variable in extras.module_variables]
    if len(set(files)) != len(files):
        yield f"{EXTRAS}: two variables are said to be in one file"
    if extras.agent.isa and (difference := isa_difference(capture.dispatch.isa_name, extras.agent.isa)):
        yield f"{EXTRAS} and {DISPATCH} name different instruction sets: {difference}"
    launched = extras.dispatch.group_segment
    if launched is not None and launched.launched != capture.dispatch.group_segment_size:
        yield f"{EXTRAS} and {DISPATCH} tell different bytes of LDS"


def _content_problems(capture: Capture) -> Iterator[str]:
    folder = capture.folder
    sentinel = read_json(folder, SENTINEL, Sentinel, LARGEST_SENTINEL_BYTES)
    for name in SEALED:
        sealed = sentinel.files.get(name)
        if sealed is None:
            yield f"{SENTINEL} does not name {name}"
            continue
        if (folder / name).stat().st_size != sealed.size or _hash_of(folder / name) != sealed.xxh3:
            yield f"{name} was changed since it was written"
    told = capture.extras.code_object.xxh3 if capture.extras is not None else None
    if told is not None and _hash_of(capture.folder / CODE_OBJECT) != told:
        yield f"{CODE_OBJECT} is not the code object that {EXTRAS} tells of"
    memory = capture.extras.memory if capture.extras is not None else None
    if memory is None or (memory.hash, memory.compression) == ("none", "none"):
        return  # sizes say all that can be known
    parts: tuple[Region | Variable, ...] = (*capture.regions, *capture.variables)
    for part in parts:
        try:
            yield from _hash_problems(capture, part)
        except BadDataError as error:
            yield error.fact


def _hash_of(path: Path) -> str:
    import xxhash

    digest = xxhash.xxh3_64()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _digest(content: bytes) -> str:
    import xxhash

    return xxhash.xxh3_64_hexdigest(content)


def _hash_problems(capture: Capture, part: Region | Variable) -> Iterator[str]:
    """The bytes against the hashes, these against the seal, and whether anything changed against both."""
    told: MemoryRegion | ModuleVariable | None
    after: str | None = None
    if isinstance(part, Region):
        before, after = capture.name_of(part), capture.name_after(part)
        told, base, name = capture.extras_of(part), part.base, f"0x{part.base:x}"
    else:
        before, told, base = part.blob, capture.extras_of_variable(part), 0
        name = f"the variable {part.name}"
    hashes: dict[str, bytes] = {}
    for moment in ("pre", "post"):
        if (file := capture.hashes_name(part, moment)) is not None:
            hashes[moment] = (capture.folder / file).read_bytes()
            sealed = getattr(told.hashes, moment) if told is not None else None
            if sealed is not None and _digest(hashes[moment]) != sealed:
                yield f"{file} was changed since it was written"
    for file, moment in ((before, "pre"), (after, "post")):
        if file is not None:
            yield from _byte_problems(capture.folder / file, file, part.size, base, hashes.get(moment))
    changed = told.changed_by_launch if told is not None else None
    if changed is not None and len(hashes) == 2 and changed != (hashes["pre"] != hashes["post"]):
        yield f"{EXTRAS} and the hashes disagree whether the launch changed {name}"


def _byte_problems(path: Path, name: str, size: int, base: int, hashes: bytes | None) -> Iterator[str]:
    if hashes is None:
        if path.suffix == PACKED_SUFFIX:  # else its size says all that can be known
            for _ in blocks_with_data(path, size):
                pass
    elif (wrong := _first_wrong_chunk(path, size, hashes)) is not None:
        yield f"{name} does not match its hash in the chunk at 0x{base + wrong:x}"


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


def _code_object_problem(folder: Path, files: _Listing) -> str | None:
    if problem := files.problem(CODE_OBJECT, None):
        return problem
    with (folder / CODE_OBJECT).open("rb") as stream:
        return None if stream.read(len(ELF_MAGIC)) == ELF_MAGIC else f"{CODE_OBJECT} is no code object"


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
