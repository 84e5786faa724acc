"""``rpl config show``: every setting, its value and where the value came from."""

from __future__ import annotations

from pathlib import Path

import click

from rpl_core.cli.session import Session, session_of


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
    from rpl_core.config.settings import settings_of
    from rpl_core.config.trust import trust as remember
    from rpl_core.process.storage import storage_error

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
