"""What every command shares: configuration, output and plugin host, made on first use; documents shown."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_core.cli.output import Output
    from rpl_core.config import Configuration
    from rpl_core.contracts.common import DiagnosticDoc
    from rpl_core.documents import Documents
    from rpl_core.interfaces.options import Options
    from rpl_core.interfaces.section import Renderer, RenderRequest
    from rpl_core.plugins.catalog import NamedContributions
    from rpl_core.plugins.discovery import PluginSelection
    from rpl_core.plugins.host import PluginHost


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
        from rpl_core.config import load_configuration

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
        from rpl_core.plugins.discovery import PluginSelection
        from rpl_core.plugins.host import create_host

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


# Show the documents of an analysis the way the user asked for.


#: The output format of the terminal.
_TEXT = "text"


def show(
    session: Session,
    documents: Documents,
    *,
    as_json: bool,
    quiet: bool,
    directory: Path | None,
    path_first: bool = False,
    options: Options | None = None,
) -> None:
    """``--json``: the leading document; ``--quiet``: its brief form; otherwise the text report.

    Diagnostics and the place of the documents go to stderr; with ``--quiet`` only what makes the number
    doubtful.
    """
    from rpl_core.documents import diagnostic_drafts

    output, leading = session.output, documents.leading
    if leading is None:
        _without_documents(session, needed=as_json or quiet)
    elif quiet:
        output.line(leading.brief(documents.content(leading.name)))
    elif as_json:
        output.raw(documents.json(leading.name))
    else:
        _show_text(session, documents, options, path_first=path_first)
    late = [d for d in diagnostic_drafts(session.host.diagnostics) if d not in documents.diagnostics]
    for diagnostic, others in _each_once((*documents.diagnostics, *late)):
        if not quiet or diagnostic.severity != "info":
            output.diagnostic(diagnostic, others)
    if directory is not None and not quiet:
        output.note(f"{'documents' if leading else 'run directory'}: {directory}")


def _each_once(diagnostics: Iterable[DiagnosticDoc]) -> Iterator[tuple[DiagnosticDoc, int]]:
    """What was found alike in several files once, with the number of the others."""
    alike: dict[tuple[str | None, ...], list[DiagnosticDoc]] = {}
    for diagnostic in diagnostics:
        alike.setdefault((diagnostic.code, diagnostic.fact, diagnostic.cause, diagnostic.remedy), []).append(
            diagnostic
        )
    for first, *others in alike.values():
        yield first, len(others)


def _without_documents(session: Session, *, needed: bool) -> None:
    from rpl_core.errors import MissingError
    from rpl_core.plugins.entry_points import provider_of

    package = provider_of("kinds", "documents") or "rocm-perf-lab"
    fact = "no installed plugin makes the documents of an analysis"
    if needed:
        raise MissingError(fact, next_step=f"pip install {package}")
    session.output.note(
        f"{fact}: the recordings were kept and read, nothing more. Next: pip install {package}."
    )


def _show_text(session: Session, documents: Documents, options: Options | None, *, path_first: bool) -> None:
    from rpl_core.cli.output import emphasised, shows_colours, text_width
    from rpl_core.interfaces.options import Options
    from rpl_core.interfaces.section import RenderRequest, SectionOf
    from rpl_core.plugins.entry_points import provider_of

    catalog = session.host.catalog
    renderers = catalog.renderers()
    if _TEXT not in renderers:
        package = provider_of("kinds", "renderers") or "rocm-perf-lab"
        session.output.note(f"no installed plugin shows documents as text. Next: pip install {package}.")
        return
    request = RenderRequest(
        {name: documents.view(name) for name in documents.names},
        path_first=path_first,
        width=text_width(),
        terminal=shows_colours(),
        sections=tuple(SectionOf(c.plugin, c.value) for c in catalog.report_sections().contributions),
        options=options or Options(),
    )
    session.output.raw(emphasised(rendered(renderers, _TEXT, request)))


def rendered(renderers: NamedContributions[Renderer], name: str, request: RenderRequest) -> str:
    """What the output format ``name`` gives. Raises ``PluginError`` when it breaks."""
    from rpl_core.model.value_checks import require_value
    from rpl_core.plugins.boundary import plugin_boundary

    with plugin_boundary(renderers.plugin_of(name), f"renderer {name!r}"):
        text = require_value(renderers.get(name).render(request), str)
        text.encode()
    return text
