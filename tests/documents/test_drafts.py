"""Documents are written from drafts, which are checked as strictly as the models and give the same bytes."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from rpl_analysis.contracts import contract_of, plain_values
from rpl_analysis.contracts.dag import GraphResult
from rpl_analysis.contracts.roofline import TypeWorkPart
from rpl_analysis.documents import AnalysisKind, DagKind, ProfileKind, RooflineKind
from rpl_core import documents
from rpl_core.documents import Documents, Fields, check_draft, to_json
from rpl_core.model.device import Pipe
from rpl_core.model.metric import Exactness, Metric

KINDS = {kind.name: kind for kind in (ProfileKind(), RooflineKind(), DagKind(), AnalysisKind())}


@pytest.fixture
def drafts():
    base = {"schema_version": "1.0"}
    empty = {name: Fields() for name in ("kernel", "gpu", "stability", "resources", "occupancy")}
    return {
        "profile": Fields(base, runtime_ms=2, roofline=None, **empty),
        "roofline": Fields(base, status="not_collected"),
        "dag": Fields(base, status="unavailable", reason="none"),
        "analysis": Fields(base),
    }


def test_a_record_is_written_with_its_figures_and_without_what_stays_inside():
    figure = Metric(2.0, "FLOP", Exactness.INTERVAL, upper=3.0)
    draft = plain_values(TypeWorkPart("F32", Pipe.MFMA, figure, Metric.unknown("GOP/s", "no time")))
    model = contract_of(TypeWorkPart).model_validate(draft)
    assert draft.keys() == type(model).model_fields.keys() == {"data_type", "pipe", "operations", "gops"}
    assert (draft["pipe"], draft["operations"]["exactness"]) == ("mfma", "interval")
    assert {name: getattr(model.operations, name) for name in draft["operations"]} == draft["operations"]


def test_an_infinite_factor_is_null_and_an_infinite_figure_a_mistake():
    assert (
        plain_values(GraphResult(status="available", speedup_ceiling=float("inf")))["speedup_ceiling"] is None
    )
    work = TypeWorkPart("F32", Pipe.MFMA, Metric(float("inf"), "FLOP"), Metric(1.0, "GOP/s"))
    with pytest.raises(ValidationError, match="finite"):
        contract_of(TypeWorkPart).model_validate(plain_values(work))


def test_defaults_are_filled_in_as_the_models_do(drafts):
    contents = {name: check_draft(kind.shape(), drafts[name]) for name, kind in KINDS.items()}
    documents = Documents(list(KINDS.values()), contents)
    for name, kind in KINDS.items():
        assert documents.json(name) == to_json(kind.model().model_validate(drafts[name]))
    assert documents.content("profile")["runtime_ms"] == 2.0
    assert documents.model("profile") == KINDS["profile"].model().model_validate(drafts["profile"])


def test_mappings_of_defaults_are_not_shared(drafts):
    shape = KINDS["analysis"].shape()
    first, second = check_draft(shape, drafts["analysis"]), check_draft(shape, drafts["analysis"])
    assert first["extensions"] is not second["extensions"]


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
    draft = Fields(drafts[document], **fields)
    with pytest.raises(ValidationError):
        KINDS[document].model().model_validate(draft)
    with pytest.raises(ValidationError):
        check_draft(KINDS[document].shape(), draft)


def test_a_draft_names_what_was_not_given():
    assert Fields(name="k").name == "k"
    with pytest.raises(AttributeError, match="'reason'"):
        _ = Fields(name="k").reason


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
    from rpl_core.pipeline import AnalysisRequest, analyse_paths

    documents, _ = analyse_paths(
        [rpl_shared_data / place],
        AnalysisRequest(),
        rpl_host("analysis", "codeobject", "rocprofv3", "gfx942", "amdgpu", "att"),
    )
    for name, model in documents.by_name().items():
        assert documents.json(name) == to_json(model)
        assert documents.content(name).keys() == type(model).model_fields.keys()


def test_an_engine_is_seen_by_others_once_it_is_whole(monkeypatch):
    name, made = "pydantic_core._pydantic_core", []

    class Loader:
        def create_module(self, spec):
            return None

        def exec_module(self, module):
            made.append(name in sys.modules)
            if len(made) == 1:
                raise ImportError("out of memory")

    monkeypatch.setitem(sys.modules, name, None)
    del sys.modules[name]
    found = SimpleNamespace(find_spec=lambda *_: ModuleSpec(name, Loader()))
    monkeypatch.setattr(documents, "PathFinder", found)
    with pytest.raises(ImportError):
        documents._pydantic_engine()
    engine = documents._pydantic_engine()
    assert made == [False, False]
    assert documents._pydantic_engine() is engine is sys.modules[name]
