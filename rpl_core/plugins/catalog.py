"""Kinds of contribution, each described once, and contributions by name; ours stay, else the first."""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from rpl_core.config import SETTINGS
from rpl_core.errors import MissingError
from rpl_core.model.value_checks import attribute_violation, require_value, value_violation
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.document import DocumentContract, DocumentSection
    from rpl_core.interfaces.executor import Executor
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.section import Renderer, ReportSection
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling
    from rpl_core.plugins.discovery import DiagnosticLog
    from rpl_core.plugins.host import Contribution, HookRelay

T = TypeVar("T")


@frozen
class ContributionKind(Generic[T]):
    """One collecting hook and what it returns a tuple of.

    ``noun`` is what messages call a contribution, ``types`` its classes ("module:class"), imported on first
    use so that a host costs only what is asked of it. ``identity`` is the attribute that names a
    contribution; ``None``: it has no name of its own. ``required_text`` must be text, ``numbers`` whole
    numbers, ``fact_sets`` sets of facts. ``asked`` are the arguments of the hook beside the settings,
    ``spelling`` is what a name looks like.
    """

    hook: str
    noun: str
    types: tuple[str, ...]
    identity: str | None = "name"
    required_text: tuple[str, ...] = ("summary",)
    numbers: tuple[str, ...] = ()
    fact_sets: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    spelling: str = r"[^ ]+"

    @property
    def title(self) -> str:
        """The class as messages name it."""
        return " or ".join(path.partition(":")[2] for path in self.types)

    def expected_types(self) -> tuple[type[Any], ...]:
        places = (path.partition(":") for path in self.types)
        return tuple(getattr(import_module(module), name) for module, _, name in places)

    def identity_of(self, item: T) -> str:
        """The name under which the catalogue keeps ``item``."""
        return str(getattr(item, self.identity)) if self.identity else repr(item)

    def violation(self, item: Any) -> str | None:
        """What is wrong with one returned item, or ``None``. Runs attribute access of plugin classes."""
        if not isinstance(item, self.expected_types()):
            return f"returned {_article(type(item).__name__)} where {_article(self.title)} was expected"
        name = getattr(item, self.identity, None) if self.identity else "it"
        if not isinstance(name, str) or not name.isprintable() or not re.fullmatch(self.spelling, name):
            return f"{_article(self.title)} has the unusable {self.identity} {name!r}"
        for attribute in self.required_text:
            if not isinstance(getattr(item, attribute, None), str):
                return f"{self.title} {name!r} has no text in {attribute!r}"
        for attribute in self.numbers:
            value = getattr(item, attribute, None)
            if not isinstance(value, int) or isinstance(value, bool):
                return f"{self.title} {name!r} has no whole number in {attribute!r}"
        for attribute in self.fact_sets:
            if not _is_fact_set(getattr(item, attribute, None)):
                return f"{self.title} {name!r} has no set of facts in {attribute!r}"
        interfaces = [expected for expected in self.expected_types() if isinstance(item, expected)]
        problems = (value_violation(item), *(attribute_violation(item, i) for i in interfaces))
        problem = next(filter(None, problems), None)
        return f"{self.title} {name!r}: {problem}" if problem else None


def _is_fact_set(value: object) -> bool:
    from rpl_core.interfaces.analyzer import Fact

    facts = value if isinstance(value, (set, frozenset)) else (None,)
    return all(isinstance(fact, Fact) and isinstance(fact.name, str) for fact in facts)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


_INTERFACES = "rpl_core.interfaces"

DEVICES: ContributionKind[DeviceModel] = ContributionKind(
    "rpl_device_models", "device", ("rpl_core.model.device:DeviceModel",), required_text=("architecture",)
)
CEILINGS: ContributionKind[ComputeCeiling | MemoryCeiling] = ContributionKind(
    "rpl_ceilings",
    "ceiling",
    ("rpl_core.model.device:ComputeCeiling", "rpl_core.model.device:MemoryCeiling"),
    identity=None,
    required_text=("source",),
    asked=("device",),
)
OPTIONS: ContributionKind[CommandOption[Any]] = ContributionKind(
    "rpl_options",
    "option",
    (f"{_INTERFACES}.options:CommandOption",),
    required_text=("help",),
    spelling=r"[a-z0-9]+(-[a-z0-9]+)*",
)
COLLECTORS: ContributionKind[Collector] = ContributionKind(
    "rpl_collectors", "collector", (f"{_INTERFACES}.collector:Collector",)
)
READERS: ContributionKind[Reader] = ContributionKind(
    "rpl_readers", "reader", (f"{_INTERFACES}.reader:Reader",), numbers=("priority",)
)
ANALYZERS: ContributionKind[Analyzer] = ContributionKind(
    "rpl_analyzers",
    "analyzer",
    (f"{_INTERFACES}.analyzer:Analyzer",),
    fact_sets=("requires", "wants", "provides"),
)
DOCUMENTS: ContributionKind[DocumentContract | DocumentSection] = ContributionKind(
    "rpl_documents",
    "document",
    (f"{_INTERFACES}.document:DocumentContract", f"{_INTERFACES}.document:DocumentSection"),
)
SECTIONS: ContributionKind[ReportSection] = ContributionKind(
    "rpl_report_sections",
    "report section",
    (f"{_INTERFACES}.section:ReportSection",),
    required_text=("summary", "title"),
)
RENDERERS: ContributionKind[Renderer] = ContributionKind(
    "rpl_renderers",
    "output format",
    (f"{_INTERFACES}.section:Renderer",),
    required_text=("summary", "suffix"),
)
EXECUTORS: ContributionKind[Executor] = ContributionKind(
    "rpl_executors", "executor", (f"{_INTERFACES}.executor:Executor",)
)
DOCTOR_CHECKS: ContributionKind[DoctorCheck] = ContributionKind(
    "rpl_doctor_checks", "doctor check", (f"{_INTERFACES}.doctor:DoctorCheck",)
)

#: Those above, in the order of ``rpl_core.hookspecs``.
KINDS: tuple[ContributionKind[Any], ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, ContributionKind)
)


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

    devices = Offered(DEVICES)
    collectors = Offered(COLLECTORS)
    readers = Offered(READERS)
    analyzers = Offered(ANALYZERS)
    documents = Offered(DOCUMENTS)
    report_sections = Offered(SECTIONS)
    renderers = Offered(RENDERERS)
    executors = Offered(EXECUTORS)
    doctor_checks = Offered(DOCTOR_CHECKS)

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
        return self._relay.collect(CEILINGS, device=device)

    def options(
        self, command: str | None = None, *, taken: Iterable[str] = ()
    ) -> tuple[CommandOption[Any], ...]:
        """The options that plugins add to ``command``, or to any; ``taken`` are names of its own options."""
        self._taken.setdefault(command, set()).update(taken)
        free = []
        for offered in self.of(OPTIONS).contributions:
            name = offered.value.name
            if command is not None and command not in offered.value.commands:
                continue
            if name in self._taken[command] or any(name == setting.name for setting in SETTINGS):
                self._refuse(offered.plugin, f"{OPTIONS.noun} {name!r}", "core")
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
