"""What the product is made of: its bill of materials, its licences, and an audit that never fails a build."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def supply():
    spec = importlib.util.spec_from_file_location("supply_chain", ROOT / "tools/supply_chain.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_licence_of_what_users_get_is_allowed(supply):
    found = supply.required()
    assert {
        "rpl-core",
        "rpl-analysis",
        "rpl-mcp",
        "mcp",
        "cryptography",
        "click",
        "numpy",
        "pydantic-core",
    } <= set(found)
    assert "pytest" not in found
    assert supply.not_allowed(found) == {}


@pytest.mark.parametrize(
    ("facts", "classifiers", "stated", "allowed"),
    [
        ({"License-Expression": "MIT AND Apache-2.0"}, (), ("MIT", "Apache-2.0"), True),
        ({"License-Expression": "GPL-3.0-only"}, (), ("GPL-3.0-only",), False),
        ({"License": "MIT"}, (), ("MIT",), True),
        ({}, ("License :: OSI Approved :: BSD License",), ("BSD-3-Clause",), True),
        ({}, ("License :: Other/Proprietary License",), ("Other/Proprietary License",), False),
        ({}, (), ("not stated",), False),
    ],
)
def test_a_licence_is_read_as_the_metadata_states_it(supply, facts, classifiers, stated, allowed):
    assert supply.licence_of(facts, classifiers) == stated
    assert (set(stated) <= supply.ALLOWED) is allowed


def test_the_bill_holds_the_product_and_nothing_of_its_development(supply):
    bill = {
        "bomFormat": "CycloneDX",
        "components": [{"name": n, "bom-ref": n} for n in ("rpl_core", "click", "pytest")],
        "dependencies": [
            {"ref": "rpl_core", "dependsOn": ["click", "pytest"]},
            {"ref": "click"},
            {"ref": "pytest", "dependsOn": ["click"]},
        ],
    }
    kept = supply.only(bill, {"rpl-core", "click"})
    assert [one["name"] for one in kept["components"]] == ["rpl_core", "click"]
    assert kept["dependencies"] == [{"ref": "rpl_core", "dependsOn": ["click"]}, {"ref": "click"}]


def test_an_audit_that_can_not_ask_says_why_and_fails_nothing(supply, monkeypatch, capsys):
    def unreachable(command, **_):
        return subprocess.CompletedProcess(
            command, 1, "", "ERROR: ConnectionError: no route to the service\n"
        )

    monkeypatch.setattr(supply.subprocess, "run", unreachable)
    assert supply.audit() == 0
    assert "not done: ERROR: ConnectionError: no route to the service" in capsys.readouterr().out

    def silent(command, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(supply.subprocess, "run", silent)
    assert supply.audit() == 0
    assert "did not answer" in capsys.readouterr().out


def test_findings_are_told_and_fail_nothing(supply, monkeypatch, capsys):
    def found(command, **_):
        told = {"name": "click", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
        unknown = {"name": "numpy", "skip_reason": "not found on the index"}
        answer = json.dumps({"dependencies": [told, unknown]})
        return subprocess.CompletedProcess(command, 1, answer, "Found 1 known vulnerability\n")

    monkeypatch.setattr(supply.subprocess, "run", found)
    assert supply.audit() == 0
    said = capsys.readouterr().out
    assert "click 1.0: CVE-1, mended in 1.1" in said
    assert ": 1 of " in said  # what could not be looked up counts as nothing
    assert "not done for 1: not found on the index" in said


def test_the_build_makes_the_bill_and_the_example_signs_wheels():
    dist = (ROOT / "Makefile").read_text().split("\ndist:")[1].split("\n\n")[0]
    for step in ("sbom dist", "licences", "audit"):
        assert f"tools/supply_chain.py {step}" in dist
    workflow = (ROOT / "examples/release/sign-wheels.yml").read_text()
    for needed in ("id-token: write", "make dist", "sigstore", "attest"):
        assert needed in workflow


@pytest.mark.long
def test_the_tool_makes_a_bill_of_this_environment(tmp_path):
    pytest.importorskip("cyclonedx_py", reason="cyclonedx-bom is installed by `make dist`")
    command = [sys.executable, ROOT / "tools/supply_chain.py", "sbom", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    bill = json.loads((tmp_path / "rocm-perf-lab.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    names = {one["name"] for one in bill["components"]}
    assert {"rpl-core", "numpy"} <= names
    assert "pytest" not in names
