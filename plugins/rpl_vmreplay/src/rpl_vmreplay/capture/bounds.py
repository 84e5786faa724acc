"""What a capture may say at most: nothing in its files is trusted.

Sizes have bounds, and a file is only ever named by a region's address or by one word inside of its folder.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rpl_vmreplay.capture.layout import (
    BYTES_SUFFIX,
    MEMORY_FOLDER,
    REGION_PREFIX,
    SCHEMA_VERSION,
    VARIABLES_FOLDER,
)

ADDRESSES = 1 << 64
#: Headers of the runtime keep kernel arguments and names far below these.
LARGEST_KERNARG_BYTES = 1 << 20
LARGEST_COUNT = LONGEST_NAME = 1 << 16

Count = Annotated[int, Field(ge=0, lt=1 << 32)]
Address = Annotated[int, Field(ge=0, lt=ADDRESSES)]
Size = Annotated[int, Field(ge=0, lt=ADDRESSES)]
Positive = Annotated[int, Field(gt=0, lt=ADDRESSES)]
KernargSize = Annotated[int, Field(ge=0, le=LARGEST_KERNARG_BYTES)]
Triple = Annotated[tuple[Count, Count, Count], Field(strict=False)]
Name = Annotated[str, Field(max_length=LONGEST_NAME)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


def _in_its_folder(name: str) -> str:
    parts = PurePosixPath(name).parts
    if len(parts) != 2 or parts[0] != VARIABLES_FOLDER or parts[1] == "..":
        raise ValueError(f"its file is not in {VARIABLES_FOLDER}/")
    return name


VariableFile = Annotated[Name, AfterValidator(_in_its_folder)]


class Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Placed(Part):
    """Memory at an address; its bytes are in ``memory/region_<base in hexadecimal>.bin``."""

    base: Address
    size: Positive

    @property
    def end(self) -> int:
        return self.base + self.size

    @property
    def file_name(self) -> str:
        return f"{MEMORY_FOLDER}/{REGION_PREFIX}{self.base:x}{BYTES_SUFFIX}"

    @model_validator(mode="after")
    def _ends_in_the_address_space(self) -> Placed:
        if self.end > ADDRESSES:
            raise ValueError("the region ends behind the last address")
        return self


class Versioned(Part):
    """A document of a version that is told first, whatever else is wrong with it."""

    @model_validator(mode="before")
    @classmethod
    def _of_a_known_version(cls, data: Any) -> Any:
        version = data.get("schema_version") if isinstance(data, dict) else None
        major = SCHEMA_VERSION.partition(".")[0]
        if isinstance(version, str) and version.partition(".")[0] != major:
            raise ValueError(f"its schema version is {version[:20]}, and this rpl reads {major}.x")
        return data
