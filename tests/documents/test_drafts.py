"""Documents are written from drafts, which are checked as strictly as the models and give the same bytes."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from rpl_analysis.contracts import analysis, dag, profile, roofline
from rpl_analysis.documents import parts
from rpl_core.contracts import common
from rpl_core.contracts.shape_table import read_shapes
from rpl_core.contracts.shapes import ANALYSIS_DOCUMENTS, document_shapes
from rpl_core.documents.bundle import Documents, to_json
from rpl_core.documents.drafts import Draft, as_model, check_drafts


@pytest.fixture
def drafts():
    base = {"schema_version": "1.0"}
    empty = {name: Draft() for name in ("kernel", "gpu", "stability", "resources", "occupancy")}
    return {
        "profile": Draft(base, runtime_ms=2, roofline=None, **empty),
        "roofline": Draft(base, status="not_collected"),
        "dag": Draft(base, status="unavailable", reason="none"),
        "analysis": Draft(base),
    }


def test_the_committed_shapes_are_those_of_the_models():
    assert read_shapes() == json.loads(json.dumps(document_shapes())), "run `make schemas`"


def test_every_part_is_a_part_of_the_contracts():
    contracts = (analysis, common, dag, profile, roofline)
    assert [name for name in parts.__all__ if not any(hasattr(module, name) for module in contracts)] == []


def test_defaults_are_filled_in_as_the_models_do(drafts):
    documents = Documents.drafted(drafts, None)
    for name in ANALYSIS_DOCUMENTS:
        assert documents.json(name) == to_json(as_model(name, drafts[name]))
    assert documents.content("profile")["runtime_ms"] == 2.0
    assert documents.profile == as_model("profile", drafts["profile"])


def test_mappings_of_defaults_are_not_shared(drafts):
    first, second = check_drafts(drafts), check_drafts(drafts)
    assert first["analysis"]["extensions"] is not second["analysis"]["extensions"]


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ("profile", {"runtime_ms": float("nan")}),
        ("profile", {"launches": float("inf")}),
        ("profile", {"kernel": {"nmae": "k"}}),
        ("profile", {"kernel": {"grid": ()}}),
        ("profile", {"headroom_fraction": 1.5}),
        ("profile", {"stability": {"classification": "calm"}}),
        ("profile", {"schema_version": "2.0"}),
        ("dag", {"nodes": "many"}),
        ("dag", {"symbols": [{"name": "k"}]}),
        ("analysis", {"unknown_field": 1}),
        ("roofline", {"status": None}),
    ],
)
def test_a_draft_is_refused_where_the_model_is(document, fields, drafts):
    drafts[document].update(fields)
    with pytest.raises(ValidationError):
        as_model(document, drafts[document])
    with pytest.raises(ValidationError):
        check_drafts(drafts)


def test_a_draft_names_what_was_not_given():
    assert Draft(name="k").name == "k"
    with pytest.raises(AttributeError, match="'reason'"):
        _ = Draft(name="k").reason


@pytest.mark.data
@pytest.mark.parametrize(
    "place",
    [
        "rocpd/synthetic-gfx942",
        "rocpd/vllm-mi300x-8gpu-rpd",
        "att/gfx950_wave_gemm",
        "counters_gfx942/path_MI300X_A1",
        "counters_gfx942/vcopy_MI300X_A1_rocpd",
    ],
)
def test_real_recordings_give_the_bytes_of_the_models(place, rpl_shared_data, rpl_host):
    from rpl_core.pipeline.analyse import AnalysisRequest
    from rpl_core.pipeline.offline import analyse_only

    documents = analyse_only(
        [rpl_shared_data / place], AnalysisRequest(), rpl_host("core", "rocprofv3", "gfx942", "att")
    )
    for name, model in documents.by_name().items():
        assert documents.json(name) == to_json(model)
        assert documents.content(name).keys() == type(model).model_fields.keys()
