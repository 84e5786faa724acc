"""Documents as readers of them expect: fields as attributes, without making the models.

Making the models costs more than a small analysis; to show what rpl itself has just checked they are not
needed. What is shown from a directory is read through the models (``rpl_core.documents.load``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["DocumentView"]


class DocumentView(dict[str, Any]):
    """The content of a document, or of a part: fields as attributes, parts below as views."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the document has no {name!r} here") from None

    def __getitem__(self, name: str) -> Any:
        return _viewed(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        return _viewed(super().get(name, default))

    def items(self) -> Any:
        return [(name, _viewed(value)) for name, value in super().items()]

    def values(self) -> Any:
        return [_viewed(value) for value in super().values()]


def _viewed(value: Any) -> Any:
    if type(value) is dict:
        return DocumentView(value)
    if isinstance(value, (tuple, list)):
        return tuple(_each(value))
    return value


def _each(values: tuple[Any, ...] | list[Any]) -> Iterator[Any]:
    return (_viewed(value) for value in values)
