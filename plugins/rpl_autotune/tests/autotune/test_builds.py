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


def test_no_file_of_a_search_holds_a_secret_of_its_commands(rpl_cli, build, tmp_path):
    """In the build, in the measured command and in the check; each program still gets it."""
    secret = "s3cr3t-value"
    compiler, check = tmp_path / "cc", tmp_path / "check"
    compiler.write_text(
        compiler.read_text().replace("words = sys.argv[1:]", "words = sys.argv[1:]; print(words)")
    )
    check.write_text(f"#!{sys.executable} -IS\nimport sys\nprint(sys.argv)\nsys.exit('2' in sys.argv[1:])\n")
    check.chmod(0o755)
    (tmp_path / "one.json").write_text(json.dumps({"parameters": {"TILE": [1, 3], "RUNS": [1, 2]}}))
    build("--space", "one.json", "--build", f"./cc -DTOKEN={secret} k.src {{defines}} -o {{output}}",
          "--cmd-template", f"{{program}} {{RUNS}} --token={secret}",
          "--validate", f"./check --password {secret} {{RUNS}}", "-o", "out").assert_ok()  # fmt: skip
    assert secret in (tmp_path / "builds").read_text()  # the stand-in's own list
    (tmp_path / "builds").unlink()
    text = rpl_cli("autotune", "--show", "out").assert_ok().stdout
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files if secret in path.read_text(errors="replace")} == set()
    assert secret not in text
    document = json.loads((tmp_path / "out" / "autotune.json").read_text())
    assert document["command_template"] == "{program} {RUNS} --token=***"
    assert document["build_template"] == "./cc -DTOKEN=*** k.src {defines} -o {output}"
