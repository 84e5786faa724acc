"""A trace belongs to the kernel that the results name for its agent and dispatch, and to no other."""

from __future__ import annotations

import json

import pytest

CODE = (("; _Z4gemmv", 0, 0, 0, 0, 0, "gemm()"), ("v_nop", 0, 1, 4, 0, 0))


def results(path, *dispatches: tuple[int, int, int], symbols: dict[int, str]) -> None:
    """``dispatches``: (agent handle, dispatch id, kernel id)."""
    records = [
        {"dispatch_info": {"agent_id": {"handle": agent}, "dispatch_id": number, "kernel_id": kernel}}
        for agent, number, kernel in dispatches
    ]
    tool = {
        "kernel_symbols": [
            {"kernel_id": k, "kernel_name": f"{name}.kd", "formatted_kernel_name": f"shown {name}"}
            for k, name in symbols.items()
        ],
        "buffer_records": {"kernel_dispatch": records},
    }
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [tool]}))


@pytest.fixture
def traced(trace_folder):  # agent 7, dispatch 4
    return trace_folder.code(*CODE).wave([[0, 6, 0, 4, 1]], 0, 4)


def test_agent_handle_and_dispatch_id_find_the_kernel(traced):
    entries = [(8, 4, 2), (7, 3, 2), (7, 4, 1)]
    results(traced.path.parent / "12_results.json", *entries, symbols={1: "_Z4gemmv", 2: "_Z5otherv"})
    block = traced.block()
    assert (block.kernel, block.symbol) == ("shown _Z4gemmv", "_Z4gemmv")
    assert block.joined_by == "agent handle and dispatch id in 12_results.json"
    assert block.warnings == ()


def test_results_one_level_below_are_found(traced):
    folder = traced.path.parent / "hostname"
    folder.mkdir()
    results(folder / "12_results.json", (7, 4, 1), symbols={1: "_Z4gemmv"})
    assert traced.block().kernel == "shown _Z4gemmv"


def test_another_agent_is_not_taken(traced):
    results(traced.path.parent / "12_results.json", (8, 4, 1), symbols={1: "_Z4gemmv"})
    block = traced.block()
    assert (block.kernel, block.joined_by) == ("gemm()", "label in the traced code")


def test_results_that_name_another_symbol_are_not_believed(traced):
    results(traced.path.parent / "12_results.json", (7, 4, 1), symbols={1: "_Z5otherv"})
    block = traced.block()
    assert block.kernel == "gemm()"
    assert "_Z5otherv" in block.warnings[0]


def test_a_kernel_trace_of_the_process_names_the_kernel_too(traced):
    text = 'Kind,Agent_Id,Dispatch_Id,Kernel_Name\nKERNEL_DISPATCH,"Agent 2",4,_Z4gemmv\n'
    (traced.path.parent / "12_kernel_trace.csv").write_text(text)
    block = traced.block()
    assert (block.kernel, block.joined_by) == ("_Z4gemmv", "dispatch id in 12_kernel_trace.csv")


def test_a_kernel_trace_that_names_another_kernel_is_not_believed(traced):
    text = 'Kind,Agent_Id,Dispatch_Id,Kernel_Name\nKERNEL_DISPATCH,"Agent 2",4,other()\n'
    (traced.path.parent / "12_kernel_trace.csv").write_text(text)
    block = traced.block()
    assert block.kernel == "gemm()"
    assert "names other()" in block.warnings[0]


@pytest.mark.parametrize(("own", "kernel"), [("12_7_shader_engine_0_4.att", "gemm()"), (None, None)])
def test_a_kernel_trace_of_an_unknown_run_names_no_kernel(trace_folder, own, kernel):
    """The code has no label: only a raw trace of the same process ties the file to this trace."""
    folder = trace_folder.code(("v_nop", 0, 1, 4, 0, 0)).wave([[0, 6, 0, 4, 0]], 0, 4)
    text = 'Kind,Agent_Id,Dispatch_Id,Kernel_Name\nKERNEL_DISPATCH,"Agent 2",4,gemm()\n'
    (folder.path.parent / "12_kernel_trace.csv").write_text(text)
    if own is not None:
        (folder.path.parent / own).write_bytes(b"")
    block = folder.block()
    assert block.kernel == kernel
    assert any("nothing ties that file" in warning for warning in block.warnings) == (kernel is None)


def test_damaged_results_are_named_and_passed_over(traced):
    (traced.path.parent / "12_results.json").write_text('{"rocprofiler-sdk-tool": [{"buffer_records": ')
    block = traced.block()
    assert block.kernel == "gemm()"
    assert "12_results.json" in block.warnings[0]
