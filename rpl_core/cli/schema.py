"""``rpl schema``: the JSON schema of a document."""

from __future__ import annotations

import click

from rpl_core.cli.session import session_of


@click.command("schema")
@click.argument("name", required=False)
@click.pass_context
def schema(context: click.Context, name: str | None) -> None:
    """Print the JSON schema of document NAME, or the names when none is given.

    Example: rpl schema profile > profile.schema.json
    """
    from rpl_core.contracts.schema import json_schema
    from rpl_core.documents.make import sections_of
    from rpl_core.errors import UsageError
    from rpl_core.interfaces.document import DocumentContract

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
    sections = (c.value for c in sections_of(offered) if c.value.document == stem)
    session.output.json(json_schema(contracts[stem], sections))
