"""Analyzers turn a recording into facts; the core schedules them by what they need and give.

Facts are what analyzers give each other and documents are made from, each behind a typed key.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import attrs

from rpl_core.interfaces.options import Options
from rpl_core.model.device import Architecture, DeviceModel
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import Metric
from rpl_core.model.recording import Recording
from rpl_core.model.value_checks import value_violation
from rpl_core.values import frozen

T = TypeVar("T")


@frozen
class Fact(Generic[T]):
    """The key of one fact.

    ``kind`` is the class of the value, checked where the fact is given; ``None`` is always allowed and means
    that nothing was found. A ``published`` fact is JSON-ready and stands in ``analysis.json`` under
    ``extensions`` by its name.
    """

    name: str
    kind: type[Any] | tuple[type[Any], ...] = attrs.field(default=object, eq=False, repr=False)
    published: bool = attrs.field(default=False, eq=False, kw_only=True, repr=False)

    def __hash__(self) -> int:
        return hash(self.name)  # alone: keys are looked up some hundred times in an analysis

    def violation(self, value: object) -> str | None:
        """Why ``value`` can't be this fact, or ``None``."""
        if value is None:
            return None
        if isinstance(value, self.kind):
            problem = value_violation(value) if isinstance(value, Metric) else None
            return self._unpublishable(value) if self.published else problem
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        wanted = " or ".join(kind.__name__ for kind in kinds)
        return f"the fact {self.name!r} is {wanted}, not {type(value).__name__}"

    def _unpublishable(self, value: object) -> str | None:
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
        except (TypeError, ValueError, RecursionError) as error:
            return f"the fact {self.name!r} can't be written as JSON: {error}"
        return None


@frozen
class KernelFigure(Fact[Mapping[str, Metric]]):
    """A scalar fact of every kernel: kernel name -> ``Metric``. Rules can test it by its name."""

    kind: type[Any] | tuple[type[Any], ...] = attrs.field(default=Mapping, eq=False, repr=False)

    def violation(self, value: object) -> str | None:
        problem = super().violation(value)
        if problem is not None or value is None:
            return problem
        assert isinstance(value, Mapping)
        for kernel, metric in value.items():
            sound = isinstance(kernel, str) and isinstance(metric, Metric)
            problem = value_violation(metric) if sound else f"found {metric!r:.60}"
            if problem is not None:
                return f"the fact {self.name!r} maps kernel names to sound Metrics: {problem}"
        return None


@frozen
class AppFigure(Fact[Metric]):
    """A scalar fact of the whole application. Rules can test it by its name, for every kernel alike."""

    kind: type[Any] | tuple[type[Any], ...] = attrs.field(default=Metric, eq=False, repr=False)


class Facts:
    """A read-only view of facts by key: ``facts[KEY]`` has the type of the key.

    Mappings and lists in it are handed out as they are; a fact that is a plain dict is given read-only.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Fact[Any], Any] = MappingProxyType({})) -> None:
        self._values: dict[Fact[Any], Any] = {
            k: MappingProxyType(v) if type(v) is dict else v for k, v in values.items()
        }

    def __getitem__(self, key: Fact[T]) -> T:
        """The value; ``KeyError`` for a fact that nobody gave. A fact given as ``None`` is ``None``."""
        value: T = self._values[key]
        return value

    def get(self, key: Fact[T]) -> T | None:
        """The value, or ``None`` when nobody gave it."""
        return self._values.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[Fact[Any]]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def figures(self, kernel: str) -> Mapping[str, Metric]:
        """All scalar facts of ``kernel`` by name, those of the application included."""
        of_kernel: dict[str, Metric] = {}
        for key, value in self._values.items():
            if value is None:
                continue
            if isinstance(key, AppFigure):
                of_kernel[key.name] = value
            elif isinstance(key, KernelFigure) and kernel in value:
                of_kernel[key.name] = value[kernel]
        return of_kernel

    def with_values(self, values: Mapping[Fact[Any], Any]) -> Facts:
        """A view that holds ``values`` too."""
        return Facts({**self._values, **values})


@frozen(eq=False)
class AnalysisContext:
    """What an analyzer sees.

    ``facts`` holds what earlier analyzers gave. ``architecture`` gives what the installed plugins know of an
    instruction set, by its name, ``offered`` what they offer of a ``ContributionKind`` for this device, by
    descending priority where there is one.
    """

    recording: Recording
    device: DeviceModel | None
    options: Options = attrs.field(factory=Options)
    facts: Facts = attrs.field(factory=Facts)
    architecture: Callable[[str], Architecture | None] = attrs.field(default=lambda _name: None)
    offered: Callable[[Any], Iterable[Any]] = attrs.field(default=lambda _kind: ())


@frozen
class AnalysisOutcome:
    """``facts`` must hold exactly the keys in ``Analyzer.provides``, ``None`` where nothing was found.

    ``remarks`` are sentences about the machine that the provenance of every document carries.
    """

    facts: Mapping[Fact[Any], Any]
    diagnostics: tuple[Diagnostic, ...] = ()
    remarks: tuple[str, ...] = ()


class Analyzer(ABC):
    """One step of the analysis.

    It does not run without the facts in ``requires``. Those in ``wants`` are there when somebody gives them,
    and are then computed before it; with ``wants_figures`` so are all scalar facts (``KernelFigure``,
    ``AppFigure``) of other analyzers.
    """

    name: str
    summary: str
    requires: frozenset[Fact[Any]] = frozenset()
    wants: frozenset[Fact[Any]] = frozenset()
    provides: frozenset[Fact[Any]] = frozenset()
    wants_figures: bool = False

    @abstractmethod
    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        """Compute the facts. Must be deterministic and must not touch files, clocks or the network."""
