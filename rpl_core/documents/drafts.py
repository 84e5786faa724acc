"""Documents while they are put together: plain mappings under the names of their contracts.

An analysis writes its documents from drafts and never makes the pydantic models, which would cost more than
analysing 100 000 dispatches. A draft is checked as strictly as its model would be (``check_draft``), and
becomes the model when somebody looks at it (``rpl_core.documents.bundle``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Draft", "check_draft"]


class Draft(dict[str, Any]):
    """Fields by name, readable like those of a model as far as they were given."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the draft has no {name!r}") from None


def check_draft(shape: Mapping[str, Any], draft: Mapping[str, Any]) -> dict[str, Any]:
    """The complete content of a document, defaults filled in, in the order of its fields.

    Raises pydantic's ``ValidationError`` where the draft does not follow its contract: a bug of its plugin.
    """
    from pydantic_core import SchemaValidator

    schema: Any = shape
    checked: dict[str, Any] = SchemaValidator(schema).validate_python(draft)
    return checked
