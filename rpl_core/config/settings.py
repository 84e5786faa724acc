"""Settings: flag > environment > file > default, remembering the origin of each value."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from rpl_core.config.trust import is_trusted, read_settings_file, why_distrusted
from rpl_core.config.values import at_most, flag, names, positive, text
from rpl_core.errors import UsageError
from rpl_core.interfaces.options import CommandOption, PluginSetting, SettingKind
from rpl_core.values import frozen


@frozen
class Setting:
    """``name`` is dotted as in ``rpl.toml``; the environment variable is ``RPL_`` + name in capitals.

    ``kind`` says what it names; ``None`` counts as a program.
    """

    name: str
    parse: Callable[[Any], Any]
    default: Any
    meaning: str
    kind: SettingKind | None

    @property
    def variable(self) -> str:
        return "RPL_" + self.name.upper().replace(".", "_").replace("-", "_")

    @classmethod
    def of(cls, option: CommandOption[Any]) -> Setting:
        """The setting that an option of a plugin is."""
        return cls(option.name, option.parse, option.default, option.meaning or option.help, option.kind)


_VALUE = SettingKind.VALUE
#: The core's own settings. Plugins add theirs with their options (``rpl_core.interfaces.options``).
SETTINGS: tuple[Setting, ...] = (
    Setting("device", text, None, "device family or product, see `rpl devices`; default: recognised", _VALUE),
    Setting(
        "collector",
        text,
        None,
        "collector to record with; default: the first usable one",
        SettingKind.PLUGINS,
    ),
    Setting("runs", at_most(10_000), 3, "timing runs of a profile", _VALUE),
    Setting("roofline", flag, False, "collect hardware counters in separate passes", _VALUE),
    Setting(
        "api",
        flag,
        True,
        "record API calls and copies in a profile, and what recording them costs",
        _VALUE,
    ),
    Setting(
        "focus-critical",
        flag,
        False,
        "critical path first; other commands then trace copies and the API",
        _VALUE,
    ),
    Setting("time-limit", positive, None, "seconds that one pass may take", _VALUE),
    Setting("runs-directory", text, "rpl-runs", "where run directories are created", SettingKind.PLACE),
    Setting("plugins.disabled", names, (), "plugins that are not loaded", SettingKind.PLUGINS),
)


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The parser takes memory by the square of the parts of a dotted key.
_MOST_DOTS = 256


@frozen
class Resolved:
    """A setting's value and where it came from: "flag", "environment RPL_X", "file PATH" or "default"."""

    name: str
    value: Any
    origin: str


