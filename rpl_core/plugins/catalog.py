"""Contributions by name. Names are unique: of two equal ones the first in plugin order stays."""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rpl_core.errors import MissingError
from rpl_core.plugins.kinds import BY_HOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.equivalence import EquivalenceCheck
    from rpl_core.interfaces.proposer import Proposer
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.renderer import Renderer
    from rpl_core.interfaces.replayer import Replayer
    from rpl_core.interfaces.rule import Rule
    from rpl_core.interfaces.transformation import Transformation
    from rpl_core.model.device import DeviceModel
    from rpl_core.plugins.diagnostic_log import DiagnosticLog
    from rpl_core.plugins.relay import Contribution, HookRelay

T = TypeVar("T")


class NamedContributions(Generic[T]):
    """An ordered, read-only collection of uniquely named contributions; iterates over the values."""

    def __init__(self, noun: str, entries: Iterable[tuple[str, Contribution[T]]]) -> None:
        self.noun = noun
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
        similar = difflib.get_close_matches(name, self.names, n=1)
        raise MissingError(
            f"unknown {self.noun} {name!r}; known: {known}",
            next_step=f"did you mean {similar[0]!r}?" if similar else "see `rpl plugins list`",
        )

    def plugin_of(self, name: str) -> str:
        """The plugin that offered ``name``."""
        return self._entries[name].plugin


class Catalog:
    """Everything the loaded plugins offer, asked for once and kept for the life of the host."""

    def __init__(self, relay: HookRelay, log: DiagnosticLog) -> None:
        self._relay = relay
        self._log = log
        self._kept = cache(self._collect)

    def devices(self) -> NamedContributions[DeviceModel]:
        return self._kept("device", "rpl_device_models", self._relay.device_models)

    def collectors(self) -> NamedContributions[Collector]:
        return self._kept("collector", "rpl_collectors", self._relay.collectors)

    def readers(self) -> NamedContributions[Reader]:
        """Highest priority first, then plugin order."""
        return self._kept("reader", "rpl_readers", self._readers_by_priority)

    def analyzers(self) -> NamedContributions[Analyzer]:
        """In plugin order, not yet scheduled; no two provide the same fact."""
        return self._kept("analyzer", "rpl_analyzers", self._analyzers_with_own_facts)

    def rules(self, device: DeviceModel | None) -> NamedContributions[Rule]:
        """Rules for ``device``, in the order in which they apply: priority, plugin, id."""
        found = self._relay.classifier_rules(device)
        ordered = sorted(found, key=lambda c: (-c.value.priority, c.plugin, c.value.id))
        return self._named("rule", "rpl_classifier_rules", ordered)

    def transformations(self) -> NamedContributions[Transformation]:
        return self._kept("transformation", "rpl_transformations", self._relay.transformations)

    def proposers(self) -> NamedContributions[Proposer]:
        return self._kept("proposer", "rpl_proposers", self._relay.proposers)

    def equivalence_checks(self) -> NamedContributions[EquivalenceCheck]:
        return self._kept("equivalence check", "rpl_equivalence_checks", self._relay.equivalence_checks)

    def replayers(self) -> NamedContributions[Replayer]:
        return self._kept("replayer", "rpl_replayers", self._relay.replayers)

    def renderers(self) -> NamedContributions[Renderer]:
        return self._kept("output format", "rpl_renderers", self._relay.renderers)

    def doctor_checks(self) -> NamedContributions[DoctorCheck]:
        return self._kept("doctor check", "rpl_doctor_checks", self._relay.doctor_checks)

    def _collect(
        self, noun: str, hook: str, ask: Callable[[], tuple[Contribution[Any], ...]]
    ) -> NamedContributions[Any]:
        return self._named(noun, hook, ask())

    def _named(self, noun: str, hook: str, found: Iterable[Contribution[Any]]) -> NamedContributions[Any]:
        kept: dict[str, Contribution[Any]] = {}
        for contribution in found:
            name = BY_HOOK[hook].identity_of(contribution.value)
            if name in kept:
                self._refuse(contribution.plugin, f"{noun} {name!r}", kept[name].plugin)
            else:
                kept[name] = contribution
        return NamedContributions(noun, kept.items())

    def _refuse(self, plugin: str, what: str, owner: str) -> None:
        self._log.warn(
            "plugin.duplicate",
            f"plugin {plugin!r} offers {what}, which plugin {owner!r} already offers; the latter is used",
            where=f"plugin {plugin}",
            remedy=f"disable one of them, e.g. with `--disable-plugin {plugin}`",
        )

    def _readers_by_priority(self) -> tuple[Contribution[Reader], ...]:
        return tuple(sorted(self._relay.readers(), key=lambda c: -c.value.priority))

    def _analyzers_with_own_facts(self) -> tuple[Contribution[Analyzer], ...]:
        owners: dict[str, str] = {}
        kept = []
        for contribution in self._relay.analyzers():
            taken = sorted(contribution.value.provides & owners.keys())
            if taken:
                self._refuse(contribution.plugin, f"the fact {taken[0]!r}", owners[taken[0]])
                continue
            owners.update(dict.fromkeys(contribution.value.provides, contribution.plugin))
            kept.append(contribution)
        return tuple(kept)
