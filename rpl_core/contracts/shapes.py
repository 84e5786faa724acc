"""Contracts of documents as data: what pydantic's validator is built from without making the models.

A shape is derived from its model (``rpl_testkit.document_shapes``) and kept beside it as JSON, because making
the models costs an analysis process more than analysing 100 000 dispatches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def shape_fields(shape: Mapping[str, Any]) -> frozenset[str]:
    """The names of the fields of a document of this shape."""
    name = shape["schema"]["schema_ref"]
    return frozenset(next(d["fields"] for d in shape["definitions"] if d["ref"] == name))
