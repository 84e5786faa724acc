"""Settings: flag > environment > file > default, each with its origin, and which files are trusted."""

from __future__ import annotations

import errno
import grp
import hashlib
import json
import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files import config_folder, open_regular, write_atomic
from rpl_core.interfaces.options import CommandOption, PluginSetting, SettingKind
from rpl_core.text import did_you_mean
from rpl_core.values import frozen

# Parsers of settings and options: text, numbers, flags and TOML values into the value, or ``UsageError``.


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"expected text, found {value!r}")
    return value


def positive_int(value: Any) -> int:
    parsed = number(value)
    if parsed < 1 or parsed != int(parsed):
        raise UsageError(f"expected a whole number of at least 1, found {value!r}")
    return int(parsed)


def at_most(most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if (parsed := positive_int(value)) > most:
            raise UsageError(f"expected at most {most}, found {parsed}")
        return parsed

    return parse


def positive(value: Any) -> float:
    parsed = number(value)
    if parsed <= 0:
        raise UsageError(f"expected a number above 0, found {value!r}")
    return parsed


def number(value: Any) -> float:
    try:
        parsed = float(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"expected a number, found {value!r}") from None
    if isinstance(value, bool) or parsed != parsed or parsed in (float("inf"), float("-inf")):
        raise UsageError(f"expected a number, found {value!r}")
    return parsed


def number_within(low: float, high: float) -> Callable[[Any], float]:
    """Both ends are allowed."""

    def parse(value: Any) -> float:
        try:
            parsed = float(value)
        except (TypeError, ValueError, OverflowError):
            parsed = float("nan")
        if not low <= parsed <= high:
            raise UsageError(f"expected a number from {low:g} to {high:g}, found {value!r}")
        return parsed

    return parse


def whole_within(low: int, high: int) -> Callable[[Any], int]:
    """Digits alone, with a minus; both ends are allowed."""

    def parse(value: Any) -> int:
        digits = str(value).removeprefix("-")
        # Fewer than 20: no number that is taken has more, and int() of millions of them takes minutes.
        parsed = int(str(value)) if digits.isascii() and digits.isdigit() and len(digits) < 20 else low - 1
        if not low <= parsed <= high:
            raise UsageError(f"expected a whole number from {low} to {high}, found {value!r}")
        return parsed

    return parse


def flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off", ""}:
        return False
    raise UsageError(f"expected true or false, found {value!r}")


def names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise UsageError(f"expected a list of names, found {value!r}")


def one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            meant = did_you_mean(str(value), choices)
            raise UsageError(f"expected one of {', '.join(choices)}, found {value!r}{meant}")
        return str(value)

    return parse


# The settings.


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
        of_core = {setting.name: setting.kind for setting in self.settings}
        return {**of_core, **{setting.name: setting.kind for setting in self.of_plugins}}

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

    A ``file`` that the user named is trusted; for one that was found see ``rpl_core.config``.
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


# Whose settings files count in full: the user's own, root's, and those that they trusted as they are.


#: Configuration files are written by hand; anything bigger is a mistake.
MAX_FILE_BYTES = 1 << 18
#: A record of trust: one path and one hash.
_MAX_RECORD_BYTES = 1 << 14
#: User identifiers have 32 bits.
_MOST_UID = (1 << 32) - 1


def read_settings_file(path: Path) -> tuple[bytes, os.stat_result]:
    """What ``path`` holds and whose it is, of one opening: nobody can change it in between.

    Raises ``UsageError`` for what is no regular file of at most ``MAX_FILE_BYTES``, or can't be read.
    """
    try:
        with open_regular(path, MAX_FILE_BYTES) as stream:
            return stream.read(MAX_FILE_BYTES), os.fstat(stream.fileno())
    except (BadDataError, MissingError) as error:
        raise UsageError(f"configuration file {error.fact}") from None


def why_distrusted(
    path: Path, status: os.stat_result, environment: Mapping[str, str] = os.environ
) -> str | None:
    """Why somebody else may have written ``path``, whose open file has ``status``; ``None``: nobody else."""
    ours = _own_users(environment)
    try:
        for owner in (status.st_uid, path.lstat().st_uid):  # of the file, and of a link to it
            if owner not in ours:
                return f"it belongs to another user (uid {owner})"
        who = _other_writers(path, status, ours)
        if who is not None:
            return f"it can be written by {who}"
        for folder in _folders_above(path):
            of_folder = folder.stat()
            who = None if of_folder.st_mode & stat.S_ISVTX else _other_writers(folder, of_folder, ours)
            if who is not None:
                return f"the folder {folder} can be written by {who}"
    except OSError as error:
        return f"nobody can tell whose it is ({error.strerror})"
    return None


def _other_writers(path: Path, status: os.stat_result, ours: frozenset[int]) -> str | None:
    """Who else may write ``path``, by its mode. With an access control list the group's bits are its mask."""
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    if not status.st_mode & stat.S_IWGRP:
        return None
    if _has_access_list(path):
        return "others, by an access control list"
    if status.st_gid in {0, *map(_group_of_one, ours)}:
        return None
    return f"a group (gid {status.st_gid})"


def _has_access_list(path: Path) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:
        os.getxattr(path, "system.posix_acl_access")
    except OSError as error:
        # No list, or a file system that has none; whatever else keeps it from view counts as one.
        return error.errno not in (errno.ENODATA, errno.EOPNOTSUPP)
    return True


def _group_of_one(user: int) -> int | None:
    """The group that is ``user``'s alone: by custom it has their name, and no other member."""
    try:
        entry = pwd.getpwuid(user)
        group = grp.getgrgid(entry.pw_gid)
    except KeyError:
        return None
    alone = group.gr_name == entry.pw_name and {*group.gr_mem} <= {entry.pw_name}
    return group.gr_gid if alone else None


def _own_users(environment: Mapping[str, str]) -> frozenset[int]:
    user = os.geteuid()
    if user != 0:
        return frozenset((user, 0))
    caller = environment.get("SUDO_UID", "")
    known = caller.isascii() and caller.isdigit() and len(caller) <= 10 and int(caller) <= _MOST_UID
    return frozenset((0, int(caller)) if known else (0,))


def _folders_above(path: Path) -> Iterator[Path]:
    """Those of the file and, where it is a link, those of the link too."""
    yield from dict.fromkeys((*path.resolve().parents, *(path.parent.resolve() / path.name).parents))


def is_trusted(path: Path, content: bytes) -> bool:
    """Whether the user trusted ``path`` with this very ``content``."""
    record = _record_of(path)
    try:
        if record is None:
            return False
        told, status = read_settings_file(record)
        if len(told) > _MAX_RECORD_BYTES or why_distrusted(record, status) is not None:
            return False
        return bool(json.loads(told) == _binding(path, content))
    except (UsageError, ValueError, RecursionError):
        return False


def trust(path: Path, content: bytes) -> Path:
    """Remember that ``path`` is trusted with this ``content``; where that is kept. Raises ``OSError``."""
    record = _record_of(path)
    if record is None:
        raise UsageError("there is no home folder to remember it in", next_step="set HOME or XDG_CONFIG_HOME")
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(record, json.dumps(_binding(path, content), indent=1) + "\n", mode=0o600)
    return record


def _record_of(path: Path) -> Path | None:
    """One file per path, so that two commands at once lose nothing."""
    folder = config_folder()
    if folder is None:
        return None
    return folder / "trusted" / f"{hashlib.sha256(os.fsencode(_absolute_place(path))).hexdigest()}.json"


def _binding(path: Path, content: bytes) -> dict[str, str]:
    place = os.fsencode(_absolute_place(path)).decode("utf-8", "backslashreplace")
    return {"path": place, "sha256": hashlib.sha256(content).hexdigest()}


def _absolute_place(path: Path) -> Path:
    """Links of folders are followed: the same file by another way is the same."""
    return path.parent.resolve() / path.name
