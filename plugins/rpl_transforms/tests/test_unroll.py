"""The transformation ``unroll`` keeps its contract, and ``rpl transform`` lists and applies it."""

from __future__ import annotations

from pathlib import Path

from rpl_optimize.interfaces.transformation import KernelSource
from rpl_testkit.contracts.checks import assert_transformation
from rpl_transforms.unroll import Unroll

_CORPUS = Path(__file__).parent / "corpus"


def test_the_transformation_keeps_its_contract():
    source = KernelSource("safe_two_kernels.hip", (_CORPUS / "safe_two_kernels.hip").read_bytes())
    assert_transformation(Unroll(), source)


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
