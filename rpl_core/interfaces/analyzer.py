"""Analyzers turn a recording into facts by name; the core schedules them by what they need and give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import attrs

from rpl_core.model.device import DeviceModel
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.recording import Recording


@attrs.frozen
class AnalysisOptions:
    """What the user chose for the analysis; every field has the documented default."""

    flop_model: str = "per_op"  # or "valu_width"
    strict: bool = False  # no estimates where a measurement is missing
    occupancy_mode: str = "hardware"  # or "llvm"
    include_copies: bool = True
    full_graph: bool = False  # keep every node and edge of the execution graph for dag_full.npz


@attrs.frozen(eq=False)
class AnalysisContext:
    """What an analyzer sees.

    ``facts`` holds what earlier analyzers provided, by name, and from the core ``"classifier_rules"``: all
    rules in order of precedence, and ``"kernel_code"``: the code of recorded kernels as far as it is at hand.
    """

    recording: Recording
    device: DeviceModel | None
    options: AnalysisOptions
    facts: Mapping[str, Any]


@attrs.frozen
class AnalysisOutcome:
    """``facts`` must hold exactly the names in ``Analyzer.provides``, ``None`` where nothing was found."""

    facts: Mapping[str, Any]
    diagnostics: tuple[Diagnostic, ...] = ()


class Analyzer(ABC):
    """One step of the analysis.

    ``requires`` and ``provides`` name facts or quantities ("kernel_times", "hbm_bytes"), never counters.
    A fact that a third-party analyzer provides appears in ``analysis.json`` under ``extensions`` and must
    then be JSON-ready.
    """

    name: str
    summary: str
    requires: frozenset[str] = frozenset()
    provides: frozenset[str] = frozenset()

    @abstractmethod
    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        """Compute the facts. Must be deterministic and must not touch files, clocks or the network."""
