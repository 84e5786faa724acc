"""One capture as a value: opened, its parts in agreement with each other, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_vmreplay.capture.files import (
    CODE_OBJECT,
    DISPATCH,
    KERNARG,
    KERNCAP_COMPLETE,
    KERNCAP_METADATA,
    REGIONS,
    VARIABLES,
    Dispatch,
    Region,
    Regions,
    Variable,
    Variables,
    read_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ELF_MAGIC = b"\x7fELF"


@frozen
class Capture:
    """What a capture folder says. The bytes of regions stay on disk."""

    folder: Path
    #: Which tool's layout it is: ``rocm-perf-lab`` or ``kerncap``.
    layout: str
    dispatch: Dispatch
    regions: tuple[Region, ...]
    variables: tuple[Variable, ...]
    #: Whether the tool says that it finished; None: its layout can't say.
    complete: bool | None

    @property
    def bytes(self) -> int:
        return sum(region.size for region in self.regions)

    def path_of(self, region: Region) -> Path:
        return self.folder / region.file_name


def open_capture(folder: Path) -> Capture:
    """The capture in ``folder``, without reading the memory.

    Raises MissingError for what is no capture and BadDataError for one that contradicts itself.
    """
    dispatch = read_json(folder, DISPATCH, Dispatch)
    regions = _without_repetitions(read_json(folder, REGIONS, Regions).regions, folder)
    has_variables = (folder / VARIABLES).exists()
    variables = read_json(folder, VARIABLES, Variables).variables if has_variables else ()
    kerncap = (folder / KERNCAP_METADATA).exists() or (folder / KERNCAP_COMPLETE).exists()
    return Capture(
        folder=folder,
        layout="kerncap" if kerncap else "rocm-perf-lab",
        dispatch=dispatch,
        regions=regions,
        variables=variables,
        complete=(folder / KERNCAP_COMPLETE).exists() if kerncap else None,
    )


def _without_repetitions(regions: tuple[Region, ...], folder: Path) -> tuple[Region, ...]:
    """By address. kerncap lists a reservation and the mapping that fills it: the same bytes, twice."""
    found: list[Region] = []
    for region in sorted(regions, key=lambda one: (one.base, one.size)):
        if found and (found[-1].base, found[-1].size) == (region.base, region.size):
            continue
        if found and region.base < found[-1].end:
            raise BadDataError(
                f"{folder / REGIONS}: the regions at 0x{found[-1].base:x} and 0x{region.base:x} overlap",
                cause="the list was changed, or memory was freed and allocated anew while it was written",
            )
        found.append(region)
    return tuple(found)


def problems_of(capture: Capture) -> Iterator[str]:
    """Every reason why the capture can't be replayed as it is, from the sizes and kinds of its files."""
    if capture.complete is False:
        yield "the capture was cut short: the tool did not say that it finished"
    yield from _file_problems(capture.folder, KERNARG, capture.dispatch.kernarg_size)
    yield from _code_object_problems(capture.folder)
    for region in capture.regions:
        yield from _file_problems(capture.folder, region.file_name, region.size)
    for variable in capture.variables:
        yield from _file_problems(capture.folder, variable.blob, variable.size)
    if 0 in capture.dispatch.grid or 0 in capture.dispatch.block:
        yield f"{DISPATCH}: a launch of no work-items"


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
