"""Options of commands, declared by whoever understands them: type, default, setting and help in one place.

An option object is also the key to its value: ``options[MY_OPTION]`` has the option's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import attrs

from rpl_core.values import frozen

T = TypeVar("T")


class OptionForm(Enum):
    """How an option is written on the command line."""

    VALUE = "value"  # --name VALUE
    FLAG = "flag"  # --name
    SWITCH = "switch"  # --name/--no-name
    REPEATED = "repeated"  # --name VALUE, several times; the value is a tuple


class SettingKind(Enum):
    """What a setting names: what a settings file of somebody else may say, and what it may not."""

    VALUE = "value"  # a figure, a choice, a file that is only read: nothing is run or asked because of it
    PROGRAM = "program"  # a program or library, its words, or a folder where programs are looked for
    ENDPOINT = "endpoint"  # where requests are sent
    PLUGINS = "plugins"  # which plugins run, or which of them does the work
    PLACE = "place"  # where rpl writes as the user
    SECRET = "secret"  # noqa: S105 - what is told to programs that nobody trusts


@frozen
class PluginSetting:
    """A setting that a plugin reads from ``config``: its ``name`` is ``plugins.<plugin>.<key>``.

    A plugin states its own in ``RPL_SETTINGS``, a tuple beside ``RPL_API``. What no plugin states counts as
    naming a program.
    """

    name: str = attrs.field(validator=attrs.validators.matches_re(r"plugins\.[^.]+\.[^.]+"))
    kind: SettingKind
    meaning: str


@frozen
class CommandOption(Generic[T]):
    """``--name`` of the commands in ``commands``.

    ``parse`` turns text (or a TOML value) into the value, of a repeated option into one of them, and raises
    ``UsageError`` for what can't be one; see ``rpl_core.config``. With
    ``setting`` it can also be set in ``rpl.toml`` and by ``RPL_<NAME>``; ``kind`` says what it names then
    (``None`` counts as ``PROGRAM``), and from a settings file of somebody else only a ``VALUE`` is taken. A
    ``recorded`` one is kept in the manifest of a run, and later analyses of that run take it over unless told
    otherwise.
    ``values`` gives what a shell may complete, from the folder of the run that the command would read;
    ``group`` is the heading of the help that the option stands under.
    ``change_device`` makes the device that is analysed from the one found and a value that is not ``None``,
    ``change_recording`` the recording from the one read.
    """

    name: str
    commands: tuple[str, ...]
    parse: Callable[[Any], Any] = attrs.field(eq=False, repr=False)
    default: T
    help: str = attrs.field(eq=False, repr=False)
    form: OptionForm = OptionForm.VALUE
    metavar: str | None = None
    setting: bool = False
    kind: SettingKind | None = None
    recorded: bool = False
    meaning: str | None = attrs.field(default=None, eq=False, repr=False)  # of the setting; else ``help``
    values: Callable[[Any], Any] | None = attrs.field(default=None, eq=False, repr=False)
    group: str = attrs.field(default="Analysis", eq=False, repr=False)  # of the help
    change_device: Callable[[Any, Any], Any] | None = attrs.field(default=None, eq=False, repr=False)
    change_recording: Callable[[Any, Any], Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def key(self) -> str:
        """The name as Python and manifests spell it."""
        return self.name.replace("-", "_")


class Options:
    """Resolved values by option. An option that the command does not have gives its default."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._values = dict(values)

    def __getitem__(self, option: CommandOption[T]) -> T:
        value: T = self._values.get(option.name, option.default)
        return value

    def with_value(self, option: CommandOption[T], value: T) -> Options:
        """The same options with another value for one of them."""
        return Options({**self._values, option.name: value})

    def by_name(self) -> Mapping[str, Any]:
        """The values that were resolved, for manifests and messages."""
        return MappingProxyType(self._values)
