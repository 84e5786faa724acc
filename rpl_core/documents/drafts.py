"""Documents while they are put together: plain mappings under the names of their contracts.

An analysis writes its documents from drafts and never makes the pydantic models, which would cost more than
analysing 100 000 dispatches. A draft is checked as strictly as its model would be (`check_drafts`), and
becomes the model when somebody looks at it (`rpl_core.documents.bundle`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rpl_core.contracts.common import Document

__all__ = ["Draft", "as_model", "check_drafts"]


class Draft(dict[str, Any]):
    """Fields by name, readable like those of a model as far as they were given."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the draft has no {name!r}") from None


def check_drafts(drafts: Mapping[str, Any]) -> Mapping[str, dict[str, Any]]:
    """The complete content of the four documents, defaults filled in, in the order of their fields.

    Raises pydantic's ``ValidationError`` where a draft does not follow its contract: a bug of rpl.
    """
    from pydantic_core import SchemaValidator

    from rpl_core.contracts.shape_table import read_shapes

    checked: Mapping[str, dict[str, Any]] = SchemaValidator(read_shapes()).validate_python(dict(drafts))
    return checked


def as_model(name: str, draft: Mapping[str, Any]) -> Document:
    """Document ``name`` as its model."""
    from rpl_core.contracts.schema import document_model

    model: Any = document_model(name).model_validate(draft)
    return model  # type: ignore[no-any-return]