@frozen
class Configuration:
    """The configuration of one invocation. ``file_values`` are flattened dotted names.

    ``settings`` are the known ones: the core's, and those of plugins once these are loaded. ``distrust`` says
    why somebody else may have written the file; then only its settings of the kind ``VALUE`` count.
    """

    file: Path | None
    file_values: Mapping[str, Any]
    environment: Mapping[str, str]
    settings: tuple[Setting, ...] = SETTINGS
    of_plugins: tuple[PluginSetting, ...] = ()
    distrust: str | None = None

    def with_kinds(
        self, options: Iterable[CommandOption[Any]], of_plugins: Iterable[PluginSetting]
    ) -> Configuration:
        """Also with the settings of plugins; ``of_plugins`` are those that they read themselves."""
        known = (*self.settings, *(Setting.of(option) for option in options if option.setting))
        return attrs.evolve(self, settings=known, of_plugins=tuple(of_plugins))

    def with_options(
        self, options: Iterable[CommandOption[Any]], of_plugins: Iterable[PluginSetting] = ()
    ) -> Configuration:
        """The same. Raises ``UsageError`` for settings that nobody knows."""
        whole = self.with_kinds(options, of_plugins)
        known = {setting.name for setting in whole.settings}
        unknown = sorted(k for k in self.file_values if k not in known and not k.startswith("plugins."))
        if unknown:
            fact = f"unknown setting {unknown[0]!r} in the configuration file"
            raise UsageError(fact, next_step="`rpl config show` lists the settings")
        return whole

    @property
    def _kinds(self) -> Mapping[str, SettingKind | None]:
        own = {setting.name: setting.kind for setting in self.settings}
        return {**own, **{setting.name: setting.kind for setting in self.of_plugins}}

    def resolve(self, name: str, flag: Any = None) -> Resolved:
        """The value of setting ``name``. Raises ``UsageError`` naming the origin of a wrong value."""
        return self.resolve_setting(next(s for s in self.settings if s.name == name), flag)

    def resolve_setting(self, setting: Setting, flag: Any = None) -> Resolved:
        """The same for a setting that need not be one of ``settings``."""
        name = setting.name
        if flag is not None:
            return Resolved(name, parsed(setting.parse, flag, "flag", name), "flag")
        if setting.variable in self.environment:
            origin = f"environment {setting.variable}"
            return Resolved(
                name, parsed(setting.parse, self.environment[setting.variable], origin, name), origin
            )
        if name in self.file_values and (self.distrust is None or setting.kind is SettingKind.VALUE):
            origin = f"file {self.file}"
            return Resolved(name, parsed(setting.parse, self.file_values[name], origin, name), origin)
        return Resolved(name, setting.default, "default")

    def value(self, name: str, flag: Any = None) -> Any:
        return self.resolve(name, flag).value

    def all(self) -> tuple[Resolved, ...]:
        return tuple(self.resolve_setting(setting) for setting in self.settings)

    def plugin_view(self) -> Mapping[str, Any]:
        """What plugins get: resolved settings plus the file's ``plugins.<name>.<key>`` entries.

        Without those that are ``doubtful``, which only who knows the plugins can let in.
        """
        view = {resolved.name: resolved.value for resolved in self.all()}
        if self.distrust is None:
            view.update({k: v for k, v in self.file_values.items() if k not in view})
        return MappingProxyType(view)

    def doubtful(self) -> Mapping[str, Any]:
        """What a file that somebody else may have written says of settings that are not the core's."""
        known = {setting.name for setting in SETTINGS}
        told = {} if self.distrust is None else self.file_values
        return {name: value for name, value in told.items() if name not in known}

    def ignored(self) -> tuple[str, ...]:
        """Names that the file sets without effect, because somebody else may have written it."""
        kinds, told = self._kinds, self.file_values if self.distrust is not None else {}
        return tuple(sorted(name for name in told if kinds.get(name) is not SettingKind.VALUE))

    def naming(self) -> Mapping[str, Any]:
        """What the file names that is run or asked, as far as it counts: programs, endpoints, plugins."""
        kinds = self._kinds
        overruled = {*self.ignored(), *(s.name for s in self.settings if s.variable in self.environment)}
        return {
            name: value
            for name, value in sorted(self.file_values.items())
            if kinds.get(name) not in (SettingKind.VALUE, SettingKind.PLACE) and name not in overruled
        }


def parsed(parse: Any, value: Any, origin: str, name: str) -> Any:
    """``value`` by ``parse``. Raises ``UsageError`` naming where a wrong value came from."""
    try:
        return parse(value)
    except UsageError as error:
        place = f"--{name}" if origin == "flag" else f"setting {name!r} ({origin})"
        raise UsageError(f"{place}: {error.fact}") from None


def load_configuration(file: str | None = None, *, start: Path | None = None) -> Configuration:
    """Read ``file``, or the nearest ``rpl.toml`` or ``[tool.rpl]`` above ``start``, with the environment.

    A ``file`` that the user named is trusted; for one that was found see ``rpl_core.config.trust``.
    """
    environment = {k: v for k, v in os.environ.items() if k.startswith("RPL_")}
    if file is not None:
        path = Path(file)
        return Configuration(path, _flatten(_table(path, read_settings_file(path)[0])), environment)
    for folder in (start or Path.cwd(), *(start or Path.cwd()).parents):
        for name in ("rpl.toml", "pyproject.toml"):
            path = folder / name
            if path.is_file():
                content, status = read_settings_file(path)
                table = _table(path, content)
                if table or name == "rpl.toml":
                    distrust = why_distrusted(path, status)
                    if distrust is not None and is_trusted(path, content):
                        distrust = None
                    return Configuration(path, _flatten(table), environment, distrust=distrust)
    return Configuration(None, {}, environment)


def settings_of(path: Path) -> tuple[bytes, Mapping[str, Any]]:
    """What a settings file holds, and the flattened settings in it. Raises ``UsageError``."""
    content, _ = read_settings_file(path)
    return content, _flatten(_table(path, content))


def _table(path: Path, content: bytes) -> Mapping[str, Any]:
    try:
        text = content.decode("utf-8")
        if max((line.count(".") for line in text.splitlines()), default=0) > _MOST_DOTS:
            raise UsageError(f"configuration file {path} has a line with more than {_MOST_DOTS} dots")
        document: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, no TOML, or a number too long
        raise UsageError(f"configuration file {path} can't be read: {error}") from None
    if path.name != "pyproject.toml":
        return document
    tool = document.get("tool", {})
    table = tool.get("rpl", {}) if isinstance(tool, dict) else {}
    return table if isinstance(table, dict) else {}


def _flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat.update(_flatten(value, f"{name}."))
        else:
            flat[name] = value
    return flat
