"""Make small changes of meaning, and see whether the tests notice: the tables of docs/validation.md.

    python tools/mutants/run.py first --seed 40 --count 100   # `make mutants SEED=40`
    python tools/mutants/run.py again --seed 40               # those that survived, after tests were added
    python tools/mutants/run.py report

A seed has one first run, whose outcomes nobody changes afterwards: `runs/seed-40.json`. It goes on where it
stopped, and is refused when it is over. What `again` finds stands beside it (`later`). Whoever adds tests
draws by another seed to learn whether they helped. `equivalent` is written in by hand, with the reason.

The changes are those of cosmic-ray's operators. Its own runner starts one command for all of them; here the
default leg runs once with a marker in front of each statement to be changed (`covering.py`), and each mutant
meets the tests that came by, until one fails or the budget is spent. mutmut 3 was tried too: it copies one
source tree and finds tests by its own rules, which does not suit two dozen distributions that are installed
editable.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
from covering import MOST_TESTS, covering_tests, map_tests, passing_tests
from places import ROOT, Mutant, area_of, draw, mutated, now

RUNS = Path(__file__).resolve().parent / "runs"
SCRATCH = ROOT / "build" / "mutants"
#: These look at texts, packages and shapes; no figure is theirs.
LEFT_OUT = ("tests/docs", "tests/house", "tests/packaging", "tests/fuzz")
#: But for those that hold declarations against tables: options with their defaults and bounds, fields of what
#: plugins may import, settings, exit codes. What stands outside of functions meets them first, the rest last.
DECLARATIONS = (
    "tests/docs/test_agent_skill.py",
    "tests/docs/test_hooks_documented.py",
    "tests/docs/test_reference_tables.py",
)
BUDGET_S = 90.0
CAUGHT, SURVIVED, UNTESTED, DOUBTFUL = "caught", "survived", "no test", "doubtful"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("step", choices=("first", "again", "report"))
    parser.add_argument("--seed", type=int, help="of the draw")
    parser.add_argument("--count", type=int, default=100, help="mutants to draw (default 100)")
    parser.add_argument("--limit", type=int, default=10**6, help="mutants to try now (default: all)")
    parser.add_argument("--workers", type=int, default=2, help="tests or mutants at a time (default 2)")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="processor seconds of tests for each")
    options = parser.parse_args()
    if options.step == "report":
        return _report(sorted(RUNS.glob("seed-*.json")))
    if options.seed is None:
        parser.error("--seed N says which draw; one that had its first run is no fresh one")
    path = RUNS / f"seed-{options.seed}.json"
    if options.step == "first":
        _begin(path, options)
    _try_all(path, options)
    return _report([path])


def _begin(path: Path, options: argparse.Namespace) -> None:
    if not path.exists():
        rows = [attrs.asdict(mutant) | {"outcome": None} for mutant in draw(options.seed, options.count)]
        _save(path, {"seed": options.seed, "commit": _head(), "budget_s": options.budget, "mutants": rows})
    elif all(row["outcome"] for row in json.loads(path.read_text(encoding="utf-8"))["mutants"]):
        sys.exit(f"seed {options.seed} had its first run ({path.relative_to(ROOT)}): draw by another one")


def _head() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _save(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(path)


def _mutant(row: dict[str, Any]) -> Mutant:
    return Mutant(row["path"], row["line"], row["operator"], tuple(row["before"]), tuple(row["after"]))


# Which tests a mutant meets.


def _test_files() -> list[str]:
    folders = (ROOT / "tests", ROOT / "native", *sorted(ROOT.glob("plugins/*/tests")))
    found = [
        path.relative_to(ROOT).as_posix() for folder in folders for path in sorted(folder.rglob("test_*.py"))
    ]
    return [path for path in found if not path.startswith(LEFT_OUT)]


def _own_tests(path: str) -> str:
    area = area_of(Path(path))
    return "tests" if area == "rpl_core" else f"plugins/{area}/tests"


# Trying them.


@attrs.define
class _Trial:
    row: dict[str, Any]
    met: list[str]
    log: Path
    since: float


def _try_all(path: Path, options: argparse.Namespace) -> None:
    import trial

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.chdir(ROOT)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    content = json.loads(path.read_text(encoding="utf-8"))
    key = "outcome" if options.step == "first" else "later"
    mutants = [now(_mutant(row)) for row in content["mutants"]]
    kept = SCRATCH / _name_of(content)
    map_tests(mutants, _test_files(), ROOT, kept, options.workers)
    # Those that had no first run wait for it, whatever comes later.
    due = (None,) if options.step == "first" else (SURVIVED, UNTESTED, DOUBTFUL)
    waiting = [i for i, row in enumerate(content["mutants"]) if not row.get(key) and row["outcome"] in due]
    # At random, so that those of a run that is stopped are a sample of the list.
    waiting = random.Random(content["seed"]).sample(waiting, len(waiting))[: options.limit]
    trial.imported_before_forks()
    running: dict[int, _Trial] = {}
    try:
        while waiting or running:
            while waiting and len(running) < options.workers:
                number = waiting.pop(0)
                row, mutant = content["mutants"][number], mutants[number]
                if mutant is None:
                    row[key] = "gone"
                    continue
                tests = covering_tests(number, mutant.path, _own_tests(mutant.path), ROOT, kept)
                row["covering"], row["budget_s"] = len(tests), options.budget
                log = kept / f"{number}.log"
                met = [*tests[:MOST_TESTS], *DECLARATIONS]
                child = trial.start(ROOT / mutant.path, mutated(mutant), met, options.budget, log)
                running[child] = _Trial(row, met, log, time.monotonic())
            if running:
                _one_ended(running, key, options.budget)
                _save(path, content)
                print(f"{len(waiting) + len(running)} to go; {dict(_outcomes(content, key))}", flush=True)
    finally:
        for child in running:
            trial.end(child)
    _doubt(content, key, options.budget, passing_tests(kept))
    _save(path, content)


def _name_of(content: dict[str, Any]) -> str:
    """Of what is kept of a draw. The same seed draws others of another commit, or by another count."""
    drawn = json.dumps([[row["path"], row["line"], row["after"]] for row in content["mutants"]])
    return f"seed-{content['seed']}-{hashlib.sha256(drawn.encode()).hexdigest()[:12]}"


def _one_ended(running: dict[int, _Trial], key: str, budget_s: float) -> None:
    import trial

    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    code, done = trial.status_of(ended.si_pid), running.pop(ended.si_pid)
    text = done.log.read_text(encoding="utf-8", errors="replace")
    failed = re.search(r"^failed: (.+)$", text, re.MULTILINE)
    counted = re.search(r"^tests: (\d+)$", text, re.MULTILINE)
    if code == trial.SESSION_BROKE and _passes(done.met, budget_s):
        code = 1  # by the change alone, as `make test` would tell
    # 1: a test failed, or could not be imported. A signal: the change made it loop or grow.
    known = {0: SURVIVED, 1: CAUGHT, 5: UNTESTED}
    done.row[key] = CAUGHT if code < 0 else known.get(code, f"broken {code}")
    done.row["seconds"] = round(time.monotonic() - done.since, 1)
    done.row["tests"] = int(counted[1]) if counted else None
    done.row["caught_by"] = failed[1] if failed and code == 1 else None


def _doubt(content: dict[str, Any], key: str, budget_s: float, passed: set[str]) -> None:
    """A test that fails without any change caught nothing. Those that ``passed`` for the map are known."""
    rows = [row for row in content["mutants"] if row.get(key) == CAUGHT and row.get("caught_by")]
    failing: set[str] = set()
    for test in sorted({row["caught_by"] for row in rows if not row.get("sure")} - passed):
        if not _passes([test], budget_s):
            failing.add(test)
    for row in rows:
        row["sure"] = row["caught_by"] not in failing
        if not row["sure"]:
            row[key] = DOUBTFUL


def _passes(tests: list[str], budget_s: float) -> bool:
    """Whether they do without any change, the end of their session included."""
    import trial

    return trial.status_of(trial.start(ROOT, None, tests, budget_s, SCRATCH / "unchanged.log")) == 0


def _outcomes(content: dict[str, Any], key: str = "outcome") -> Counter[str]:
    return Counter(str(row.get(key)) for row in content["mutants"])


def _report(paths: list[Path]) -> int:
    for path in paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in content["mutants"] if row["outcome"] in (CAUGHT, SURVIVED, UNTESTED)]
        counted = [row for row in rows if not row.get("equivalent")]
        caught = Counter(area_of(Path(row["path"])) for row in counted if row["outcome"] == CAUGHT)
        areas = Counter(area_of(Path(row["path"])) for row in counted)
        share = sum(caught.values()) / max(1, len(counted))
        print(f"seed {content['seed']}, commit {content['commit'][:8]}: first run {dict(_outcomes(content))}")
        print(f"equivalent: {len(rows) - len(counted)}; caught of the others: {share:.1%}")
        print(", ".join(f"{area} {caught[area]}/{count}" for area, count in sorted(areas.items())))
        for row in content["mutants"]:
            if row["outcome"] not in (None, CAUGHT):
                later = f", later {row['later']}" if row.get("later") else ""
                print(f"\n{row['outcome']}{later}: {row['path']}:{row['line']} ({row.get('tests')} tests)")
                print(
                    "".join([f"- {line}" for line in row["before"]] + [f"+ {line}" for line in row["after"]])
                )
                if row.get("equivalent"):
                    print(f"  equivalent: {row['equivalent']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
