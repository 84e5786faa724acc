"""Raw ``.att`` files and what their names say: agent handle, dispatch id and shader engine."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpl_att.reading.folder import TraceFolder

_NAME = re.compile(r"(?P<process>(?:.*_)?)(?P<agent>\d+)_shader_engine_(?P<se>\d+)_(?P<dispatch>\d+)\.att")
#: rocprofv2 names the kernel and the shader engine only.
_ROCPROFV2_NAME = re.compile(r".+_se\d+\.att")
_MAX_LISTED = 20_000
_MOST_TABLE_BYTES = 1 << 20
_ARCHITECTURE = re.compile(r"gfx[0-9a-f]{3,6}")


def is_raw_file(name: str) -> bool:
    plain = name.removesuffix(".gz")
    return (_NAME.fullmatch(plain) or _ROCPROFV2_NAME.fullmatch(plain)) is not None


def raw_files_of(folder: TraceFolder) -> tuple[Path, ...]:
    """Files of the folder's dispatch beside it, or one directory below (``%hostname%/%pid%``), sorted."""
    if folder.dispatch_id is None:
        return ()
    parent = folder.path.resolve().parent
    wanted = (folder.agent_handle, folder.dispatch_id)
    return tuple(path for path in files_beside(parent) if raw_identity(path.name) == wanted)


def files_beside(parent: Path) -> tuple[Path, ...]:
    """Regular files in ``parent`` and one level below, decoded folders excepted; links are not followed."""
    paths: list[Path] = []
    for entry in _listed(parent):
        if entry.is_file():
            paths.append(entry)
        elif entry.is_dir() and "ui_output" not in entry.name:
            paths += [below for below in _listed(entry) if below.is_file()]
    return tuple(sorted(paths))


def files_in(folder: Path) -> tuple[Path, ...]:
    """Regular files right in ``folder``, sorted; links are not followed."""
    return tuple(entry for entry in _listed(folder) if entry.is_file())


def _listed(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())[:_MAX_LISTED]
    except OSError:
        return []
    return [entry for entry in entries if not entry.is_symlink()]


def raw_identity(name: str) -> tuple[int, int] | None:
    """Agent handle and dispatch id in the name of a raw trace."""
    match = _NAME.fullmatch(name.removesuffix(".gz"))
    return None if match is None else (int(match["agent"]), int(match["dispatch"]))


def shader_engine(name: str) -> int:
    """The shader engine in the name of a raw trace of rocprofv3. Raises ``ValueError`` for another name."""
    return int(_parts(name)["se"])


def process_prefix(name: str) -> str:
    """What all files of the recording process begin with. Raises ``ValueError`` as ``shader_engine``."""
    return _parts(name)["process"]


def agents_beside(raw: Path) -> Path | None:
    """Where the table of agents of a raw trace's process lies, if there is one."""
    match = _NAME.fullmatch(raw.name.removesuffix(".gz"))
    return None if match is None else raw.with_name(f"{match['process']}agent_info.csv")


def recorded_architecture(raw_files: Sequence[Path]) -> str | None:
    """The GPU's name, such as "gfx950", in the table of agents that rocprofv3 writes beside raw traces.

    ``None`` without a table, and where it names GPUs of several architectures.
    """
    names: set[str] = set()
    for raw in raw_files:
        table = agents_beside(raw)
        if table is not None and table in _listed(raw.parent) and table.stat().st_size <= _MOST_TABLE_BYTES:
            rows = csv.DictReader(table.read_text(encoding="utf-8", errors="replace").splitlines())
            names |= {str(row.get("Name")) for row in rows if row.get("Agent_Type") == "GPU"}
            break  # files of one dispatch are files of one process
    named = names.pop() if len(names) == 1 else ""
    return named if _ARCHITECTURE.fullmatch(named) else None


def _parts(name: str) -> re.Match[str]:
    match = _NAME.fullmatch(name.removesuffix(".gz"))
    if match is None:
        raise ValueError(f"{name!r} is no raw trace of rocprofv3")
    return match
