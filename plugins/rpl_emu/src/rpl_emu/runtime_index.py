"""ROCr and HIP out of AMD's own packages, of an index whose address the user gives.

The index is laid out as apt's: ``dists/SUITE/Release`` tells hash and size of each list of packages, the list
those of each package. AMD's packages bring ROCm alone; the C library and what else they need are Debian's,
out of the list of this rpl. A runtime appears only when each library in it finds what it needs there.
"""

from __future__ import annotations

import gzip
import re
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.text import counted
from rpl_emu.runtime_packages import (
    LIBRARIES,
    TIMEOUT_S,
    Origin,
    Package,
    Told,
    debian,
    default_packages,
    download,
    download_one,
    folder_of,
    locked_cache,
    touched,
    unpack,
)

#: Each alone, without what it asks for: hipcc, which HIP asked for in 6.1, brings a compiler of gigabytes,
#: and what a library needs is looked at in the library.
_WANTED = ("hsa-rocr", "hip-runtime-amd", "comgr")
_IF_THERE = (
    "rocprofiler-register",
    "rocm-core",
    "hsakmt-roct",
    "hsa-rocr-dev",
    "hip-dev",
    "rocm-device-libs",
)
#: What of Debian's list AMD's packages stand for.
_REPLACED = re.compile(r"libhsa-|libamdhip64-|libamd-comgr|rocm-device-libs-|libclang-common-")
#: AMD's own (ROCm 7) are 4 KB and 1 MB.
_LARGEST_RELEASE_BYTES, _LARGEST_LIST_BYTES, _LARGEST_PACKED_LIST_BYTES = 4 << 20, 256 << 20, 64 << 20
#: HIP, ROCr and comgr of ROCm 7 are some 0.2 GB.
_LARGEST_PACKAGE_BYTES = 2 << 30
_LIST = re.compile(
    r"^ ([0-9a-f]{64}) +([0-9]{1,12}) +([\w.+-]+/binary-amd64/Packages(?:\.gz)?)$", re.ASCII | re.MULTILINE
)
_FIELD = re.compile(r"^(Package|Version|Filename|Size|SHA256): *(.*)$", re.MULTILINE)
#: A path that stays below the index, and no other address.
_PATH = re.compile(r"(?!.*(?:^|/)\.\.?/)\w[\w.+~%/-]*\.deb", re.ASCII)
#: The first two by name; HIP loads comgr when it is asked to compile.
_ROOTS = ("libamdhip64.so.*[0-9]", "libhsa-runtime64.so.1", "libamd_comgr.so.*[0-9]")


def of_index(address: str, mirror: str | None, told: Told) -> Path:
    """The folder of what the index holds now, fetched where it is not there. ``mirror``: of Debian.

    Raises UsageError, MissingError, BadDataError.
    """
    root, _, suite = address.rstrip("/").partition("/dists/")
    try:
        parts = urlsplit(root)
    except ValueError:  # of brackets
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or not suite:
        raise UsageError(
            f"{address!r} is no address of an index of packages",
            next_step="--index https://HOST/PATH/dists/SUITE for apt's `deb https://HOST/PATH SUITE main`",
        )
    if "@" in parts.netloc:  # nothing here hands names and passwords over, and lines would print them
        raise UsageError(
            "the address of an index holds a name or a password, which rpl does not hand over",
            next_step="an index that is read without, such as a mirror on this machine",
        )
    amd = Origin(
        [root],
        parts.netloc,
        "its index",
        "the address of an index of AMD's packages that is reached from here",
    )
    base, date = default_packages()
    debians = [one for one in base if not _REPLACED.match(one.name)]
    with locked_cache(mirror) as cache, tempfile.TemporaryDirectory(dir=cache) as kept:
        packages = _chosen(_packages(amd, suite, Path(kept), told), address)
        versions = [(one.name, one.version) for one in (*packages, *debians)]
        # Two indices may call different files the same version.
        folder = folder_of(cache, "amd-hip", [*versions, *((one.sha256, "") for one in packages)])
        if not folder.is_dir():
            if parts.scheme == "http":
                told.note(f"nothing says that {root} is who it seems to be: it is asked without TLS")
            archives = []
            for name, wanted, origin in (("amd", packages, amd), ("debian", debians, debian(mirror, date))):
                place = Path(kept, name)
                place.mkdir()
                archives += download(wanted, origin, place, told)
            unpack(archives, folder, versions, _finish)
    hip, rocr = (_one(folder / LIBRARIES, pattern) for pattern in _ROOTS[:2])
    version = next(one.version for one in packages if one.name == "hip-runtime-amd")
    told.note(f"HIP {version} ({_soname(hip)}) and ROCr ({_soname(rocr)}) of {address}")
    return touched(folder)


