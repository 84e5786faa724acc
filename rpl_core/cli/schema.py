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
    from rpl_core.contracts.schema import DOCUMENT_NAMES, json_schema
    from rpl_core.errors import UsageError

    output = session_of(context).output
    if name is None:
        for known in DOCUMENT_NAMES:
            output.line(known)
        return
    stem = name.removesuffix(".json")
    if stem not in DOCUMENT_NAMES:
        raise UsageError(
            f"no document is called {name!r}", next_step=f"choose from {', '.join(DOCUMENT_NAMES)}"
        )
    output.json(json_schema(stem))
