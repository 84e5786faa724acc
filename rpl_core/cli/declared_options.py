"""A command's own options, each declared once: as a field of the class that the command works with.

The field gives the option on the command line with its help, the setting that stands in for it (settings file
and environment), and the value that code receives. ``takes`` puts the options of a class on a command,
``settled`` makes the class of what was given. The field's name is what click calls the parameter.
What plugins add to commands of others is a ``CommandOption`` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.interfaces.options import SettingKind

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
