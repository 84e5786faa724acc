"""Derive the shape of a document's contract, which its plugin keeps beside the model as JSON.

A shape is what pydantic's validator is built from without making the models, which would cost an analysis
process more than analysing 100 000 dispatches. Each is tested to be the one that the model gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["document_shape"]

#: Members of a core schema that say what is accepted; names of things and other metadata are left out.
_LIMITS = ("ge", "le", "gt", "lt", "pattern", "min_length", "max_length")


def document_shape(model: type[BaseModel]) -> dict[str, Any]:
    """A core schema (pydantic-core) of a mapping with the fields of ``model``."""
    definitions: dict[str, Any] = {}
    root = _Shapes(model, definitions).root()
    return {"type": "definitions", "schema": root, "definitions": list(definitions.values())}


class _Shapes:
    """Translates the core schema of one model; parts become definitions, so that each stands there once."""

    def __init__(self, model: type[BaseModel], definitions: dict[str, Any]) -> None:
        self._schema: Mapping[str, Any] = model.__pydantic_core_schema__
        self._named = {entry["ref"]: entry for entry in self._schema.get("definitions", ())}
        self._definitions = definitions

    def root(self) -> dict[str, Any]:
        return self._of(self._schema["schema"] if self._named else self._schema)

    def _of(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        kind = schema["type"]
        if kind == "definition-ref":
            return self._of(self._named[schema["schema_ref"]])
        if kind == "model":
            return self._part(schema)
        limits = {key: schema[key] for key in _LIMITS if key in schema}
        if kind == "float":
            return {"type": kind, "allow_inf_nan": False, **limits}
        if kind in ("str", "int", "bool", "any"):
            return {"type": kind, **limits}
        return self._compound(kind, schema) | limits

    def _compound(self, kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        if kind == "nullable":
            return {"type": kind, "schema": self._of(schema["schema"])}
        if kind == "literal":
            return {"type": kind, "expected": list(schema["expected"])}
        if kind == "default":
            return {"type": kind, "schema": self._of(schema["schema"]), **_default(schema)}
        if kind == "tuple":
            items = [self._of(item) for item in schema["items_schema"]]
            variadic = {key: schema[key] for key in ("variadic_item_index",) if key in schema}
            return {"type": kind, "items_schema": items, **variadic}
        if kind == "dict":
            parts = {key: self._of(schema[key]) for key in ("keys_schema", "values_schema") if key in schema}
            return {"type": kind, **parts}
        raise NotImplementedError(f"a contract uses {kind!r}, which its shape can't express")

    def _part(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A part as a mapping."""
        name = schema["cls"].__name__
        if name not in self._definitions:
            fields = {
                field: _field(self._of(entry["schema"]), required=entry["schema"]["type"] != "default")
                for field, entry in _fields(schema).items()
            }
            shape = {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "ref": name}
            self._definitions[name] = shape
        return {"type": "definition-ref", "schema_ref": name}


def _fields(model: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = model["schema"]["fields"]
    return found


def _field(schema: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    return {"type": "typed-dict-field", "schema": schema, "required": required}


def _default(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The default as JSON holds it: parts as mappings, tuples as arrays. pydantic-core copies them."""
    value = schema["default_factory"]() if "default_factory" in schema else schema["default"]
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    return {"default": list(value) if isinstance(value, tuple) else value}
