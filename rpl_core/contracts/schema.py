"""The JSON schemas of all documents, generated from the models; the committed copies are tested."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

_DOCUMENTS = {
    "analysis": "rpl_analysis.contracts.analysis:AnalysisDocument",
    "compare": "rpl_compare.contract:CompareDocument",
    "comparison": "rpl_compare.contract:ComparisonManifest",
    "dag": "rpl_analysis.contracts.dag:DagDocument",
    "history": "rpl_compare.contract:HistoryDocument",
    "optimize": "rpl_optimize.contracts.optimize:OptimizeDocument",
    "profile": "rpl_analysis.contracts.profile:ProfileDocument",
    "roofline": "rpl_analysis.contracts.roofline:RooflineDocument",
    "run": "rpl_core.contracts.run:RunManifest",
    "what-if": "rpl_analysis.contracts.what_if:WhatIfDocument",
}

DOCUMENT_NAMES = tuple(sorted(_DOCUMENTS))


def document_model(name: str) -> type[BaseModel]:
    """The pydantic model of document ``name``."""
    module, attribute = _DOCUMENTS[name].split(":")
    model: type[BaseModel] = getattr(importlib.import_module(module), attribute)
    return model


def json_schema(name: str) -> dict[str, Any]:
    """JSON schema (draft 2020-12) of document ``name`` as it is written."""
    generated = document_model(name).model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **generated}
