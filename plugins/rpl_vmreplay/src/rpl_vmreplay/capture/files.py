"""The JSON files of a capture, checked where they enter.

Two public tools write this layout: the first rocm-perf-lab (kalowery/rocm-perf-lab, isolate_tool.cpp) and
kerncap (AMDResearch/intellikit, kerncap.hip), which adds variables of modules and a file written at its end.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    ValidationError,
    model_validator,
)

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import read_regular, refuse_countless

if TYPE_CHECKING:
    from pathlib import Path

DISPATCH = "dispatch.json"
REGIONS = "memory_regions.json"
KERNARG = "kernarg.bin"
CODE_OBJECT = "kernel.hsaco"
#: kerncap's own: variables of modules, its second description of the launch, and the file written last.
VARIABLES = "module_variables.json"
VARIABLES_FOLDER = "module_variables"
KERNCAP_METADATA = "metadata.json"
KERNCAP_COMPLETE = "capture_complete"

#: A region takes some 150 bytes of text: this is half a million of them.
LARGEST_JSON_BYTES = 64 << 20
ADDRESSES = 1 << 64
#: Headers of the runtime keep kernel arguments and names far below these.
LARGEST_KERNARG_BYTES = 1 << 20
LONGEST_NAME = 1 << 16

Count = Annotated[int, Field(ge=0, lt=1 << 32)]
Address = Annotated[int, Field(ge=0, lt=ADDRESSES)]
Sizes = Annotated[tuple[Count, Count, Count], Field(strict=False)]
Name = Annotated[str, Field(max_length=LONGEST_NAME)]


class Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Dispatch(Part):
    """``dispatch.json``: the launch."""

    mangled_name: Name
    demangled_name: Name
    agent_name: Name
    isa_name: Name
    wavefront_size: Count
    #: Address of the descriptor in the captured process; kerncap doesn't tell it.
    kernel_object: Address | None = None
    grid: Sizes
    block: Sizes
    group_segment_size: Count
    private_segment_size: Count
    kernarg_size: Annotated[int, Field(ge=0, le=LARGEST_KERNARG_BYTES)]
    dispatch_index: Count


class Region(Part):
    """One entry of ``memory_regions.json``; its bytes are in ``memory/region_<base in hexadecimal>.bin``."""

    base: Address
    size: Annotated[int, Field(gt=0, lt=ADDRESSES)]
    is_pool: bool
    is_vmem: bool
    contains_kernarg: bool
    handle: Address = 0
    access: Count = 0

    @property
    def end(self) -> int:
        return self.base + self.size

    @property
    def file_name(self) -> str:
        return f"memory/region_{self.base:x}.bin"

    @model_validator(mode="after")
    def _ends_in_the_address_space(self) -> Region:
        if self.end > ADDRESSES:
            raise ValueError("the region ends behind the last address")
        return self


class Regions(Part):
    """``memory_regions.json``."""

    regions: Annotated[tuple[Region, ...], Field(strict=False), FailFast()]


def _in_its_folder(name: str) -> str:
    parts = PurePosixPath(name).parts
    if len(parts) != 2 or parts[0] != VARIABLES_FOLDER or parts[1] == "..":
        raise ValueError(f"its file is not in {VARIABLES_FOLDER}/")
    return name


VariableFile = Annotated[Name, AfterValidator(_in_its_folder)]


class Variable(Part):
    """One variable of a module, as kerncap keeps it."""

    name: Name
    size: Annotated[int, Field(gt=0, lt=ADDRESSES)]
    blob: VariableFile

    @property
    def file_name(self) -> str:
        return self.blob


class Variables(Part):
    """``module_variables.json``."""

    variables: Annotated[tuple[Variable, ...], Field(strict=False), FailFast()]


_Model = TypeVar("_Model", bound=Part)


def read_json(folder: Path, name: str, model: type[_Model], most: int = LARGEST_JSON_BYTES) -> _Model:
    """The file of that name, or the reason why it is refused."""
    path = folder / name
    if not path.exists():
        raise MissingError(
            f"{name} is not in {folder}",
            cause="no capture, or one that was cut short",
            next_step="name a folder that `rpl isolate` wrote",
        )
    require_plain(path)
    content = read_regular(path, most, links=False)
    refuse_countless(content, path)
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadDataError(f"{path} can't be used: {place + ': ' if place else ''}{first['msg']}") from None


def require_plain(path: Path) -> None:
    """A link could lead out of the capture, a pipe would never end."""
    if path.is_symlink() or not path.is_file():
        raise BadDataError(f"{path} is not a plain file")
