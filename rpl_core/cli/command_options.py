"""Options of commands, each declared once: a command's own, those that commands share, those of plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from rpl_core.cli.session import session_of
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.shell_completion import CompletionItem

    from rpl_core.cli.session import Session
    from rpl_core.interfaces.options import CommandOption, Options, SettingKind
    from rpl_core.pipeline import AnalysisRequest

# A command's own options, each declared once: as a field of the class that the command works with.


F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_KEY = "rpl.option"


@frozen
class DeclaredOption:
    """``words`` are those of the command line; without any only a setting, or somebody's own flag, gives it.

    ``parse`` makes the value of what click or the setting gave. ``kind`` is for settings that a plugin reads
    from ``config``. ``details`` are click's.
    """

    words: tuple[str, ...]
    setting: str | None
    kind: SettingKind | None
    parse: Callable[[Any], Any] | None
    details: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Without dashes."""
        return self.words[-1].partition("/")[0].lstrip("-")


def option(
    *words: str,
    setting: str | None = None,
    kind: SettingKind | None = None,
    parse: Callable[[Any], Any] | None = None,
    unsaid: Any = attrs.NOTHING,
    **details: Any,
) -> Any:
    """A field that is an option. ``unsaid`` is its value in code that makes the class without a command."""
    return attrs.field(default=unsaid, metadata={_KEY: DeclaredOption(words, setting, kind, parse, details)})


def declared(cls: type[Any]) -> dict[str, DeclaredOption]:
    """The options of a class by the names of its fields, in their order."""
    return {field.name: field.metadata[_KEY] for field in attrs.fields(cls) if _KEY in field.metadata}


def takes(*classes: type[Any]) -> Callable[[F], F]:
    """Add the options of ``classes`` to a command, in their order."""

    def decorate(command: F) -> F:
        options = [pair for cls in classes for pair in declared(cls).items() if pair[1].words]
        for name, declaration in reversed(options):
            command = click.option(*declaration.words, name, **declaration.details)(command)
        return command

    return decorate


def settled(cls: type[T], session: Session, flags: Mapping[str, Any], /, **others: Any) -> T:
    """The class of a command's flags: flag, environment, file, default. ``others`` are its other fields.

    Raises ``UsageError`` naming the origin of a value that can't be.
    """
    values = {}
    for name, declaration in declared(cls).items():
        value = flags[name] if declaration.words else flags.get(name)
        if declaration.setting is not None:
            value = session.setting(declaration.setting, value)
        values[name] = value if declaration.parse is None else declaration.parse(value)
    return cls(**others, **values)


# ``rpl completion``: completion of commands, options and values in bash, zsh and fish.


_VARIABLE = "_RPL_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, devices, kernels and more.

    \b
    eval "$(rpl completion bash)"                         in ~/.bashrc
    eval "$(rpl completion zsh)"                          in ~/.zshrc
    rpl completion fish > ~/.config/fish/completions/rpl.fish
    """
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    root = context.find_root()
    script = completion_class(root.command, {}, "rpl", _VARIABLE)
    session_of(context).output.raw(script.source_template % script.source_vars())


def completing(names: Callable[[click.Context], Iterable[str]]) -> Any:
    """What click asks for the values of a parameter; ``names`` gives all of them."""

    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            known = sorted(set(names(context)))
        except Exception:  # noqa: BLE001 - a shell that asks for completions can do nothing with an error
            return []
        wanted = begun.lower()
        return [CompletionItem(name) for name in known if name.lower().startswith(wanted)]

    return complete


def device_names(context: click.Context) -> Iterable[str]:
    """Products and families that installed plugins know."""
    models = [c.value for c in session_of(context).plugin_overview.catalog.devices().contributions]
    return [name for model in models for name in (model.name, model.architecture)]


def values_of(option: CommandOption[Any]) -> Any:
    """For an option that a plugin declares: its ``values``, of the run that the command would read."""

    def names(context: click.Context) -> Iterable[str]:
        given = context.params.get("run") or context.params.get("directory")
        place: Path = given or session_of(context).latest_run
        return option.values(place) if option.values else ()

    return completing(names) if option.values else None


# Options that commands share, and those that plugins add.


#: The core's settings that a run directory remembers and its later analyses take over.
_RECORDED = ("device",)


@frozen
class DeviceOption:
    """The device without what a run was recorded with, which ``analysis_request`` looks at."""

    device: str | None = option(
        "--device",
        setting="device",
        metavar="NAME",
        help="Device family or product, see `rpl devices`.",
        shell_complete=completing(device_names),
    )


@frozen
class AnalysisOptions(DeviceOption):
    """What commands that analyse have in common."""

    as_json: bool = option("--json", is_flag=True, help="Print the leading document (profile) on stdout.")
    quiet: bool = option("--quiet", is_flag=True, help="Print only the runtime in ms.")

    def require_one_form(self) -> None:
        """``--json`` promises one document and ``--quiet`` one number: both at once can't be had."""
        if self.as_json and self.quiet:
            raise click.UsageError(
                "--json and --quiet exclude each other", click.get_current_context(silent=True)
            )


