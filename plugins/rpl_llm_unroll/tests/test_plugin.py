"""The plugin module states its API, registers both hooks, imports nothing heavy, and keeps the contracts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rpl_llm_unroll import plugin
from rpl_optimize.interfaces.proposer import ProposalRequest
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_testkit.contracts.optimizer_parts import assert_proposer
from rpl_testkit.contracts.transformation import assert_transformation

_CORPUS = Path(__file__).parent / "corpus"


def _source(name: str) -> KernelSource:
    return KernelSource(f"{name}.hip", (_CORPUS / f"{name}.hip").read_bytes())


def test_the_transformation_keeps_its_contract():
    (unroll,) = plugin.rpl_transformations()
    assert_transformation(unroll, _source("safe_two_kernels"))


def test_the_proposer_keeps_its_contract():
    proposer, language_model = plugin.rpl_proposers()
    assert (proposer.name, language_model.name) == ("deterministic", "llm")
    assert_proposer(proposer, ProposalRequest(_source("safe_nest"), {}))


def test_importing_the_plugin_imports_no_parser():
    heavy = "[m for m in ('tree_sitter', 'rpl_llm_unroll.transformation') if m in sys.modules]"
    code = f"import sys, rpl_llm_unroll.plugin; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_lists_refusals_with_guard_line_and_reason(rpl_cli):
    result = rpl_cli("transform", str(_CORPUS / "barrier_direct.hip"), "--json")
    assert result.exit_code == 0
    (candidate,) = [c for c in result.json()["candidates"] if c["transformation"] == "unroll"]
    (refusal,) = [g for g in candidate["guards"] if not g["passed"]]
    assert (refusal["guard"], refusal["line"]) == ("barrier", 4)
    assert "__syncthreads" in refusal["reason"]


def test_the_command_prints_the_unrolled_source(rpl_cli):
    path = _CORPUS / "safe_static_lds.hip"
    result = rpl_cli("transform", str(path), "--apply", "unroll:tile-L6-pragma4")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[5].startswith('  _Pragma("unroll 4") for (')
    assert result.stdout.replace('_Pragma("unroll 4") ', "") == path.read_text()


def test_copies_in_the_source_are_no_candidates_any_more(rpl_cli):
    path = str(_CORPUS / "safe_static_lds.hip")
    result = rpl_cli("transform", path, "--apply", "unroll:tile-L6-explicit4")
    assert result.exit_code == 64
    assert "unroll:tile-L6-pragma2" in result.stderr
