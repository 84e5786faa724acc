"""``rpl schema``: the JSON schemas of documents, generated from their models with the sections of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_core.interfaces.document import DocumentContract, DocumentSection

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@click.command("schema")
@click.argument("name", required=False)
@click.pass_context
def schema(context: click.Context, name: str | None) -> None:
    """Print the JSON schema of document NAME, or the names when none is given.

    Example: rpl schema profile > profile.schema.json
    """
    from rpl_core.documents.make import sections_of
    from rpl_core.errors import PluginError, UsageError
    from rpl_core.interfaces.document import DocumentContract
    from rpl_core.plugins.boundary import plugin_boundary

    session = session_of(context)
    offered = session.host.catalog.documents().contributions
    contracts = {c.value.name: c.value for c in offered if isinstance(c.value, DocumentContract)}
    if name is None:
        for known in sorted(contracts):
            session.output.line(known)
        return
    stem = name.removesuffix(".json")
    if stem not in contracts:
        raise UsageError(
            f"no document is called {name!r}", next_step=f"choose from {', '.join(sorted(contracts))}"
        )
    with plugin_boundary(session.host.catalog.documents().plugin_of(stem), f"the schema of {stem!r}"):
        whole = json_schema(contracts[stem])
    for section in sections_of(offered):
        try:
            with plugin_boundary(section.plugin, f"the schema of the section {section.value.name!r}"):
                if section.value.document == stem:
                    _insert(whole, contracts[stem], section.value)
        except PluginError as error:  # costs only its own part
            session.output.note(f"warning: {error.one_line()}")
    session.output.json(whole)


def json_schema(contract: DocumentContract, sections: Iterable[DocumentSection] = ()) -> dict[str, Any]:
    """JSON schema (draft 2020-12) of the file of ``contract`` as it is written.

    ``sections`` are those that the installed plugins add to it.
    """
    from rpl_core.interfaces.document import DocumentKind

    schema = {"$schema": _DIALECT, **contract.model().model_json_schema(mode="serialization")}
    if isinstance(contract, DocumentKind):
        for section in sections:
            _insert(schema, contract, section)
    return schema


def _insert(schema: dict[str, Any], kind: Any, section: DocumentSection) -> None:
    """Replace the free-form objects at the section's places by its schema, or add it to ``sections``."""
    generated = section.model().model_json_schema(mode="serialization")
    definitions = {**schema.get("$defs", {}), **generated.pop("$defs", {})}
    if "$ref" in generated:  # a model that refers to itself
        reference = {"$ref": generated["$ref"]}
    else:
        name = section.model().__name__
        definitions[name] = generated
        reference = {"$ref": f"#/$defs/{name}"}
    schema["$defs"] = dict(sorted(definitions.items()))
    places = kind.places_of(schema, section.field)
    for place in places:
        _refer(place, reference)
    if not places:
        schema["properties"]["sections"].setdefault("properties", {})[section.field] = reference


def _refer(place: dict[str, Any], reference: dict[str, str]) -> None:
    """Put ``reference`` where ``place`` allows any object, alone or as items of a list."""
    if "anyOf" in place:
        place["anyOf"] = [reference if one.get("type") == "object" else one for one in place["anyOf"]]
        place.pop("title", None)  # the definition has its own
    elif "items" in place:
        place["items"] = reference
