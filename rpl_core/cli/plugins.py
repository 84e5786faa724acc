"""``rpl plugins``: what is installed, what it offers, and why something does not work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from rpl_core.plugins.host import PluginHost
    from rpl_core.plugins.kinds import ContributionKind
    from rpl_core.plugins.records import PluginRecord


_SHOWN = ("name", "status", "reason", "origin", "distribution", "version", "target", "api", "hooks")


@click.group("plugins", help="Show installed plugins, what they offer and why one does not work.")
def plugins_group() -> None:
    pass


@plugins_group.command("list", help="List every plugin with its status.\n\nExample: rpl plugins list --json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def list_plugins(context: click.Context, as_json: bool) -> None:
    session = session_of(context)
    records = session.plugin_overview.records
    if as_json:
        session.output.json({"plugins": [_row(record) for record in records]})
        return
    columns = ("NAME", "STATUS", "DISTRIBUTION", "VERSION", "HOOKS", "REASON")
    rows = [
        (
            record.name,
            record.status.value,
            record.distribution or f"({record.origin.value})",
            record.version or "-",
            str(len(record.hooks)),
            record.reason or "",
        )
        for record in records
    ]
    session.output.table(columns, rows)


@plugins_group.command(
    "info", help="Show all there is to know about plugin NAME.\n\nExample: rpl plugins info NAME --check"
)
@click.argument("name")
@click.option("--check", is_flag=True, help="End with exit code 1 if anything that it offers can't be used.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show_plugin(context: click.Context, name: str, check: bool, as_json: bool) -> int:
    from rpl_core.exit_codes import ExitCode

    session = session_of(context)
    host = session.plugin_overview
    documents = [_details(host, record) for record in host.record(name)]
    if as_json:
        session.output.json({"plugins": documents})
    else:
        for index, document in enumerate(documents):
            if index:
                session.output.line()
            for line in _lines(document):
                session.output.line(line)
    wrong = any(document["reason"] or document["problems"] for document in documents)
    return ExitCode.NEGATIVE_FINDING if check and wrong else ExitCode.OK


def _row(record: PluginRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _SHOWN}


def _details(host: PluginHost, record: PluginRecord) -> dict[str, Any]:
    from rpl_core.plugins.records import PluginStatus

    document = _row(record)
    document["traceback"] = record.traceback
    document["contributions"] = _contributions(host, record) if record.status is PluginStatus.LOADED else []
    document["problems"] = [d.fact for d in host.diagnostics if d.where == f"plugin {record.name}"]
    return document


def _contributions(host: PluginHost, record: PluginRecord) -> list[dict[str, str]]:
    return [
        {"hook": k.hook, "kind": k.title, "name": k.identity_of(item), "summary": _summary(k, item)}
        for k, item in host.relay.contributions_of(record.name)
    ]


def _summary(kind: ContributionKind[Any], item: Any) -> str:
    texts = (getattr(item, attribute, None) for attribute in ("product", *kind.required_text))
    return next((text for text in texts if isinstance(text, str)), "")


def _lines(document: dict[str, Any]) -> list[str]:
    lines = [f"{document['name']}: {document['status'].value}"]
    if document["reason"]:
        lines.append(f"  reason        {document['reason']}")
    lines += [
        f"  distribution  {document['distribution'] or '-'} {document['version'] or ''}".rstrip(),
        f"  module        {document['target']}",
        f"  origin        {document['origin'].value}",
        f"  RPL_API       {document['api'] if document['api'] is not None else '-'}",
        f"  hooks         {', '.join(document['hooks']) or '-'}",
    ]
    lines += [f"  offers        {c['kind']} {c['name']}: {c['summary']}" for c in document["contributions"]]
    lines += [f"  problem       {fact}" for fact in document["problems"]]
    if document["traceback"]:
        lines += ["  traceback"] + [f"    {line}" for line in document["traceback"].splitlines()]
    return lines
