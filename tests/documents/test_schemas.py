"""The committed schemas are those of the models, and the documented example follows them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import jsonschema
import pytest

from rpl_analysis.contracts.profile import ProfileDocument

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
DOCUMENT_NAMES = (
    *("analysis", "autotune", "compare", "comparison", "dag", "history"),
    *("optimize", "profile", "ranks", "roofline", "run", "search-space", "selftest", "what-if"),
)


def json_schema(name):
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


#: kalowery/rocm-perf-lab @112862e5 docs/USER_GUIDE.md, section 4.2, with the ellipses filled in as sections 4
#: to 7 describe them.
MANUAL_EXAMPLE = {
    "schema_version": "1.0",
    "kernel": {"name": "vector_add", "grid": [4096, 1, 1], "block": [256, 1, 1]},
    "gpu": {
        "architecture": "gfx1030",
        "wave_size": 32,
        "compute_units": 80,
        "theoretical_peak_flops": 23.04e12,
    },
    "runtime_ms": 0.012,
    "stability": {
        "runs": 3,
        "mean_ms": 0.012,
        "stddev_ms": 0.0003,
        "cv": 0.025,
        "classification": "stable",
    },
    "resources": {"vgpr_per_thread": 24, "sgpr_per_wave": 16, "lds_bytes": 0},
    "occupancy": {"theoretical": 0.75, "threads_per_block": 256, "wave_size": 32},
    "roofline": None,
}


def test_committed_files_are_those_of_the_models():
    spec = importlib.util.spec_from_file_location(
        "write_schemas", SCHEMAS.parents[1] / "tools" / "write_schemas.py"
    )
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    generated = tool.schemas()
    assert [path for path, text in generated.items() if path.read_text() != text] == [], "run `make schemas`"
    assert {p.name for p in generated if p.parent == SCHEMAS} == {p.name for p in SCHEMAS.iterdir()}


@pytest.mark.parametrize("name", DOCUMENT_NAMES)
def test_schema_is_a_valid_schema(name):
    jsonschema.Draft202012Validator.check_schema(json_schema(name))


def test_no_schema_is_committed_for_a_document_that_is_gone():
    assert sorted(path.name for path in SCHEMAS.iterdir()) == [f"{n}.schema.json" for n in DOCUMENT_NAMES]


def test_schema_command_prints_the_committed_schema(rpl_cli):
    for name in DOCUMENT_NAMES:
        assert rpl_cli("schema", name).assert_ok().stdout == (SCHEMAS / f"{name}.schema.json").read_text()
    assert rpl_cli("schema").stdout.split() == list(DOCUMENT_NAMES)


def test_documented_example_validates():
    ProfileDocument.model_validate(MANUAL_EXAMPLE)
    jsonschema.validate(MANUAL_EXAMPLE, json_schema("profile"))


@pytest.mark.parametrize("missing", sorted(MANUAL_EXAMPLE))
def test_every_member_of_the_documented_example_is_required(missing):
    example = {key: value for key, value in MANUAL_EXAMPLE.items() if key != missing}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(example, json_schema("profile"))


@pytest.mark.parametrize("name", DOCUMENT_NAMES)
def test_unknown_members_are_refused(name):
    schema = json_schema(name)
    if "properties" in schema:  # else it is a choice of the parts below
        assert schema["additionalProperties"] is False
    assert all(part.get("additionalProperties", False) is False for part in schema["$defs"].values())
