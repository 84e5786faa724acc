"""Where the profiler's own results say that each code object was loaded.

A trace without markers has absolute addresses; an address minus the load delta is the one in the ELF.
"""

from __future__ import annotations

from pathlib import Path

import ijson

from rpl_att.decoding.job import Load
from rpl_att.reading.raw_files import process_prefix
from rpl_core.errors import BadDataError

_OBJECTS = "rocprofiler-sdk-tool.item.code_objects.item"
_MAX_OBJECTS = 1_000_000


def read_loads(trace: Path) -> tuple[Load, ...]:
    """Loads in the results of the process that recorded ``trace``, which lie beside it; empty without.

    Raises ``BadDataError`` for results that can't be read: addresses must not be guessed.
    """
    path = trace.parent / f"{process_prefix(trace.name)}results.json"
    if path.is_symlink() or not path.is_file():
        return ()
    found = []
    with path.open("rb") as stream:
        try:
            for number, entry in enumerate(ijson.items(stream, _OBJECTS, use_float=True)):
                if number >= _MAX_OBJECTS:
                    raise BadDataError(f"{path.name} names more than {_MAX_OBJECTS} code objects")
                load = _load(entry)
                if load is not None:
                    found.append(load)
        except (ijson.JSONError, ValueError, RecursionError) as error:
            raise BadDataError(f"{path.name} is not valid JSON: {error}") from None
    return tuple(sorted(found))


def _load(entry: object) -> Load | None:
    """``None`` for an entry without the numbers. ``load_delta`` is the load base where it is not told:
    AMD's code objects are linked at address 0 (AMDGPUUsage, "Code Object").
    """
    if not isinstance(entry, dict):
        return None
    number, base, size = (entry.get(name) for name in ("code_object_id", "load_base", "load_size"))
    delta = entry.get("load_delta", base)
    if isinstance(number, int) and isinstance(base, int) and isinstance(size, int) and isinstance(delta, int):
        return Load(base, size, delta, number)
    return None
