"""The kinds of contribution, each described once: hook, class, name and checks.

The relay, the catalogue, the contract checks of the test kit and the hook reference are driven by these.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rpl_core.model.value_checks import attribute_violation, value_violation
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.document import DocumentContract, DocumentSection
    from rpl_core.interfaces.executor import Executor
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.renderer import Renderer
    from rpl_core.interfaces.section import ReportSection
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling

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
    from rpl_core.interfaces.fact import Fact

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
    (f"{_INTERFACES}.renderer:Renderer",),
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
