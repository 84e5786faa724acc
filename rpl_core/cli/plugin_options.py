"""Options that plugins add to commands: on the command line, in its help, and resolved to values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.interfaces.options import CommandOption, Options

__all__ = ["PluginOptionsCommand", "option_values", "plugin_options"]


class PluginOptionsCommand(click.Command):
    """A command that also takes the options which plugins declare for its name."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        taken = {word for param in own for word in (*param.opts, *param.secondary_opts)}
        names = {word.removeprefix("--") for word in taken}
        offered = session_of(ctx).plugin_overview.catalog.options(self.name, taken=names)
        added = [_click_option(option) for option in offered]
        last = [param for param in own if param.name == "help"]
        return [*(param for param in own if param not in last), *added, *last]


def _click_option(option: CommandOption[Any]) -> click.Option:
    """As click knows it. Unset is ``None``, so that settings and recorded values can take its place."""
    from rpl_core.interfaces.options import OptionForm

    names = [f"--{option.name}", option.key]
    if option.form is OptionForm.SWITCH:
        return click.Option(
            [f"--{option.name}/--no-{option.name}", option.key], default=None, help=option.help
        )
    if option.form is OptionForm.FLAG:
        return click.Option(names, is_flag=True, default=None, help=option.help)
    several = option.form is OptionForm.REPEATED
    return click.Option(names, multiple=several, metavar=option.metavar, help=option.help)


def plugin_options(session: Session, command: str) -> tuple[CommandOption[Any], ...]:
    """The options that plugins declare for ``command``."""
    return session.plugin_overview.catalog.options(command)


def option_values(
    session: Session, command: str, flags: Mapping[str, Any], recorded: Mapping[str, Any] | None = None
) -> Options:
    """Values from flags, environment and file; then what a run was ``recorded`` with, then the default.

    Raises ``UsageError`` naming the origin of a value that can't be.
    """
    from rpl_core.interfaces.options import Options

    values = {}
    for option in plugin_options(session, command):
        value, origin = _resolved(session, option, flags.get(option.key))
        if origin == "default" and option.recorded and option.key in (recorded or {}):
            value = (recorded or {})[option.key]
        values[option.name] = value
    return Options(values)


def _resolved(session: Session, option: CommandOption[Any], flag: Any) -> tuple[Any, str]:
    from rpl_core.config.settings import parsed
    from rpl_core.interfaces.options import OptionForm

    if option.form is OptionForm.REPEATED:
        values = tuple(parsed(option.parse, value, "flag", option.name) for value in flag or ())
        return values or option.default, "flag" if values else "default"
    if option.setting:
        resolved = session.full_configuration.resolve(option.name, flag)
        return resolved.value, resolved.origin
    if flag is None:
        return option.default, "default"
    return parsed(option.parse, flag, "flag", option.name), "flag"
