"""Contributions by name. Names are unique: this project's own stay, else the first in plugin order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from rpl_core.config.settings import SETTINGS
from rpl_core.errors import MissingError
from rpl_core.model.value_checks import require_value
from rpl_core.plugins import kinds
from rpl_core.plugins.boundary import plugin_boundary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rpl_core.interfaces.options import CommandOption
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling
    from rpl_core.plugins.discovery import DiagnosticLog
    from rpl_core.plugins.kinds import ContributionKind
    from rpl_core.plugins.relay import Contribution, HookRelay

T = TypeVar("T")


class NamedContributions(Generic[T]):
    """An ordered, read-only collection of uniquely named contributions; iterates over the values."""

    def __init__(
        self, noun: str, entries: Iterable[tuple[str, Contribution[T]]], refused: str | None = None
    ) -> None:
        self.noun = noun
        self.refused = refused  # what plugins offered that can't be used, and why
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[T]:
        return (entry.value for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    @property
    def contributions(self) -> tuple[Contribution[T], ...]:
        """The values with their plugins, in order."""
        return tuple(self._entries.values())

    def get(self, name: str) -> T:
        """The contribution called ``name``; ``MissingError`` naming the known ones otherwise."""
        if name in self._entries:
            return self._entries[name].value
        known = ", ".join(self.names) or "none"
        from difflib import get_close_matches

        similar = get_close_matches(name, self.names, n=1)
        raise MissingError(
            f"unknown {self.noun} {name!r}; known: {known}",
            cause=self.refused,
            next_step=f"did you mean {similar[0]!r}?" if similar else "see `rpl plugins list`",
        )

    def plugin_of(self, name: str) -> str:
        """The plugin that offered ``name``."""
        return self._entries[name].plugin


class Offered(Generic[T]):
    """A method of the catalogue: all contributions of ``kind``, in plugin order."""

    def __init__(self, kind: ContributionKind[T]) -> None:
        self._kind = kind

    def __get__(self, catalog: Catalog, _owner: object = None) -> Callable[[], NamedContributions[T]]:
        return partial(catalog.of, self._kind)


class Catalog:
    """Everything the loaded plugins offer, asked for once and kept for the life of the host."""

    devices = Offered(kinds.DEVICES)
    collectors = Offered(kinds.COLLECTORS)
    readers = Offered(kinds.READERS)
    analyzers = Offered(kinds.ANALYZERS)
    documents = Offered(kinds.DOCUMENTS)
    report_sections = Offered(kinds.SECTIONS)
    renderers = Offered(kinds.RENDERERS)
    executors = Offered(kinds.EXECUTORS)
    doctor_checks = Offered(kinds.DOCTOR_CHECKS)

    def __init__(self, relay: HookRelay, log: DiagnosticLog) -> None:
        self._relay = relay
        self._log = log
        self._kept: dict[str, NamedContributions[Any]] = {}
        self._taken: dict[str | None, set[str]] = {}

    def of(self, kind: ContributionKind[T], device: DeviceModel | None = None) -> NamedContributions[T]:
        """All contributions of ``kind``, the urgent ones first; ``device`` is for kinds that ask for one."""
        if kind.hook in self._kept:
            return self._kept[kind.hook]
        offered = self._relay.collect(kind, **dict.fromkeys(kind.asked, device))
        if "priority" in kind.numbers:
            offered = tuple(sorted(offered, key=partial(_precedence, kind)))
        named = self._named(kind, offered)
        return named if kind.asked else self._kept.setdefault(kind.hook, named)

    def ceilings(self, device: DeviceModel) -> tuple[Contribution[ComputeCeiling | MemoryCeiling], ...]:
        """Ceilings that plugins add to those of ``device``."""
        return self._relay.collect(kinds.CEILINGS, device=device)

    def options(
        self, command: str | None = None, *, taken: Iterable[str] = ()
    ) -> tuple[CommandOption[Any], ...]:
        """The options that plugins add to ``command``, or to any; ``taken`` are names of its own options."""
        self._taken.setdefault(command, set()).update(taken)
        free = []
        for offered in self.of(kinds.OPTIONS).contributions:
            name = offered.value.name
            if command is not None and command not in offered.value.commands:
                continue
            if name in self._taken[command] or any(name == setting.name for setting in SETTINGS):
                self._refuse(offered.plugin, f"{kinds.OPTIONS.noun} {name!r}", "core")
            else:
                free.append(_guarded(offered))
        return tuple(free)

    def _named(self, kind: ContributionKind[T], offered: Iterable[Contribution[T]]) -> NamedContributions[T]:
        kept: dict[str, Contribution[T]] = {}
        for contribution in offered:
            name = kind.identity_of(contribution.value)
            first, second = kept.setdefault(name, contribution), contribution
            if first is second:
                continue
            if second.trusted and not first.trusted:
                kept[name], second = second, first
            self._refuse(second.plugin, f"{kind.noun} {name!r}", kept[name].plugin)
        failures = (failure.fact for failure in self._relay.failures if failure.hook == kind.hook)
        return NamedContributions(kind.noun, kept.items(), "; ".join(failures) or None)

    def _refuse(self, plugin: str, what: str, owner: str) -> None:
        self._log.warn(
            "plugin.duplicate",
            f"plugin {plugin!r} offers {what}, which plugin {owner!r} already offers; the latter is used",
            where=f"plugin {plugin}",
            remedy=f"disable one of them, e.g. with `--disable-plugin {plugin}`",
        )


def _guarded(offered: Contribution[CommandOption[Any]]) -> CommandOption[Any]:
    option = offered.value

    def within(called: Callable[..., Any], *, changes: bool = False) -> Callable[..., Any]:
        def guarded(*values: Any) -> Any:
            with plugin_boundary(offered.plugin, f"option --{option.name}"):
                answer = called(*values)
                return require_value(answer, type(values[0])) if changes else answer

        return guarded

    device = option.change_device and within(option.change_device, changes=True)
    recording = option.change_recording and within(option.change_recording, changes=True)
    return attrs.evolve(option, parse=within(option.parse), change_device=device, change_recording=recording)


def _precedence(kind: ContributionKind[Any], offered: Contribution[Any]) -> tuple[int, str, str]:
    return (-offered.value.priority, offered.plugin, kind.identity_of(offered.value))
