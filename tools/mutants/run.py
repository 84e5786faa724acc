"""Make small changes of meaning, and see whether the tests notice: the report of docs/validation.md.

    python tools/mutants/run.py all [--limit 5]              # `make mutants`; goes on where it stopped
    python tools/mutants/run.py draw --seed 11 --count 300   # a new list, drawn.json
    python tools/mutants/run.py refill --seed 12             # others for those that can't be made any more
    python tools/mutants/run.py try                          # every mutant of the list without an outcome
    python tools/mutants/run.py report

`all` works on a copy of the list in build/mutants without its outcomes, `try` on the list itself. Which tests
run which line is measured once for each folder of tests, when the first mutant needs it, and outlives edits.

The changes are those of cosmic-ray's operators. Its own runner starts one command for all of them; here each
mutant meets only the tests that run its line, which is what makes 300 of them feasible. mutmut 3 was tried
too: it copies one source tree and finds tests by its own rules, which does not suit a dozen distributions
that are installed editable.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
from places import ROOT, Mutant, draw, in_scope, mutated

HERE = Path(__file__).resolve().parent
LIST = HERE / "drawn.json"
SCRATCH = ROOT / "build" / "mutants"
#: Tests that look at results, by what is changed; others (packaging, pages) say little about a figure.
_CORE = ("tests/ingest", "tests/model", "tests/devices", "tests/pipeline", "tests/schedule", "tests/hostile")
TESTS = {
    "rpl_core": (*_CORE, "tests/config", "tests/documents", "plugins/rpl_rocprofv3/tests"),
    "plugins/rpl_rocprofv3": ("plugins/rpl_rocprofv3/tests", "tests/ingest", "tests/hostile"),
    "plugins/rpl_gfx942": ("plugins/rpl_gfx942/tests", "tests/devices", "plugins/rpl_analysis/tests"),
    "plugins/rpl_amdgpu": (
        *("plugins/rpl_amdgpu/tests", "plugins/rpl_gfx942/tests", "plugins/rpl_analysis/tests"),
        *("plugins/rpl_gfx90a/tests", "plugins/rpl_gfx950/tests", "plugins/rpl_gfx1100/tests"),
    ),
}
#: Estimated seconds of tests that a mutant meets at most, and how much longer they may take.
BUDGET_S, PATIENCE = 40.0, 12
CAUGHT, SURVIVED, UNTESTED = "caught", "survived", "no test runs it"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("step", choices=("all", "draw", "refill", "try", "report"))
    parser.add_argument("--seed", type=int, default=11, help="of the draw (default 11)")
    parser.add_argument("--count", type=int, default=300, help="mutants to draw (default 300)")
    parser.add_argument("--limit", type=int, default=10**6, help="mutants to try now (default: all)")
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at a time (default 2)")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds of tests for each mutant")
    parser.add_argument("--list", type=Path, help="where the drawn ones and their outcomes stand")
    parser.add_argument("--nearest", action="store_true", help="measure the tests of the changed part only")
    parser.add_argument("--again", action="store_true", help="try those that were not caught once more")
    parser.add_argument("--tests", nargs="*", default=[], help="further tests that every mutant meets first")
    options = parser.parse_args()
    options.list = options.list or (_fresh_copy() if options.step == "all" else LIST)
    if options.step == "draw":
        _draw(options.list, options.seed, options.count)
    elif options.step == "refill":
        _refill(options.list, options.seed)
    elif options.step in ("all", "try"):
        _try_all(options)
    return _report(options.list)


def _fresh_copy() -> Path:
    """The committed list as if nothing had been tried, unless a run of it has begun."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    copy = SCRATCH / "trials.json"
    if not copy.exists():
        content = json.loads(LIST.read_text(encoding="utf-8"))
        _save(copy, content | {"mutants": [row | {"outcome": None} for row in content["mutants"]]})
    return copy


def _draw(path: Path, seed: int, count: int) -> None:
    reasons = _equivalents(path)
    rows = [_row(mutant) for mutant in draw(seed, count)]
    for row in rows:
        row["equivalent"] = reasons.get(_key(row))
    _save(path, {"seed": seed, "commit": _head(), "mutants": rows})


def _refill(path: Path, seed: int) -> None:
    """Put mutants of another draw in the place of those whose code is gone or that are out of scope."""
    content = json.loads(path.read_text(encoding="utf-8"))
    kept = [row for row in content["mutants"] if in_scope(_mutant(row))]
    missing = len(content["mutants"]) - len(kept)
    known = {(row["path"], tuple(row["after"])) for row in kept}
    fresh = [_row(mutant) for mutant in draw(seed, missing, known)]
    rows = sorted([*kept, *fresh], key=lambda row: (row["path"], row["line"], [*row["after"]]))
    refilled = [*content.get("refilled", ()), {"seed": seed, "commit": _head(), "count": len(fresh)}]
    _save(path, content | {"refilled": refilled, "mutants": rows})


def _row(mutant: Mutant) -> dict[str, Any]:
    return attrs.asdict(mutant) | {"outcome": None, "equivalent": None}


