"""The kinds of contribution: which hook returns them, which class they have, what names them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import attrs


@attrs.frozen
class ContributionKind:
    """``identity`` is the attribute that names a contribution, ``required_text`` must be non-empty text.

    ``type_path`` is imported on first use, so that a host costs only what is asked of it.
    """

    hook: str
    title: str
    type_path: str
    identity: str = "name"
    required_text: tuple[str, ...] = ("summary",)
    numbers: tuple[str, ...] = ()
    name_sets: tuple[str, ...] = ()

    def expected_type(self) -> type[Any]:
        module, _, name = self.type_path.partition(":")
        found: type[Any] = getattr(import_module(module), name)
        return found

    def identity_of(self, item: Any) -> str:
        return str(getattr(item, self.identity))

    def violation(self, item: Any) -> str | None:
        """What is wrong with one returned item, or ``None``. Runs attribute access of plugin classes."""
        if not isinstance(item, self.expected_type()):
            return f"returned {_article(type(item).__name__)} where {_article(self.title)} was expected"
        name = getattr(item, self.identity, None)
        if not isinstance(name, str) or not name or not name.isprintable() or " " in name:
            return f"{_article(self.title)} has the unusable {self.identity} {name!r}"
        for attribute in self.required_text:
            if not isinstance(getattr(item, attribute, None), str):
                return f"{self.title} {name!r} has no text in {attribute!r}"
        for attribute in self.numbers:
            value = getattr(item, attribute, None)
            if not isinstance(value, int) or isinstance(value, bool):
                return f"{self.title} {name!r} has no whole number in {attribute!r}"
        for attribute in self.name_sets:
            value = getattr(item, attribute, None)
            if not isinstance(value, (set, frozenset)) or not all(isinstance(v, str) for v in value):
                return f"{self.title} {name!r} has no set of names in {attribute!r}"
        return None


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


#: One entry per collecting hook, in the order of ``rpl_core.hookspecs``.
KINDS: tuple[ContributionKind, ...] = (
    ContributionKind(
        "rpl_device_models",
        "DeviceModel",
        "rpl_core.model.device:DeviceModel",
        required_text=("architecture",),
    ),
    ContributionKind("rpl_collectors", "Collector", "rpl_core.interfaces.collector:Collector"),
    ContributionKind("rpl_readers", "Reader", "rpl_core.interfaces.reader:Reader", numbers=("priority",)),
    ContributionKind(
        "rpl_analyzers",
        "Analyzer",
        "rpl_core.interfaces.analyzer:Analyzer",
        name_sets=("requires", "provides"),
    ),
    ContributionKind(
        "rpl_classifier_rules",
        "Rule",
        "rpl_core.interfaces.rule:Rule",
        identity="id",
        required_text=("explanation",),
        numbers=("priority",),
    ),
    ContributionKind(
        "rpl_transformations", "Transformation", "rpl_core.interfaces.transformation:Transformation"
    ),
    ContributionKind("rpl_proposers", "Proposer", "rpl_core.interfaces.proposer:Proposer"),
    ContributionKind(
        "rpl_equivalence_checks", "EquivalenceCheck", "rpl_core.interfaces.equivalence:EquivalenceCheck"
    ),
    ContributionKind("rpl_replayers", "Replayer", "rpl_core.interfaces.replayer:Replayer"),
    ContributionKind(
        "rpl_renderers",
        "Renderer",
        "rpl_core.interfaces.renderer:Renderer",
        required_text=("summary", "suffix"),
    ),
    ContributionKind("rpl_doctor_checks", "DoctorCheck", "rpl_core.interfaces.doctor:DoctorCheck"),
)

BY_HOOK = {kind.hook: kind for kind in KINDS}
