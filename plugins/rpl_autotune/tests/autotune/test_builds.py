"""Building per configuration: once per distinct build, with failures remembered."""

from __future__ import annotations

import json
import sys

import pytest

COMPILER = """#!{python} -IS
import sys
words = sys.argv[1:]
open("builds", "a").write(" ".join(words) + "\\n")
defines = dict(w[2:].split("=") for w in words if w.startswith("-D"))
if defines.get("TILE") == "3":
    sys.exit("k.src:1: error: TILE must be even")
output = words[words.index("-o") + 1]
with open(output, "w") as out:
    out.write("#!{python}\\nimport sys\\nprint('took', " + defines["TILE"] + " + int(sys.argv[1]), 'ms')\\n")
import os
os.chmod(output, 0o755)
"""


@pytest.fixture
def build(rpl_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compiler = tmp_path / "cc"
    compiler.write_text(COMPILER.format(python=sys.executable))
    compiler.chmod(0o755)
    (tmp_path / "k.src").write_text("kernel")
    (tmp_path / "k.h").write_text("header")
    space = {"parameters": {"TILE": [1, 2, 3], "RUNS": [1, 2, 3, 4]}}
    (tmp_path / "space.json").write_text(json.dumps(space))

    def run(*words):
        template = ("--build", "./cc k.src {defines} -o {output}", "-D", "TILE")
        command = ("--cmd-template", "{program} {RUNS}", "--time-regex", "took (.*) ms")
        usual = ("--runs", "1", "--confirm-rounds", "0", "--json", "--exhaustive", "--cache", "c")
        return rpl_cli("autotune", "--space", "space.json", *template, *command, *usual, *words)

    return run


def builds(tmp_path):
    return (tmp_path / "builds").read_text().splitlines()


def test_each_distinct_build_happens_once(build, tmp_path):
    found = build().assert_ok().json()
    assert len(builds(tmp_path)) == 3
    assert found["best_config"]["parameters"] == {"TILE": 1, "RUNS": 1}
    failed = [e for e in found["evaluations"] if e["state"] == "build_failed"]
    assert len(failed) == 4
    assert failed[0]["reason"] == "k.src:1: error: TILE must be even"


@pytest.mark.long
def test_a_second_search_needs_no_build_until_a_header_changes(build, tmp_path):
    build().assert_ok()
    assert build().assert_ok().json()["cached_configs"] == 12
    assert len(builds(tmp_path)) == 3
    (tmp_path / "k.h").write_text("changed")
    build().assert_ok()
    assert len(builds(tmp_path)) == 6
