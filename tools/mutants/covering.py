"""Which tests run which functions, and for how long: kept from run to run, so that a mutant meets few tests.

`python tools/mutants/run.py map` runs the test files once without any change, each in a process of its own
under coverage.py. What a file runs is kept under the hash of its text: functions by name, not lines, so that
it still holds after most changes of the sources. Whoever moves much deletes `build/mutants/covered`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from places import ROOT, Mutant
from trial import spent_s

if TYPE_CHECKING:
    import pytest

__all__ = ["covering_tests", "functions_of", "map_tests"]

#: What every importer of a module runs.
_AT_IMPORT = ""
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec")
_KINDS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Test -> its processor seconds, and path -> the functions that it runs.
Covered = dict[str, dict[str, Any]]


def covering_tests(mutant: Mutant, files: Iterable[str], kept: Path) -> list[str]:
    """The tests that run the function of ``mutant``, the cheapest first, then the files that are not mapped.

    ``files`` are in order of likelihood. Constants of a module count as run by all that run any of it. What
    the processes that a test starts run is not known, so tests that start some come behind the others.
    """
    names = functions_of(mutant.path, (ROOT / mutant.path).read_text(encoding="utf-8"))
    function = names.get(mutant.line, _AT_IMPORT)
    found: list[tuple[bool, float, str]] = []
    unknown = []
    for file in files:
        covered = _read(_place(kept, file))
        if covered is None:
            unknown.append(file)
            continue
        for test, part in covered.items():
            run = part["functions"].get(mutant.path, ())
            runs_it = function in run or (function == _AT_IMPORT and bool(run))
            if runs_it or part.get("starts_processes"):
                found.append((not runs_it, part["seconds"], test))
    return [*(test for *_, test in sorted(found)), *unknown]


def functions_of(path: str, source: str) -> dict[int, str]:
    """The innermost function that holds each line, with those around it; lines outside are missing."""
    names: dict[int, str] = {}

    def walk(node: ast.AST, inside: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = inside
            if isinstance(child, (*_KINDS, ast.ClassDef)):
                name = f"{inside}.{child.name}"
            if isinstance(child, _KINDS):
                names.update(dict.fromkeys(range(child.lineno, (child.end_lineno or 0) + 1), name))
            walk(child, name)

    walk(ast.parse(source, path), "")
    return names


def map_tests(files: Iterable[str], kept: Path) -> Iterator[tuple[str, bool]]:
    """Run each file that is not mapped yet; yields it, and whether that went well."""
    kept.mkdir(parents=True, exist_ok=True)
    for file in files:
        place = _place(kept, file)
        if place.exists():
            continue
        child = os.fork()
        if not child:
            _map_one(file, place)
        yield file, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _place(kept: Path, file: str) -> Path:
    digest = hashlib.sha256(file.encode() + (ROOT / file).read_bytes()).hexdigest()
    return kept / f"{digest[:32]}.json"


@cache
def _read(place: Path) -> Covered | None:
    return json.loads(place.read_text(encoding="utf-8")) if place.exists() else None


def _map_one(file: str, place: Path) -> None:
    """In the child: a file that fails leaves no map, and is met as a whole."""
    code = 1
    try:
        import coverage
        import pytest

        log = os.open(place.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for standard in (1, 2):
            os.dup2(log, standard)
        sources = [str(path) for path in (ROOT / "rpl_core", *ROOT.glob("plugins/*/src"))]
        measured = coverage.Coverage(data_file=None, config_file=False, source=sources)
        seconds = _Seconds(measured)
        sys.addaudithook(seconds.heard)
        sys.argv = ["pytest"]
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long", "--tb=line"]
        # Modules that were imported before are not measured at import, which nobody asks for.
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore::Warning:coverage"]
        measured.start()
        code = int(pytest.main([*options, file], plugins=[seconds]))
        measured.stop()
        if code in (0, 5):
            fresh = place.with_suffix(".new")
            fresh.write_text(json.dumps(_covered(measured, seconds)), encoding="utf-8")
            fresh.replace(place)
            code = 0
    except BaseException:  # noqa: BLE001
        # The copy of the parent must not go on, whatever happened here.
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


class _Seconds:
    """Tells coverage.py which test runs; keeps the processor seconds of each, and which start processes."""

    def __init__(self, measured: Any) -> None:
        self.of: dict[str, float] = {}
        self.starting: set[str] = set()
        self._measured, self._since, self._test = measured, 0.0, ""

    def heard(self, event: str, _arguments: tuple[object, ...]) -> None:
        if event in _STARTS and self._test:
            self.starting.add(self._test)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._since, self._test = spent_s(), nodeid
        self._measured.switch_context(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.of[nodeid] = round(spent_s() - self._since, 3)
        self._test = ""
        self._measured.switch_context("")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            raise RuntimeError(f"{report.nodeid} can't be collected")


def _covered(measured: Any, seconds: _Seconds) -> Covered:
    ran: dict[str, dict[str, set[str]]] = {test: defaultdict(set) for test in seconds.of}
    data = measured.get_data()
    for full in data.measured_files():
        path = Path(full).relative_to(ROOT).as_posix()
        names = functions_of(path, Path(full).read_text(encoding="utf-8"))
        for line, tests in data.contexts_by_lineno(full).items():
            for test in set(tests) & set(ran):
                ran[test][path].add(names.get(line, _AT_IMPORT))
    return {
        test: {
            "seconds": seconds.of[test],
            "starts_processes": test in seconds.starting,
            "functions": {path: sorted(names) for path, names in found.items()},
        }
        for test, found in ran.items()
    }
