"""``rpl config show``: every setting, its value and where the value came from."""

from __future__ import annotations

import click

from rpl_core.cli.session import Session, session_of


@click.group("config")
def config_group() -> None:
    """Show settings and where they come from.

    A flag wins over an environment variable, that over the configuration file (rpl.toml, or [tool.rpl] in
    pyproject.toml, in this folder or one above), that over the default.
    """


@config_group.command("show")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show(context: click.Context, as_json: bool) -> None:
    """Print value and origin of every setting."""
    session: Session = session_of(context)
    configuration = session.full_configuration
    resolved = configuration.all()
    if as_json:
        session.output.json({r.name: {"value": r.value, "origin": r.origin} for r in resolved})
        return
    meanings = {setting.name: setting.meaning for setting in configuration.settings}
    rows = [(r.name, _shown(r.value), r.origin, meanings[r.name]) for r in resolved]
    session.output.table(("setting", "value", "origin", "meaning"), rows)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value) or "-"
    return str(value)
