"""The plugin module states its API, registers its hook, imports nothing heavy, and keeps the contract."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rpl_llm_unroll import plugin
from rpl_optimize.interfaces.proposer import ProposalRequest
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_testkit.contracts.checks import assert_proposer

_CORPUS = Path(__file__).parents[2] / "rpl_transforms" / "tests" / "corpus"


def _source(name: str) -> KernelSource:
    return KernelSource(f"{name}.hip", (_CORPUS / f"{name}.hip").read_bytes())


def test_the_proposer_keeps_its_contract():
    proposer, language_model = plugin.rpl_proposers()
    assert (proposer.name, language_model.name) == ("deterministic", "llm")
    assert_proposer(proposer, ProposalRequest(_source("safe_nest"), {}))


def test_importing_the_plugin_imports_no_parser():
    heavy = "[m for m in ('tree_sitter', 'rpl_transforms.unroll') if m in sys.modules]"
    code = f"import sys, rpl_llm_unroll.plugin; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
