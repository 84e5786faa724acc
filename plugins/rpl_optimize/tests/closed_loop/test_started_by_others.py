"""Programs that a script starts: found by one recorded run, exchanged for each run, never replaced."""

from __future__ import annotations

import pytest

from rpl_optimize.running.mounts import why_no_mounts

pytestmark = [
    pytest.mark.clang,
    pytest.mark.long,
    pytest.mark.skipif(why_no_mounts() is not None, reason="nothing can be mounted here"),
]


def test_a_program_that_a_script_starts_is_found_and_exchanged(loop) -> None:
    script = loop.bench.folder / "run.sh"
    script.write_text('#!/bin/sh\nmkdir -p data && cd data && ../smooth "$@" && mv smooth.out ..\n')
    script.chmod(0o755)
    users = (loop.bench.folder / "smooth").read_bytes()
    loop.script("wrong results", "faster")
    command = ("./run.sh", "64", "1")
    outcome = loop("--no-traffic-gate", "--max-iters", "2", *loop.CHECKED, command=command).assert_ok()
    assert f"binary: {loop.bench.folder / 'smooth'} (it holds fade(" in outcome.stderr
    wrong, faster = loop.document()["candidates"]
    assert wrong["judgement"]["stage"] == "equivalence"
    assert faster["judgement"]["verdict"] == "accepted", faster
    assert loop.document()["command"] == ["./run.sh", "64", "1"]
    (started,) = loop.events("session_started")
    assert started["options"]["binary"] == str(loop.bench.folder / "smooth"), (
        "so a session that goes on knows"
    )
    assert (loop.bench.folder / "smooth").read_bytes() == users
    loop.verify()
