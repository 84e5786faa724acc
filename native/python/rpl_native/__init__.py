"""The compiled parts of rpl (ROCm Perf Lab): where they are. They are no Python modules."""

from __future__ import annotations

from pathlib import Path


def path_of(name: str) -> Path:
    """The file of that name, such as ``librpl_isolate.so``, whether or not this build has it.

    In a checkout, whose parts are built apart, it is the one of its folder ``build``.
    """
    here = Path(__file__).resolve().parent
    sources = here.parents[1]
    if (sources / "CMakeLists.txt").is_file():
        for built in (sources.parent / "build" / "native").glob(f"*/{name}"):
            return built
    return here / "lib" / name
