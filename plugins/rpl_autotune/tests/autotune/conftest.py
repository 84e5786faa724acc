"""A small program whose best configuration is known, and spaces for it."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest

#: Fastest at bm=64, bn=32; larger products than 16384 crash, bn=16 computes wrong results, mode "hang" hangs.
PROGRAM = """
import sys, time
given = dict(word.split("=") for word in sys.argv[1:])
bm, bn = int(given["bm"]), int(given["bn"])
if given.get("log"):
    with open(given["log"], "a") as log:
        log.write(f"{bm} {bn}\\n")
if bm * bn > 16384:
    sys.exit(3)
if given.get("hang") == f"{bm}x{bn}":
    time.sleep(600)
time.sleep(float(given.get("sleep", 0)))
steps = abs(bm.bit_length() - 7) * 0.3 + abs(bn.bit_length() - 6) * 0.2
print(f"result {0 if bn == 16 else 1}")
print(f"kernel took {1 + steps:.4f} ms")
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A directory with the program and a space of 36 configurations; the current one."""
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    sizes = [16, 32, 64, 128, 256, 512]
    (tmp_path / "space.json").write_text(json.dumps({"parameters": {"BM": sizes, "BN": sizes}}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tune(rpl_cli, workplace):
    """``tune(*words)``: `rpl autotune` on the program with one run each, few rounds, and ``--json``."""

    def run(*words, program="bm={BM} bn={BN}", arguments=("--space", "space.json")):
        command = f"{sys.executable} -IS program.py {program}"
        usual = ("--runs", "1", "--confirm-rounds", "0", "--json", "--cache", "cache.jsonl")
        timed = ("--time-regex", "took ([0-9.]+) ms")
        return rpl_cli("autotune", *arguments, "--cmd-template", command, *timed, *usual, *words)

    return run