def _key(row: dict[str, Any]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    return row["path"], tuple(row["before"]), tuple(row["after"])


def _head() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _equivalents(path: Path) -> dict[tuple[str, tuple[str, ...], tuple[str, ...]], str]:
    """Why mutants of an earlier list change nothing, by what they are."""
    rows = json.loads(path.read_text(encoding="utf-8"))["mutants"] if path.exists() else []
    return {_key(row): row["equivalent"] for row in rows if row.get("equivalent")}


def _save(path: Path, content: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(path)


def _folders_of_tests(path: str, *, nearest: bool) -> tuple[str, ...]:
    parts = path.removesuffix(".py").split("/")
    distribution = "/".join(parts[: 2 if parts[0] == "plugins" else 1])
    own = f"{distribution}/tests" if parts[0] == "plugins" else f"tests/{parts[1]}"
    return (own,) if nearest else TESTS.get(distribution, (own,))


def _measured(folders: Iterable[str], workers: int) -> list[Path]:
    """Which lines the tests of each folder run, measured now where it was not yet."""
    places = {folder: SCRATCH / folder.replace("/", ".") for folder in sorted(set(folders))}
    for folder, place in places.items():
        if not place.exists():
            print(f"measuring what {folder} runs", flush=True)
            _measure(folder, place, workers)
    return list(places.values())


def _measure(folder: str, place: Path, workers: int) -> None:
    unfinished = place.with_name(place.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    sources = [ROOT / "rpl_core", *sorted(ROOT.glob("plugins/*/src"))]
    for source in sources:
        copy = unfinished / "sources" / source.relative_to(ROOT)
        shutil.copytree(source, copy, ignore=lambda at, names: [n for n in names if not _is_python(at, n)])
    (unfinished / "coveragerc").write_text(
        "[run]\nrelative_files = true\nsource =\n" + "".join(f"    {source}\n" for source in sources),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "900"]
    command += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else ["-p", "no:xdist"]
    command += ["-m", "not long and not fuzz and not browser", "--durations=0", "--durations-min=0.0"]
    command += ["--cov", f"--cov-config={unfinished / 'coveragerc'}", "--cov-context=test", "--cov-report="]
    environment = {**os.environ, "COVERAGE_FILE": str(unfinished / "coverage")}
    with (unfinished / "log").open("w", encoding="utf-8") as log:
        # A test that fails is noticed by who reads the log; what the others run is known all the same.
        subprocess.run([*command, folder], cwd=ROOT, env=environment, stdout=log, check=False)
    unfinished.replace(place)


def _is_python(folder: str, name: str) -> bool:
    return name.endswith(".py") or (name != "__pycache__" and (Path(folder) / name).is_dir())


@attrs.define
class _Trial:
    row: dict[str, Any]
    log: Path
    since: float


def _try_all(options: argparse.Namespace) -> None:
    import trial
    from covering import Covering

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    content = json.loads(options.list.read_text(encoding="utf-8"))
    waiting = [
        row
        for row in content["mutants"]
        if row["outcome"] is None or (options.again and row["outcome"] != CAUGHT)
    ]
    # At random, so that those of a run that is stopped are a sample of the list.
    waiting = random.Random(content["seed"]).sample(waiting, len(waiting))[: options.limit]
    coverings: dict[tuple[str, ...], Covering] = {}
    trial.imported_before_forks()
    running: dict[int, _Trial] = {}
    while waiting or running:
        while waiting and len(running) < options.workers:
            row = waiting.pop(0)
            folders = _folders_of_tests(row["path"], nearest=options.nearest)
            if folders not in coverings:
                coverings[folders] = Covering.read(_measured(folders, options.workers))
            covering = coverings[folders]
            source = mutated(_mutant(row))
            tests, row["tests_left_out"] = covering.tests(_mutant(row), options.budget)
            tests = list(dict.fromkeys([*options.tests, *tests]))
            row["tests"] = len(tests)
            if source is None or not tests:
                row["outcome"] = UNTESTED if source is not None else "gone"
                continue
            log = SCRATCH / f"trial_{content['mutants'].index(row)}.log"
            limit = 60 + int(PATIENCE * sum(covering.seconds.get(test, 0.1) for test in tests))
            child = trial.start(ROOT / row["path"], source, tests, limit, log)
            running[child] = _Trial(row, log, time.monotonic())
        if running:
            _one_ended(running)
            _save(options.list, content)
            print(f"{len(waiting) + len(running)} to go; {dict(_outcomes(content))}", flush=True)


def _mutant(row: dict[str, Any]) -> Mutant:
    return Mutant(row["path"], row["line"], row["operator"], tuple(row["before"]), tuple(row["after"]))


def _one_ended(running: dict[int, _Trial]) -> None:
    child, status = os.wait()
    done = running.pop(child)
    code = os.waitstatus_to_exitcode(status)
    # 0: all passed. 1: one failed. 2, 4: a module, a conftest was not imported. A signal: it looped or grew.
    done.row["outcome"] = (
        SURVIVED if code == 0 else CAUGHT if code in (1, 2, 4) or code < 0 else f"pytest {code}"
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
    tried = [row for row in rows if row["outcome"] in (CAUGHT, SURVIVED, UNTESTED)]
    equivalent = [row for row in tried if row.get("equivalent")]
    caught = [row for row in tried if row["outcome"] == CAUGHT]
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