def keep_option() -> Any:
    """``--keep``, of commands that make a run of recordings."""
    return option("--keep", is_flag=True, help="Keep copies of the recordings in the result.")


class PluginOptionsCommand(click.Command):
    """A command that also takes the options which plugins declare for its name.

    ``groups`` puts the command's own options under headings of the help, those of plugins come under theirs.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._groups = groups or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self._groups:
            super().format_options(ctx, formatter)
            return
        headings = {name: title for title, names in self._groups.items() for name in names}
        headings |= {option.key: option.group for option in plugin_options(session_of(ctx), self.name or "")}
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in self._groups}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                sections.setdefault(headings.get(str(param.name), "Other"), []).append(record)
        last = sections.pop("Other", [])  # behind what plugins add
        for title, records in (*sections.items(), ("Other", last)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        declared_params = super().get_params(ctx)
        taken = {word for param in declared_params for word in (*param.opts, *param.secondary_opts)}
        names = {word.removeprefix("--") for word in taken}
        names |= {str(param.name).replace("_", "-") for param in declared_params}
        offered = session_of(ctx).plugin_overview.catalog.options(self.name, taken=names)
        added = [_click_option(option) for option in offered]
        last = [param for param in declared_params if param.name == "help"]
        return [*(param for param in declared_params if param not in last), *added, *last]


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
    complete = values_of(option)
    return click.Option(
        names, multiple=several, metavar=option.metavar, help=option.help, shell_complete=complete
    )


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
    for offered in plugin_options(session, command):
        value, origin = _resolved(session, offered, flags.get(offered.key))
        if origin == "default" and offered.recorded and offered.key in (recorded or {}):
            value = (recorded or {})[offered.key]
        values[offered.name] = value
    return Options(values)


def _resolved(session: Session, option: CommandOption[Any], flag: Any) -> tuple[Any, str]:
    from rpl_core.config import parsed
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


def analysis_request(
    session: Session, flags: Mapping[str, Any], root: Path | None, *, command: str = "analyze"
) -> AnalysisRequest:
    """The request from flags, environment and file; then what the run directory ``root`` was recorded with.

    So ``rpl analyze RUN`` gives the documents that ``rpl profile`` wrote, unless it is told otherwise.
    ``command`` is the one whose options of plugins ``flags`` may hold.
    """
    from rpl_core.pipeline import AnalysisRequest

    recorded = {} if root is None else recorded_options(session, root, plugin_options(session, command))

    def chosen(name: str) -> Any:
        key = name.replace("-", "_")
        resolved = session.configuration.resolve(name, flags.get(key))
        return recorded.get(key, resolved.value) if resolved.origin == "default" else resolved.value

    return AnalysisRequest(
        device=chosen("device"),
        options=option_values(session, command, flags, recorded),
        root=root,
    )


def recorded_options(
    session: Session, root: Path, options: tuple[CommandOption[Any], ...]
) -> Mapping[str, Any]:
    """Options of the recorded run that bear on the analysis. Raises ``BadDataError`` for impossible ones."""
    from rpl_core.errors import BadDataError, UsageError
    from rpl_core.run_directory import load_manifest

    remembered = load_manifest(root).options
    parsers = {s.name: s.parse for s in session.configuration.settings if s.name in _RECORDED}
    parsers |= {option.name: option.parse for option in options if option.recorded}
    recorded = {}
    for name, parse in parsers.items():
        value = remembered.get(name.replace("-", "_"))
        if value is None:
            continue
        try:
            recorded[name.replace("-", "_")] = parse(value)
        except UsageError as error:
            raise BadDataError(f"{root} was recorded with an impossible {name}: {error.fact}") from None
    return recorded
