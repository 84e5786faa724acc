"""Read the four documents of a run directory back; they may come from anywhere, so they are checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rpl_core.contracts.schema import document_model
from rpl_core.contracts.version import SCHEMA_MAJOR
from rpl_core.documents.bundle import Documents
from rpl_core.errors import BadDataError, MissingError

if TYPE_CHECKING:
    from rpl_core.contracts.common import Document

_NAMES = ("profile", "roofline", "dag", "analysis")
_MAX_DOCUMENT_BYTES = 256 << 20


def load_documents(directory: Path) -> Documents:
    """The documents of a run. Raises ``MissingError`` without them, ``BadDataError`` for broken ones."""
    loaded: dict[str, Any] = {name: load_document(directory, name) for name in _NAMES}
    return Documents(**loaded)


def load_document(directory: Path, name: str) -> Document:
    path = directory / f"{name}.json"
    if not path.is_file():
        raise _missing(directory, name)
    if path.stat().st_size > _MAX_DOCUMENT_BYTES:
        raise BadDataError(f"{path} is larger than 256 MiB: not a document that rpl writes")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadDataError(f"{path} is not valid JSON: {error}", next_step="analyse the run again") from None
    _require_known_version(path, content)
    try:
        document: Any = document_model(name).model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadDataError(
            f"{path} does not follow its schema: {place}: {first['msg']}", next_step="analyse the run again"
        ) from None
    return document  # type: ignore[no-any-return]


def _missing(directory: Path, name: str) -> MissingError:
    if not directory.is_dir():
        return MissingError(
            f"there is no run at {directory}", next_step="name another one, or record one with `rpl profile`"
        )
    if (directory / "optimize.json").is_file():
        return MissingError(
            f"{directory} holds an optimization, not a run",
            next_step=f"see it with `rpl ledger show {directory}`; "
            f"the runs that it measured are below, such as {directory / 'baselines' / '001' / 'profile'}",
        )
    return MissingError(
        f"{directory} holds no {name}.json",
        cause="it is no run directory, or the run was interrupted before its analysis",
        next_step=f"run `rpl analyze {directory}`",
    )


def _require_known_version(path: Path, content: object) -> None:
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(version, str) or version.split(".")[0] != SCHEMA_MAJOR:
        raise BadDataError(
            f"{path} has schema version {version!r}; this rpl reads {SCHEMA_MAJOR}.x",
            next_step="use the rpl that wrote it, or analyse the run again",
        )
