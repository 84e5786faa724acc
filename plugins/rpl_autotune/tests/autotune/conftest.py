"""A small program whose best configuration is known, and spaces for it."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest

from rpl_autotune.interfaces import PluginChoice, SearchSpace, Timing
from rpl_autotune.options import SearchOptions
from rpl_autotune.outcome import autotune_document, measure_finally
from rpl_autotune.strategies import RegressionStrategy
from rpl_autotune.templates import Templates
from rpl_autotune.tuning import JobWorkers, Tuning, TuningRequest, TuningTools
from rpl_core.interfaces.executor import Executor, ExecutorRequest

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


@pytest.fixture
def search_on():
    """``search_on(devices, folder, ...)``: the document of a whole search, measured by scripted devices."""
    return _search_on


class ScriptedExecutor(Executor):
    name, summary = "scripted", "for tests"

    def open(self, request):
        raise NotImplementedError


def _search_on(devices, folder, *, size, budget, rounds, seed, exhaustive, default=0, **more):
    """The document of one search over ``size`` configurations; ``more``: templates, limit, cache."""
    request = TuningRequest(
        space=SearchSpace(("N",), tuple((n,) for n in range(size)), default),
        templates=more.get("templates", Templates(("program", "{N}"))),
        command_text="program {N}",
        build_text=None,
        timing=Timing(source="printed", runs=3, pattern="x"),
        budget=budget,
        options=SearchOptions(
            most_evaluations=None,
            time_budget_s=None,
            exhaustive=exhaustive,
            strategy="regression",
            seed=seed,
            seed_fraction=0.2,
            prune_factor=1.75,
            confirm_rounds=rounds,
        ),
        time_limit_s=more.get("limit_s", 1.0),
        build_time_limit_s=1.0,
        scratch=folder,
        working_directory=folder,
        plugins=PluginChoice(),
    )
    tools = TuningTools(
        RegressionStrategy(),
        "rpl_autotune",
        ScriptedExecutor(),
        "tests",
        ExecutorRequest(),
        more.get("cache"),
    )
    tuning = Tuning(request, tools)
    with JobWorkers(devices, "tests", "executor 'scripted'") as workers:
        end = tuning.run(workers)
        return autotune_document(tuning, end, measure_finally(tuning, workers))
