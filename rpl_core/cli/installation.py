"""This installation: ``rpl doctor``, ``plugins``, ``config`` and ``schema``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import Session, session_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport
    from rpl_core.interfaces.document import DocumentContract, DocumentSection
    from rpl_core.plugins.catalog import ContributionKind
    from rpl_core.plugins.discovery import PluginRecord
    from rpl_core.plugins.host import Contribution, PluginHost

# ``rpl doctor``: what is installed, what is missing, what to do.


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> int:
    """Look at the installation and name the remedy for everything that is missing.

    Exit code 0 when all is well, 69 when something is missing or broken: what it is needed for is shown.

    Example: rpl doctor --json
    """
    from rpl_core.errors import ExitCode
    from rpl_core.interfaces.doctor import DoctorStatus

    session = session_of(context)
    session.tell_settings()
    reports = [(c.value.name, _run(c)) for c in session.host.catalog.doctor_checks().contributions]
    reports += [("settings", report) for report in _settings(session)]
    if as_json:
        session.output.json({name: _report_fields(report) for name, report in reports})
    else:
        rows = [(name, report.status.value, report.fact) for name, report in reports]
        session.output.table(("check", "status", "found"), rows)
        for name, report in reports:
            if report.status is not DoctorStatus.OK:
                session.output.note(_advice(name, report))
    healthy = all(report.status is DoctorStatus.OK for _, report in reports)
    return int(ExitCode.OK if healthy else ExitCode.MISSING)


def _settings(session: Session) -> Iterator[DoctorReport]:
    """Which file is in force, and each program, endpoint and plugin that it names."""
    from rpl_core.interfaces.doctor import DoctorReport, DoctorStatus

    configuration = session.full_configuration
    if configuration.file is None:
        return
    named = [f"{name} = {value!r}" for name, value in configuration.naming().items()]
    ignored = configuration.ignored()
    fact = f"{configuration.file}" + (f" names {', '.join(named)}" if named else "")
    if ignored:
        fact += f" is not trusted, {configuration.distrust}; ignored: {', '.join(ignored)}"
    yield DoctorReport(DoctorStatus.OK, fact)


def _run(offered: Contribution[DoctorCheck]) -> DoctorReport:
    """The check's report; one that breaks shows as broken."""
    from rpl_core.errors import RplError
    from rpl_core.interfaces.doctor import DoctorReport, DoctorStatus
    from rpl_core.model.value_checks import require_value
    from rpl_core.plugins.boundary import plugin_boundary

    try:
        with plugin_boundary(offered.plugin, f"the check {offered.value.name!r}"):
            return require_value(offered.value.check(), DoctorReport)
    except RplError as error:
        return DoctorReport(DoctorStatus.BROKEN, error.fact, remedy=error.next_step)


def _report_fields(report: DoctorReport) -> dict[str, str | None]:
    told = {"status": report.status.value, "found": report.fact}
    return {**told, "needed_for": report.needed_for or None, "remedy": report.remedy}


def _advice(name: str, report: DoctorReport) -> str:
    needed = f" Needed for: {report.needed_for}." if report.needed_for else ""
    remedy = f" Next: {report.remedy}." if report.remedy else ""
    return f"{name}: {report.status.value}.{needed}{remedy}"


# ``rpl plugins``: what is installed, what it offers, and why something does not work.

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
    from rpl_core.errors import ExitCode

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
    from rpl_core.plugins.discovery import PluginStatus

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


# ``rpl config show``: every setting, its value and where the value came from.


@click.group("config")
def config_group() -> None:
    """Show settings and where they come from.

    A flag wins over an environment variable, that over the configuration file (rpl.toml, or [tool.rpl] in
    pyproject.toml, in this folder or one above), that over the default. Of a file that somebody else may have
    written, what it names to be run or asked (programs, endpoints, plugins) is ignored until it is trusted.
    """


@config_group.command("show")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show(context: click.Context, as_json: bool) -> None:
    """Print value and origin of every setting.

    Example: rpl config show --json
    """
    session: Session = session_of(context)
    configuration = session.full_configuration
    resolved = configuration.all()
    if as_json:
        session.output.json({r.name: {"value": r.value, "origin": r.origin} for r in resolved})
        return
    meanings = {setting.name: setting.meaning for setting in configuration.settings}
    rows = [(r.name, _shown(r.value), r.origin, meanings[r.name]) for r in resolved]
    session.output.table(("setting", "value", "origin", "meaning"), rows)


@config_group.command("trust")
@click.argument("path", type=click.Path(path_type=Path))
@click.pass_context
def trust(context: click.Context, path: Path) -> None:
    """Let the settings file PATH name programs, endpoints and plugins, whoever owns it.

    Its settings are shown. It is trusted as it is now: another content, or another place, is not.
    """
    from rpl_core.config import settings_of
    from rpl_core.config import trust as remember
    from rpl_core.files import storage_error

    content, settings = settings_of(path)
    try:
        record = remember(path, content)
    except OSError as error:
        raise storage_error(Path(error.filename or path), error) from error
    output = session_of(context).output
    output.line(f"{path} is trusted with its present content; delete {record} to take that back")
    for name, value in sorted(settings.items()):
        output.line(f"  {name} = {value!r}")


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value) or "-"
    return str(value)


# ``rpl schema``: the JSON schemas of documents, generated from their models with the sections of plugins.


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@click.command("schema")
@click.argument("name", required=False)
@click.pass_context
def schema(context: click.Context, name: str | None) -> None:
    """Print the JSON schema of document NAME, or the names when none is given.

    Example: rpl schema profile > profile.schema.json
    """
    from rpl_core.documents import sections_of
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
        place["anyOf"] = [
            reference if alternative.get("type") == "object" else alternative
            for alternative in place["anyOf"]
        ]
        place.pop("title", None)  # the definition has its own
    elif "items" in place:
        place["items"] = reference
