"""``roofline.json`` and the block of ``profile.json`` repeat the analysis and say why a value is null."""

from __future__ import annotations

import json

import pytest

from rpl_analysis.contracts import contract_of
from rpl_analysis.contracts.roofline import RooflineDocument, RooflinePart, RooflineResult, RooflineStatus
from rpl_analysis.documents import document_fields, roofline_in_short
from rpl_analysis.roofline import device_ceilings


@pytest.fixture
def result(place, make_device):
    def build(figures, **more):
        device = make_device()
        return RooflineResult(
            status=RooflineStatus.AVAILABLE,
            requested_flop_model="per_op",
            device=device.name,
            ceilings=device_ceilings(device),
            kernels=(place(figures, **more),),
        )

    return build


def roofline_document(result):
    return RooflineDocument.model_validate(document_fields(result))


def in_short(result):
    return contract_of(RooflinePart).model_validate(roofline_in_short(result.kernels[0]))


_FIGURES = {"flops": 4000, "valu_flops_f32": 4000, "flops_valu_width": 500, "hbm_bytes": 50_000}


def test_the_document_survives_a_round_trip(result):
    document = roofline_document(result(_FIGURES))
    assert RooflineDocument.model_validate_json(document.model_dump_json()) == document


def test_the_block_of_a_profile_has_the_documented_figures(result):
    part = in_short(result(_FIGURES))
    block = json.loads(part.model_dump_json())
    assert set(block.pop("exactness_of").values()) == {"exact"}
    assert block.pop("upper_of") == {}
    assert block == {
        "flops": 4000.0,
        "bytes": 50000.0,
        "operational_intensity": 0.08,
        "achieved_gflops": 4.0,
        "achieved_gbps": 50.0,
        "bound": "memory",
        "position": 0.5,
        "flop_model": "per_op",
        "models": {"per_op": 4000.0, "valu_width": 500.0, "ratio": 0.125},
        "exactness": "exact",
        "missing": [],
        "partial": [],
        "reasons": {},
        "exceeds_ceiling": [],
    }


def test_every_null_of_the_block_has_a_reason(result):
    part = in_short(result({"flops": None, "hbm_bytes": 50_000}, time_ns=None))
    nulls = {name for name, value in part.model_dump().items() if value is None and name != "flop_model"}
    assert nulls == set(part.reasons)
    assert part.missing == ("X",)


def test_a_kernel_without_any_figure_has_no_block(result):
    assert roofline_in_short(result({"flops": None, "hbm_bytes": None}).kernels[0]) is None


def test_ceilings_are_listed_with_origin_and_source(result):
    ceilings = roofline_document(result(_FIGURES)).ceilings
    assert {(c.level, c.peak_gbps, c.origin, c.source) for c in ceilings.memory} == {
        ("hbm", 100.0, "spec", "sheet"),
        ("hbm", 80.0, "measured", "benchmark"),
        ("l2", 400.0, "spec", "sheet"),
    }


def test_a_kernel_carries_both_models_with_their_formulas(result):
    kernel = roofline_document(result(_FIGURES)).kernels[0]
    assert (kernel.models.per_op.value, kernel.models.valu_width.value, kernel.models.ratio) == (
        4000,
        500,
        0.125,
    )
    assert (kernel.dominant_type, kernel.dominant_pipe, kernel.spec.ridge) == ("F32", "valu", 10)
    assert kernel.bound_reason == "0.08 FLOP/B against a spec ridge of 10"


def test_a_missing_roofline_says_why_and_how_to_get_one():
    result = RooflineResult(
        status=RooflineStatus.NOT_COLLECTED,
        requested_flop_model="per_op",
        reason="no counter pass",
        how_to_collect="rpl profile --roofline",
    )
    document = roofline_document(result)
    assert (document.status, document.reason) == ("not_collected", "no counter pass")
    assert document.how_to_collect == "rpl profile --roofline"


def test_the_block_accepts_no_unknown_field():
    with pytest.raises(ValueError, match="extra"):
        contract_of(RooflinePart).model_validate({"flopz": 1})


def test_types_without_any_operation_are_left_out(result):
    kernel = roofline_document(result({**_FIGURES, "valu_flops_f64": 0, "mfma_flops_f16": None})).kernels[0]
    assert [(work.data_type, work.operations.value) for work in kernel.types] == [
        ("F32", 4000),
        ("F16", None),
    ]
