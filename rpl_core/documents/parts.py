"""The parts of the four documents: to type checkers the models of the contracts, at run time drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "AnalysisDocument",
    "ApplicationRooflineDoc",
    "ArtefactDoc",
    "CeilingsPart",
    "ComputeCeilingDoc",
    "ConditionEvidence",
    "CriticalPathPart",
    "DagDocument",
    "DiagnosticDoc",
    "FlopModelMetrics",
    "FlopModelsPart",
    "GpuPart",
    "KernelAnalysis",
    "KernelPart",
    "KernelProfile",
    "KernelRooflineDoc",
    "LevelPart",
    "MemoryCeilingDoc",
    "MetricDoc",
    "OccupancyPart",
    "ProfileDocument",
    "ProvenanceDoc",
    "ResourcesPart",
    "RoofPart",
    "RooflineDocument",
    "RooflinePart",
    "RuleEvidence",
    "StabilityPart",
    "TypeWorkPart",
]

if TYPE_CHECKING:
    from rpl_core.contracts.analysis import AnalysisDocument, ConditionEvidence, KernelAnalysis, RuleEvidence
    from rpl_core.contracts.common import ArtefactDoc, DiagnosticDoc, MetricDoc, ProvenanceDoc
    from rpl_core.contracts.dag import DagDocument
    from rpl_core.contracts.profile import (
        CriticalPathPart,
        GpuPart,
        KernelPart,
        KernelProfile,
        OccupancyPart,
        ProfileDocument,
        ResourcesPart,
        StabilityPart,
    )
    from rpl_core.contracts.roofline import (
        ApplicationRooflineDoc,
        CeilingsPart,
        ComputeCeilingDoc,
        FlopModelMetrics,
        FlopModelsPart,
        KernelRooflineDoc,
        LevelPart,
        MemoryCeilingDoc,
        RooflineDocument,
        RooflinePart,
        RoofPart,
        TypeWorkPart,
    )
else:
    from rpl_core.documents.drafts import Draft

    globals().update(dict.fromkeys(__all__, Draft))
