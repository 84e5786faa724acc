"""A smaller capture of the same launch: the pages that it touches, sealed and shown to replay the same."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from rpl_core.errors import BadDataError, NoVerdictError
from rpl_core.files import storage_error
from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import (
    BLOCK_BYTES,
    KERNCAP_COMPLETE,
    KERNCAP_METADATA,
    VARIABLES,
    Capture,
    Variable,
    chunk_hash,
    open_capture,
)
from rpl_vmreplay.capture.layout import (
    AFTER_HASHES_SUFFIX,
    BEFORE_HASHES_SUFFIX,
    BYTES_SUFFIX,
    CODE_OBJECT,
    DISPATCH,
    EXTRAS,
    KERNARG,
    MEMORY_FOLDER,
    REGION_PREFIX,
    REGIONS,
    SCHEMA_VERSION,
    SENTINEL,
)
from rpl_vmreplay.capture.plain_memory import (
    PAGE_BYTES,
    Accesses,
    PlainMemory,
    Ranges,
    accesses_of,
    logged,
    pages_of,
)
from rpl_vmreplay.capture.records import Region
from rpl_vmreplay.capture.wholeness import SEALED, problems_of
from rpl_vmreplay.interfaces import MemoryRange, Replayer, ReplayRequest

#: What is taken over as it is: the launch, its arguments, its code, variables of modules.
_UNCHANGED = (DISPATCH, KERNARG, CODE_OBJECT, KERNCAP_METADATA, VARIABLES, KERNCAP_COMPLETE)


@frozen
class Shrunk:
    """``capture`` is the new one."""

    capture: Capture
    accesses: Accesses


@frozen
class _Piece:
    """Bytes of one new region, before the launch and, where that is known, after it."""

    region: Region
    before: bytes
    after: bytes | None


def shrink(capture: Capture, replayer: Replayer, target: Path, limit_s: float | None = None) -> Shrunk:
    """Write the pages that the launch touches to ``target``, which is there as a whole or not at all.

    Raises what ``accesses_of`` raises, ``NoVerdictError`` where a replay does not leave what the captured
    launch left, and ``BadDataError`` where the smaller one replays otherwise.
    """
    accesses = accesses_of(capture, replayer, limit_s)
    if accesses.reproduced is False:
        raise NoVerdictError(
            "a replay leaves other memory than the captured launch did, so its accesses need not be the same",
            cause="results that depend on the order of workgroups, or a program that wrote meanwhile",
            next_step=f"look at `rpl replay full-vm {capture.folder} --replayer {replayer.name}`",
        )
    pages = pages_of(capture, (*accesses.read_first, *accesses.written, *_arguments(capture)))
    after = logged(replayer, ReplayRequest(capture.folder, keep=pages, hashes=False, time_limit_s=limit_s))
    known = after.kept if accesses.reproduced else (None,) * len(pages)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".rpl-shrink-") as place:
            folder = Path(place) / "capture"
            _write(capture, folder, pages, known)
            _require_the_same(open_capture(folder), replayer, accesses, after.kept, pages, limit_s)
            folder.rename(target)
    except OSError as error:
        if error.filename is not None and Path(error.filename).is_relative_to(capture.folder):
            raise BadDataError(f"cannot read {error.filename}: {error.strerror}") from error
        raise storage_error(target, error) from error
    return Shrunk(open_capture(target), accesses)


def _arguments(capture: Capture) -> Ranges:
    """Where the arguments lay: a replayer for hardware puts them there, whether they are read or not."""
    address = None if capture.extras is None else capture.extras.dispatch.kernarg_address
    return () if address is None else (MemoryRange(address, capture.dispatch.kernarg_size),)


def _require_the_same(
    smaller: Capture,
    replayer: Replayer,
    accesses: Accesses,
    contents: tuple[bytes, ...],
    pages: Ranges,
    limit_s: float | None,
) -> None:
    if problem := next(problems_of(smaller), None):
        raise BadDataError(f"what was written is not a whole capture: {problem}")
    reached = accesses_of(smaller, replayer, limit_s)
    after = logged(replayer, ReplayRequest(smaller.folder, keep=pages, hashes=False, time_limit_s=limit_s))
    same = (reached.read_first, reached.written, reached.reproduced, after.kept)
    if same != (accesses.read_first, accesses.written, accesses.reproduced, contents):
        raise BadDataError(
            "the smaller capture does not replay as the whole one does",
            cause="the launch does something else each time",
        )


def _write(capture: Capture, folder: Path, pages: Ranges, after: tuple[bytes | None, ...]) -> None:
    (folder / MEMORY_FOLDER).mkdir(parents=True)
    for name in _UNCHANGED:
        if (capture.folder / name).is_file():
            shutil.copyfile(capture.folder / name, folder / name)
    for variable in capture.variables:
        (folder / variable.blob).parent.mkdir(exist_ok=True)
        shutil.copyfile(capture.folder / variable.blob, folder / variable.blob)
        _write_variable_hashes(capture, variable, folder)
    regions = [_region(capture, page) for page in pages]
    (folder / REGIONS).write_text(_json({"regions": [region.model_dump(mode="json") for region in regions]}))
    with tempfile.TemporaryDirectory(prefix="rpl-shrink-") as scratch:
        memory = PlainMemory(capture, Path(scratch))
        pieces = [
            _Piece(region, memory.read(region.base, region.size), content)
            for region, content in zip(regions, after, strict=True)
        ]
    for piece in pieces:
        (folder / piece.region.file_name).write_bytes(piece.before)
    if capture.extras is not None:
        _write_extras(capture, folder, pieces)


def _write_variable_hashes(capture: Capture, variable: Variable, folder: Path) -> None:
    """What the whole capture says of it; a capture without hashes gets those before the launch."""
    if capture.extras is None:
        return
    stem = str(folder / variable.blob).removesuffix(BYTES_SUFFIX)
    Path(stem + BEFORE_HASHES_SUFFIX).write_bytes(_hashes((capture.folder / variable.blob).read_bytes()))
    after = capture.hashes_of(variable, "post")
    if after is not None:
        shutil.copyfile(after, stem + AFTER_HASHES_SUFFIX)


def _region(capture: Capture, page: MemoryRange) -> Region:
    whole = next(region for region in capture.regions if region.base <= page.address < region.end)
    arguments = _arguments(capture)
    holds = whole.contains_kernarg and all(
        page.address <= argument.address < page.address + page.size for argument in arguments
    )
    return whole.model_copy(update={"base": page.address, "size": page.size, "contains_kernarg": holds})


def _write_extras(capture: Capture, folder: Path, pieces: list[_Piece]) -> None:
    for piece in pieces:
        stem = str(folder / piece.region.file_name).removesuffix(BYTES_SUFFIX)
        Path(stem + BEFORE_HASHES_SUFFIX).write_bytes(_hashes(piece.before))
        if piece.after is not None:
            Path(stem + AFTER_HASHES_SUFFIX).write_bytes(_hashes(piece.after))
    told = json.loads((capture.folder / EXTRAS).read_text())
    size = sum(piece.region.size for piece in pieces)
    told["memory"] |= {
        "hash": "xxh3",
        "compression": "none",
        "post": "hashes" if all(piece.after is not None for piece in pieces) else "none",
        "bytes": size,
        "bytes_stored": size,
        "shrunk": {"page_bytes": PAGE_BYTES, "regions": len(capture.regions), "bytes": capture.bytes},
        "regions": [_told_region(told["memory"]["regions"], piece) for piece in pieces],
    }
    for region in told["memory"]["regions"]:
        region["hashes"] = _seals(folder, f"{MEMORY_FOLDER}/{REGION_PREFIX}{region['base']:x}")
    for variable in told["module_variables"]:
        variable["hashes"] = _seals(folder, variable["file"].removesuffix(BYTES_SUFFIX))
    (folder / EXTRAS).write_text(_json(told))
    _seal(folder)


def _seal(folder: Path) -> None:
    """As the capture tool does, last of all."""
    import xxhash

    contents = {name: (folder / name).read_bytes() for name in SEALED}
    files = {
        name: {"size": len(content), "xxh3": xxhash.xxh3_64_hexdigest(content)}
        for name, content in contents.items()
    }
    (folder / SENTINEL).write_text(_json({"schema_version": SCHEMA_VERSION, "files": files}))


def _told_region(told: list[dict[str, Any]], piece: _Piece) -> dict[str, Any]:
    base = piece.region.base
    whole = next(region for region in told if region["base"] <= base < region["base"] + region["size"])
    moved = base - whole["base"]
    changed = None if piece.after is None else piece.after != piece.before
    region = {**whole, "base": base, "size": piece.region.size, "changed_by_launch": changed}
    for name in ("in_offset", "host_address"):
        if region.get(name) is not None:
            region[name] += moved
    return region


def _seals(folder: Path, stem: str) -> dict[str, str | None]:
    """Hashes of the hash files of a region or variable."""
    import xxhash

    paths = {
        "pre": folder / f"{stem}{BEFORE_HASHES_SUFFIX}",
        "post": folder / f"{stem}{AFTER_HASHES_SUFFIX}",
    }
    return {
        moment: xxhash.xxh3_64_hexdigest(path.read_bytes()) if path.exists() else None
        for moment, path in paths.items()
    }


def _hashes(content: bytes) -> bytes:
    return b"".join(chunk_hash(content[at : at + BLOCK_BYTES]) for at in range(0, len(content), BLOCK_BYTES))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"
