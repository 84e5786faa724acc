"""Analyzers turn a recording into facts; the core schedules them by what they need and give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.interfaces.fact import Fact, Facts
from rpl_core.interfaces.options import Options
from rpl_core.model.device import DeviceModel
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.recording import Recording
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.device import Architecture


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
