"""A reply that wants to run a command on the host, through the whole command: nothing of it happens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rpl_testkit.llm_server import LlmServer, Scripted

from .sources import fenced

pytestmark = pytest.mark.clang

EXAMPLE = Path(__file__).parents[4] / "examples" / "optimize" / "smooth.hip"
SMOOTH = "smooth(float const*, float const*, float*, int, int)"
#: Macros of system headers: no word here is one that a list would forbid.
HOSTILE = "__END_DECLS; struct E { E() { __CONCAT(sys, tem)(__STRING(id>PWNED)); } } e; __BEGIN_DECLS;"


def test_a_reply_has_no_effect_on_the_host_and_is_refused(rpl_closed_loop_bench, rpl_cli, monkeypatch):
    bench, text = rpl_closed_loop_bench, EXAMPLE.read_text(encoding="utf-8")
    source = bench.folder / EXAMPLE.name
    source.write_text(text, encoding="utf-8")
    bench.build(source)
    begin = text.index("__global__ __launch_bounds__(256) void smooth")
    kernel = text[begin : text.index("\n}\n", begin) + 2]
    hostile = kernel.replace("    for (int k", "#pragma unroll 4\n    for (int k")[:-1] + f"{HOSTILE}\n}}"
    kernels = [{"name": SMOOTH, "nominal_ns": 800_000, "launches": 10}]
    bench.declare(kernels, [{"source_matches": "#pragma unroll 4", "kernel": SMOOTH, "factor": 0.8}])
    monkeypatch.setenv("RPL_ALLOW_SYNTHETIC_GATES", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    checked = ("--output-file", "smooth.out:f32", "--rtol", "1e-5", "--no-traffic-gate", "--max-iters", "1")
    words = ("--auto-approve", "--runs", "2", "--device", "gfx942", "--model", "m", *checked)
    with LlmServer([Scripted(fenced(hostile))]) as server:
        outcome = rpl_cli(
            *("llm-optimize", *words, "-o", "s", "--base-url", server.base_url, "./smooth", "64", "1"),
            cwd=bench.folder,
            env={"OPENAI_API_KEY": "k" * 20},
        )
        assert server.requests, "the model was asked"
    outcome.assert_exit(1)
    assert not list(bench.folder.parent.rglob("PWNED"))
    (candidate,) = json.loads((bench.folder / "s" / "optimize.json").read_text())["candidates"]
    assert candidate["judgement"]["verdict"] == "rejected"
    assert not source.with_name("smooth_llm_opt.hip").exists()
    assert source.read_text(encoding="utf-8") == text
    rpl_cli("ledger", "verify", str(bench.folder / "s")).assert_ok()
