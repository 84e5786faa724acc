"""The JSON files of a capture, checked where they enter: of the public tools, and of rpl's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import FailFast, Field, ValidationError

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import read_regular, refuse_countless
from rpl_vmreplay.capture.bounds import Name, Part, Positive, VariableFile
from rpl_vmreplay.capture.layout import HASH_BYTES
from rpl_vmreplay.capture.records import Extras

#: kerncap's own: variables of modules, its second description of the launch, and the file written last.
VARIABLES = "module_variables.json"
KERNCAP_METADATA = "metadata.json"
KERNCAP_COMPLETE = "capture_complete"

#: A region takes some 150 bytes of text: this is half a million of them.
LARGEST_JSON_BYTES = 64 << 20
#: The sentinel names five files.
LARGEST_SENTINEL_BYTES = 1 << 20


class Variable(Part):
    """One variable of a module, as kerncap keeps it."""

    name: Name
    size: Positive
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


def chunk_hash(content: bytes) -> bytes:
    """Of one chunk, as ``.xxh3`` files hold it."""
    import xxhash

    return int(xxhash.xxh3_64_intdigest(content)).to_bytes(HASH_BYTES, "little")


def doubts_of(extras: Extras) -> tuple[str, ...]:
    """Why a replay of the capture may do something else."""
    doubts = list(extras.warnings)
    if extras.drain.undrained:
        doubts.append("work on another queue may have gone on while the memory was read")
    if extras.host_writers:
        doubts.append("the program wrote to memory while it was captured")
    return tuple(doubts)
