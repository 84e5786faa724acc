"""Make small changes of meaning, and see whether the tests notice: the tables of docs/validation.md.

    python tools/mutants/run.py first --seed 40 --count 100   # `make mutants SEED=40`
    python tools/mutants/run.py again --seed 40               # those that survived, after tests were added
    python tools/mutants/run.py report
    python tools/mutants/run.py map                           # which tests run what; `--limit 20` files now

A seed has one first run, whose outcomes nobody changes afterwards: `runs/seed-40.json`. It goes on where it
stopped, and is refused when it is over. What `again` finds stands beside it (`later`). Whoever adds tests
draws by another seed to learn whether they helped. `equivalent` is written in by hand, with the reason.

The changes are those of cosmic-ray's operators. Its own runner starts one command for all of them; here each
mutant meets the tests of its distribution that run its function, the cheapest first (`map`), or where that is
not known the files that name its module and function first, until one fails or the budget is spent. mutmut 3
was tried too: it copies one source tree and finds tests by its own rules, which does not suit two dozen
distributions that are installed editable.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import attrs
from covering import covering_tests, functions_of, map_tests
from places import ROOT, Mutant, area_of, areas_by_lines, draw, mutated

RUNS = Path(__file__).resolve().parent / "runs"
SCRATCH = ROOT / "build" / "mutants"
COVERED = SCRATCH / "covered"
#: Folders of tests beside the own ones (``plugins/X/tests``, for the core ``tests``) that look at results.
FURTHER = {
    "rpl_core": ("plugins/rpl_rocprofv3/tests", "plugins/rpl_analysis/tests"),
    "metapackage": ("tests/cli",),
    "rpl_rocprofv3": ("tests/ingest", "tests/hostile", "tests/pipeline"),
    "rpl_codeobject": ("plugins/rpl_optimize/tests", "plugins/rpl_emu/tests"),
    "rpl_measure": ("plugins/rpl_compare/tests", "plugins/rpl_optimize/tests", "plugins/rpl_autotune/tests"),
    "rpl_amdgpu": ("plugins/rpl_gfx942/tests", "plugins/rpl_analysis/tests"),
    "rpl_analysis": ("plugins/rpl_report/tests",),
    "rpl_optimize": ("plugins/rpl_transforms/tests", "plugins/rpl_llm_unroll/tests"),
    "rpl_transforms": ("plugins/rpl_llm_unroll/tests", "plugins/rpl_optimize/tests"),
    "rpl_vmreplay": ("plugins/rpl_emu/tests",),
}
_DEVICES = ("rpl_gfx942", "rpl_gfx950", "rpl_gfx90a", "rpl_gfx1100", "rpl_gfx1030")
FURTHER |= dict.fromkeys(_DEVICES, ("plugins/rpl_amdgpu/tests", "plugins/rpl_analysis/tests"))
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
    parser.add_argument("step", choices=("first", "again", "report", "map"))
    parser.add_argument("--seed", type=int, help="of the draw")
    parser.add_argument("--count", type=int, default=100, help="mutants to draw (default 100)")
    parser.add_argument(
        "--limit", type=int, default=10**6, help="mutants, or files to map, now (default: all)"
    )
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at a time (default 2)")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="processor seconds of tests for each")
    options = parser.parse_args()
    if options.step == "report":
        return _report(sorted(RUNS.glob("seed-*.json")))
    if options.step == "map":
        return _map(options.limit)
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


# Which test files a mutant meets, the likeliest first.


def _map(limit: int) -> int:
    import trial

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.chdir(ROOT)
    trial.imported_before_forks()
    # Those of the areas of which a draw holds most come first, for a map that is stopped.
    sizes = areas_by_lines()
    folders = tuple(_own_tests(area) for area in sorted(sizes, key=lambda area: -sizes[area]))
    for _, (file, well) in zip(range(limit), map_tests(_test_files(folders), COVERED), strict=False):
        print(f"{'mapped' if well else 'not mapped, it fails'}: {file}", flush=True)
    return 0


@cache
def _test_files(folders: tuple[str, ...]) -> tuple[str, ...]:
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("test_*.py")))
    names = (path.relative_to(ROOT).as_posix() for path in found)
    return tuple(dict.fromkeys(name for name in names if not name.startswith(LEFT_OUT)))


@cache
def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _own_tests(area: str) -> str:
    return "tests" if area == "rpl_core" else f"plugins/{area}/tests"


def tests_for(mutant: Mutant) -> list[str]:
    """The files of its folders by what of the mutant's names they hold, then by the words of their paths."""
    area = area_of(Path(mutant.path))
    module = Path(mutant.path)
    names = {module.stem, *_around(mutant)} - {"", "__init__"}
    words = set(re.split(r"[/_.]", mutant.path)) - {"rpl", "src", "plugins", "py"}

    def likely(test: str) -> tuple[int, int]:
        held = sum(re.search(rf"\b{name}\b", _text(test)) is not None for name in names)
        return -held, -len(words & set(re.split(r"[/_.]", test)))

    files = _test_files((_own_tests(area), *FURTHER.get(area, ())))
    return sorted(files, key=lambda test: (*likely(test), test))


