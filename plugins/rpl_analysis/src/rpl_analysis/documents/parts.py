"""The parts of the four documents: to type checkers the models of the contracts, at run time drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "AnalysisDocument",
    "ApplicationRooflineDoc",
    "CeilingsPart",
    "ComputeCeilingDoc",
    "ConditionEvidence",
    "CriticalPathPart",
    "DagDocument",
    "FlopModelMetrics",
    "FlopModelsPart",
    "GpuPart",
    "KernelAnalysis",
    "KernelPart",
    "KernelProfile",
    "KernelRooflineDoc",
    "LevelPart",
    "MemoryCeilingDoc",
    "OccupancyPart",
    "ProfileDocument",
    "ResourcesPart",
    "RoofPart",
    "RooflineDocument",
    "RooflinePart",
    "RuleEvidence",
    "TypeWorkPart",
]

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import (
        AnalysisDocument,
        ConditionEvidence,
        KernelAnalysis,
        RuleEvidence,
    )
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import (
        CriticalPathPart,
        GpuPart,
        KernelPart,
        KernelProfile,
        OccupancyPart,
        ProfileDocument,
        ResourcesPart,
    )
    from rpl_analysis.contracts.roofline import (
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
    from rpl_core.documents import Draft

    globals().update(dict.fromkeys(__all__, Draft))
