"""What every command shares: configuration, output and the plugin host, each made on first use."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_core.config.settings import Configuration
    from rpl_core.plugins.host import PluginHost
    from rpl_core.plugins.selection import PluginSelection


class Session:
    """State of one invocation. ``plugin_modules`` are plugins under development (``-p``).

    A plain class: importing attrs would cost `rpl --help` a sixth of its time.
    """

    def __init__(
        self,
        *,
        plugin_modules: tuple[str, ...] = (),
        disabled_plugins: tuple[str, ...] = (),
        trace_plugins: bool = False,
        config_file: str | None = None,
    ) -> None:
        self.plugin_modules = plugin_modules
        self.disabled_plugins = disabled_plugins
        self.trace_plugins = trace_plugins
        self.config_file = config_file

    @cached_property
    def configuration(self) -> Configuration:
        from rpl_core.config.settings import load_configuration

        return load_configuration(self.config_file)

    def tell_settings(self) -> None:
        """Say whose settings are in force before a program that they name is run to look at it."""
        if self.config_file is None and self.configuration.file is not None:
            programs = "" if self.configuration.distrust else " and names of programs"
            self.output.note(f"settings{programs} are those of {self.configuration.file}")

    @cached_property
    def full_configuration(self) -> Configuration:
        """With the settings of plugins; from here on a setting that nobody knows is an error."""
        host = self.plugin_overview
        return self.configuration.with_options(host.catalog.options(), host.settings)

    @cached_property
    def output(self) -> Output:
        from rpl_core.cli.output import Output

        return Output()

    @cached_property
    def host(self) -> PluginHost:
        """The plugin host. A plugin named with ``-p`` that did not load ends the command here."""
        self.plugin_overview.require_requested()
        _ = self.full_configuration
        return self.plugin_overview

    @cached_property
    def plugin_overview(self) -> PluginHost:
        """The same host for commands that only look at plugins, whatever became of them."""
        from rpl_core.plugins.host import create_host
        from rpl_core.plugins.selection import PluginSelection

        disabled = (*self.setting("plugins.disabled"), *self.disabled_plugins)
        selection = PluginSelection.from_environment(
            modules=self.plugin_modules, disabled=disabled, trace=self.trace_plugins
        )
        configuration = self.configuration
        host = create_host(selection, config=configuration.plugin_view(), doubtful=configuration.doubtful())
        self._refuse_unknown_names(selection, host)
        if configuration.distrust is not None:
            self._tell_ignored(host)
        return host

    def _tell_ignored(self, host: PluginHost) -> None:
        """One line about what a file of somebody else names without effect, and how to allow it."""
        configuration, file = self.configuration, self.configuration.file
        ignored = configuration.with_kinds(host.catalog.options(), host.settings).ignored()
        if ignored:
            from shlex import quote

            self.output.warning(
                f"{file} is not trusted, {configuration.distrust}, so what it names to be run or asked is "
                f"ignored: {', '.join(ignored)}. "
                f"Next: look at it, then `rpl config trust {quote(str(file))}`."
            )

    def _refuse_unknown_names(self, selection: PluginSelection, host: PluginHost) -> None:
        """A name on the command line that is no plugin is a typing error; one of the settings a warning."""
        from difflib import get_close_matches

        from rpl_core.errors import UsageError

        names = [name for record in host.records for name in (record.name, record.distribution) if name]
        for name in selection.unknown_names(host.records):
            if name in self.disabled_plugins:
                similar = get_close_matches(name, names, n=1)
                raise UsageError(
                    f"--disable-plugin names no plugin: {name[:80]!r}",
                    next_step=f"did you mean {similar[0]!r}?" if similar else "see `rpl plugins list`",
                )

    @property
    def latest_run(self) -> Path:
        """Where the newest run is, if there is one: what commands look at when no run is named."""
        return Path(self.setting("runs-directory")) / "latest"

    def setting(self, name: str, flag: Any = None) -> Any:
        """The value of a setting: flag > environment > file > default."""
        return self.configuration.value(name, flag)


def session_of(context: click.Context) -> Session:
    """The session of the running command."""
    session = context.find_object(Session)
    if session is None:  # a command called on its own, as tests do
        session = Session()
        context.obj = session
    return session
