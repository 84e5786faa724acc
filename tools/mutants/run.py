"""Make small changes of meaning, and see whether the tests notice: the report of docs/validation.md.

    python tools/mutants/run.py draw --seed 11 --count 300     # the list, drawn.json
    python tools/mutants/run.py measure                        # which tests run which line (takes minutes)
    python tools/mutants/run.py try                            # every mutant that has no outcome yet
    python tools/mutants/run.py report

The changes are those of cosmic-ray's operators. Its own runner starts one command for all of them; here each
mutant meets only the tests that run its line, which is what makes 300 of them feasible. mutmut 3 was tried
too: it copies one source tree and finds tests by its own rules, which does not suit a dozen distributions
that are installed editable.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
from places import ROOT, Mutant, draw, mutated

HERE = Path(__file__).resolve().parent
LIST = HERE / "drawn.json"
SCRATCH = ROOT / "build" / "mutants"
#: Tests that look at results; others (packaging, pages, processes) say little about a changed figure.
TESTS = (
    *("plugins", "tests/ingest", "tests/model", "tests/devices", "tests/pipeline", "tests/schedule"),
    *("tests/hostile", "tests/config", "tests/documents", "tests/cli"),
)
#: Estimated seconds of tests that a mutant meets at most, and how much longer they may take.
BUDGET_S, PATIENCE = 40.0, 12
CAUGHT, SURVIVED, UNTESTED = "caught", "survived", "no test runs it"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("step", choices=("draw", "measure", "try", "report"))
    parser.add_argument("--seed", type=int, default=11, help="of the draw (default 11)")
    parser.add_argument("--count", type=int, default=300, help="mutants to draw (default 300)")
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at a time (default 2)")
    parser.add_argument(
        "--list", type=Path, default=LIST, help="where the drawn ones and their outcomes stand"
    )
    parser.add_argument("--again", action="store_true", help="try those that were not caught once more")
    parser.add_argument("--tests", nargs="*", default=[], help="further tests that every mutant meets first")
    options = parser.parse_args()
    if options.step == "draw":
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        reasons = _equivalents(options.list)
        rows = [attrs.asdict(mutant) | {"outcome": None} for mutant in draw(options.seed, options.count)]
        for row in rows:
            row["equivalent"] = reasons.get((row["path"], row["before"], row["after"]))
        _save(options.list, {"seed": options.seed, "commit": commit, "mutants": rows})
    elif options.step == "measure":
        return _measure()
    elif options.step == "try":
        _try_all(options.list, options.workers, options.again, options.tests)
    return _report(options.list)


def _equivalents(path: Path) -> dict[tuple[str, tuple[str, ...], tuple[str, ...]], str]:
    """Why mutants of an earlier list change nothing, by what they are."""
    rows = json.loads(path.read_text(encoding="utf-8"))["mutants"] if path.exists() else []
    return {
        (row["path"], tuple(row["before"]), tuple(row["after"])): row["equivalent"]
        for row in rows
        if row.get("equivalent")
    }


def _save(path: Path, content: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(path)


def _measure() -> int:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    sources = [str(ROOT / "rpl_core"), *(str(path) for path in sorted(ROOT.glob("plugins/*/src")))]
    (SCRATCH / "coveragerc").write_text(
        "[run]\nsource =\n" + "".join(f"    {source}\n" for source in sources), encoding="utf-8"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    command += ["-m", "not long and not fuzz and not browser", "--timeout", "900", "--durations=0"]
    command += [
        "--durations-min=0.0",
        "--cov",
        f"--cov-config={SCRATCH / 'coveragerc'}",
        "--cov-context=test",
    ]
    environment = {**os.environ, "COVERAGE_FILE": str(SCRATCH / "coverage")}
    with (SCRATCH / "measured.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            [*command, "--cov-report=", *TESTS], cwd=ROOT, env=environment, stdout=log, check=False
        )
    return done.returncode


@attrs.define
class _Trial:
    row: dict[str, Any]
    log: Path
    since: float


def _try_all(path: Path, workers: int, again: bool, first: list[str]) -> None:
    import trial
    from covering import Covering

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    trial.imported_before_forks()
    covering = Covering.read(SCRATCH / "coverage", ROOT, SCRATCH / "measured.log")
    content = json.loads(path.read_text(encoding="utf-8"))
    waiting = [
        row for row in content["mutants"] if row["outcome"] is None or (again and row["outcome"] != CAUGHT)
    ]
    running: dict[int, _Trial] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            row = waiting.pop(0)
            mutant = _mutant(row)
            source = mutated(mutant)
            tests, row["tests_left_out"] = covering.tests(mutant, BUDGET_S)
            tests = list(dict.fromkeys([*first, *tests]))
            row["tests"] = len(tests)
            if source is None or not tests:
                row["outcome"] = UNTESTED if source is not None else "gone"
                continue
            log = SCRATCH / f"trial_{content['mutants'].index(row)}.log"
            seconds = sum(covering.seconds.get(test, 0.1) for test in tests)
            limit = 60 + int(PATIENCE * seconds)
            running[trial.start(ROOT / mutant.path, source, tests, limit, log)] = _Trial(
                row, log, time.monotonic()
            )
        if running:
            _one_ended(running)
            _save(path, content)
            print(f"{len(waiting) + len(running)} to go; {dict(_outcomes(content))}", flush=True)


def _mutant(row: dict[str, Any]) -> Mutant:
    return Mutant(row["path"], row["line"], row["operator"], tuple(row["before"]), tuple(row["after"]))


def _one_ended(running: dict[int, _Trial]) -> None:
    child, status = os.wait()
    done = running.pop(child)
    code = os.waitstatus_to_exitcode(status)
    # 0: all passed. 1: one failed. 2: a module could not be imported. A signal: it looped or grew.
    done.row["outcome"] = (
        SURVIVED if code == 0 else CAUGHT if code in (1, 2) or code < 0 else f"pytest {code}"
    )
    done.row["seconds"] = round(time.monotonic() - done.since, 1)
    text = done.log.read_text(encoding="utf-8", errors="replace")
    failed = [line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    done.row["caught_by"] = failed[0].split(" ", 2)[1] if failed and code else None


def _outcomes(content: dict[str, Any]) -> Counter[str]:
    return Counter(str(row["outcome"]) for row in content["mutants"])


def _report(path: Path) -> int:
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = content["mutants"]
    equivalent = [row for row in rows if row.get("equivalent")]
    caught = [row for row in rows if row["outcome"] == CAUGHT]
    tried = [row for row in rows if row["outcome"] in (CAUGHT, SURVIVED, UNTESTED)]
    share = len(caught) / max(1, len(tried) - len(equivalent))
    print(
        f"seed {content['seed']}, commit {content['commit'][:8]}: {dict(_outcomes(content))} of {len(rows)}"
    )
    print(f"tried: {len(tried)}; equivalent: {len(equivalent)}; caught of the others: {share:.1%}")
    for row in rows:
        if row["outcome"] not in (None, CAUGHT):
            print(f"\n{row['outcome']}: {row['path']}:{row['line']} ({row.get('tests')} tests)")
            lines = [f"- {line}" for line in row["before"]] + [f"+ {line}" for line in row["after"]]
            print("".join(lines), end="")
            if row.get("equivalent"):
                print(f"  equivalent: {row['equivalent']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