def _packages(amd: Origin, suite: str, folder: Path, told: Told) -> Iterator[dict[str, str]]:
    """The fields of each package of each component of the suite."""
    import http.client
    import urllib.request

    address = f"{amd.mirrors[0]}/dists/{suite}/Release"
    told.step(address)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310 - http(s), see of_index
            release, sender = answer.read(_LARGEST_RELEASE_BYTES + 1), answer.geturl()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise MissingError(f"{address} can't be had ({error})", next_step=amd.remedy) from error
    if address.lower().startswith("https:") and not sender.lower().startswith("https:"):
        raise MissingError(f"{address} leads to {sender}, which is asked without TLS", next_step=amd.remedy)
    section = re.search(r"^SHA256:\n((?: .*\n?)+)", release.decode("utf-8", "replace"), re.MULTILINE)
    lists = {path: (digest, int(size)) for digest, size, path in _LIST.findall(section[1] if section else "")}
    packed = [path for path in lists if path.endswith(".gz") or f"{path}.gz" not in lists]
    if not packed or len(release) > _LARGEST_RELEASE_BYTES:
        raise BadDataError(
            f"{address} names no list of packages for amd64 with its SHA-256", next_step=amd.remedy
        )
    total = sum(lists[path][1] for path in packed)
    if total > _LARGEST_PACKED_LIST_BYTES:
        raise BadDataError(
            f"its lists have {counted(total, 'byte')}, as {address} says: none of AMD's has so many"
        )
    for number, path in enumerate(packed):
        digest, size = lists[path]
        target = folder / f"{number}.list"
        download_one(Package(path, "", f"dists/{suite}/{path}", size, digest), amd, list(amd.mirrors), target)
        for paragraph in _text(target, packed=path.endswith(".gz")).split("\n\n"):
            yield dict(_FIELD.findall(paragraph))


def _text(path: Path, *, packed: bool) -> str:
    try:
        with gzip.open(path) if packed else path.open("rb") as stream:
            data = stream.read(_LARGEST_LIST_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise BadDataError(f"the list of packages is damaged: {error}") from error
    if len(data) > _LARGEST_LIST_BYTES:
        raise BadDataError(f"the list of packages unfolds to more than {_LARGEST_LIST_BYTES >> 20} MiB")
    return data.decode("utf-8", "replace")


def _chosen(found: Iterator[dict[str, str]], address: str) -> list[Package]:
    """Of each name that is wanted the newest."""
    newest: dict[str, tuple[list[int], Package]] = {}
    for fields in found:
        name = fields.get("Package", "")
        if name not in _WANTED and name not in _IF_THERE:
            continue
        version, path, digest = (fields.get(key, "").strip() for key in ("Version", "Filename", "SHA256"))
        path, size = path.removeprefix("./"), fields.get("Size", "").strip()
        sound = (
            _PATH.fullmatch(path)
            and re.fullmatch(r"[0-9a-f]{64}", digest)
            and re.fullmatch(r"[\w.+:~-]{1,100}", version, re.ASCII)
            and re.fullmatch(r"[0-9]{1,12}", size)
        )
        if not sound or not 0 < int(size) <= _LARGEST_PACKAGE_BYTES:
            raise BadDataError(f"the index {address} has no sound file, size or SHA-256 of {name}")
        order = [int(number) for number in re.findall("[0-9]+", version)]
        if name not in newest or newest[name][0] < order:
            newest[name] = order, Package(name, version, path, int(size), digest)
    if absent := [name for name in _WANTED if name not in newest]:
        raise MissingError(
            f"the index {address} has no package {absent[0]} for amd64",
            next_step="the address of a release, such as .../rocm/apt/7.0/dists/noble",
        )
    return [newest[name][1] for name in (*_WANTED, *_IF_THERE) if name in newest]


def _finish(root: Path) -> None:
    """Links from where libraries are looked for to AMD's, which lie in ``opt``. Raises MissingError where one
    of them needs what is not there.
    """
    place = root / LIBRARIES
    place.mkdir(parents=True, exist_ok=True)
    for library in sorted(root.glob("opt/rocm*/lib/*.so*")):
        link = place / library.name
        if not link.exists() and library.is_file():
            link.symlink_to(Path(*[".."] * len(Path(LIBRARIES).parts)) / library.relative_to(root))
    waiting = [_one(place, pattern) for pattern in _ROOTS]
    seen = {library.name for library in waiting}
    while waiting:
        library = waiting.pop()
        for name in _dynamic(library, "DT_NEEDED"):
            if "/" in name or not (place / name).is_file():
                raise MissingError(
                    f"{library.name} needs {name}, which neither AMD's packages nor Debian's hold",
                    next_step="install AMD's packages with apt; `rpl emu run` finds them in /opt/rocm",
                )
            if name not in seen:
                seen.add(name)
                waiting.append(place / name)


def _one(place: Path, pattern: str) -> Path:
    found = sorted(place.glob(pattern), key=lambda path: len(path.name))
    if not found:
        raise MissingError(f"AMD's packages hold no {pattern.replace('*[0-9]', 'N')}")
    return found[0]


def _soname(library: Path) -> str:
    return next(iter(_dynamic(library, "DT_SONAME")), library.name)


def _dynamic(library: Path, kind: str) -> list[str]:
    """The names of one kind in a library's dynamic section. Raises BadDataError."""
    from elftools.common.exceptions import ELFError
    from elftools.construct import ConstructError
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile

    try:
        with library.open("rb") as file:
            segments = ELFFile(file).iter_segments()
            (dynamic,) = (one for one in segments if isinstance(one, DynamicSegment))
            tags = (tag for tag in dynamic.iter_tags() if tag.entry.d_tag == kind)
            return [getattr(tag, "needed" if kind == "DT_NEEDED" else "soname") for tag in tags]
    except (ELFError, ConstructError, ValueError, AttributeError, AssertionError, OSError) as error:
        why = str(error) or type(error).__name__
        raise BadDataError(f"{library.name} is no library that can be read: {why}") from error