def _in_order(mutant: Mutant) -> list[str]:
    """All tests that it meets."""
    covering = covering_tests(mutant, tests_for(mutant), COVERED)
    declares = mutant.line not in functions_of(mutant.path, _text(mutant.path))
    return [*DECLARATIONS, *covering] if declares else [*covering, *DECLARATIONS]


def _around(mutant: Mutant) -> set[str]:
    """Names of the functions and classes that hold the line."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = ast.walk(ast.parse(_text(mutant.path)))
    return {n.name for n in nodes if isinstance(n, kinds) and n.lineno <= mutant.line <= (n.end_lineno or 0)}


# Trying them.


@attrs.define
class _Trial:
    row: dict[str, Any]
    log: Path
    since: float


def _try_all(path: Path, options: argparse.Namespace) -> None:
    import trial

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.chdir(ROOT)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    content = json.loads(path.read_text(encoding="utf-8"))
    key = "outcome" if options.step == "first" else "later"
    # Those that had no first run wait for it, whatever comes later.
    due = (None,) if options.step == "first" else (SURVIVED, UNTESTED, DOUBTFUL)
    waiting = [row for row in content["mutants"] if not row.get(key) and row["outcome"] in due]
    # At random, so that those of a run that is stopped are a sample of the list.
    waiting = random.Random(content["seed"]).sample(waiting, len(waiting))[: options.limit]
    trial.imported_before_forks()
    running: dict[int, _Trial] = {}
    while waiting or running:
        while waiting and len(running) < options.workers:
            row = waiting.pop(0)
            source = mutated(_mutant(row))
            if source is None:
                row[key] = "gone"
                continue
            log = SCRATCH / f"seed_{content['seed']}_{content['mutants'].index(row)}.log"
            child = trial.start(ROOT / row["path"], source, _in_order(_mutant(row)), options.budget, log)
            running[child] = _Trial(row, log, time.monotonic())
        if running:
            _one_ended(running, key)
            _save(path, content)
            print(f"{len(waiting) + len(running)} to go; {dict(_outcomes(content, key))}", flush=True)
    _doubt(content, key, options.budget)
    _save(path, content)


def _one_ended(running: dict[int, _Trial], key: str) -> None:
    child, status = os.wait()
    done = running.pop(child)
    code = os.waitstatus_to_exitcode(status)
    text = done.log.read_text(encoding="utf-8", errors="replace")
    failed = re.search(r"^failed: (.+)$", text, re.MULTILINE)
    counted = re.search(r"^tests: (\d+)$", text, re.MULTILINE)
    # 1: a test failed, or could not be imported. A signal: the change made it loop or grow.
    known = {0: SURVIVED, 1: CAUGHT, 5: UNTESTED}
    done.row[key] = CAUGHT if code < 0 else known.get(code, f"broken {code}")
    done.row["seconds"] = round(time.monotonic() - done.since, 1)
    done.row["tests"] = int(counted[1]) if counted else None
    done.row["caught_by"] = failed[1] if failed and code == 1 else None


def _doubt(content: dict[str, Any], key: str, budget_s: float) -> None:
    """A test that fails without any change caught nothing."""
    import trial

    rows = [row for row in content["mutants"] if row.get(key) == CAUGHT and row.get("caught_by")]
    failing: set[str] = set()
    for test in sorted({row["caught_by"] for row in rows if not row.get("sure")}):
        child = trial.start(ROOT, None, [test], budget_s, SCRATCH / "unchanged.log")
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            failing.add(test)
    for row in rows:
        row["sure"] = row["caught_by"] not in failing
        if not row["sure"]:
            row[key] = DOUBTFUL


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
