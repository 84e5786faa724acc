"""One mutant and its tests in a process of its own: the change is made where Python loads the module.

No file is changed, so trials can run beside each other in one checkout. The process is forked from one that
has imported the libraries (never rpl) already, and a limit on CPU seconds ends what loops. Python processes
that a test starts make the change too, as far as they get its environment (``children/sitecustomize.py``).
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from children.sitecustomize import load_instead

if TYPE_CHECKING:
    import pytest

__all__ = ["SESSION_BROKE", "end", "imported_before_forks", "spent_s", "start", "status_of"]

#: No test failed, but the session ended by an error, such as of a process that a test left to itself.
SESSION_BROKE = 4
#: Memory of one trial: a change can make arrays grow.
_MOST_BYTES = 8 * 2**30
#: Processor seconds beyond the budget after which a trial counts as one that does not end.
_PATIENCE_S = 120
_AT_A_TIME = 6
_CHILDREN = Path(__file__).resolve().parent / "children"


def imported_before_forks() -> None:
    """Libraries that nearly every test needs."""
    names = ("attrs", "click", "hypothesis.strategies", "jinja2", "networkx", "numpy", "pydantic", "pytest")
    for name in names:
        import_module(name)


def spent_s() -> float:
    """Processor seconds of this process and of those that its tests started: compilers take most of some."""
    return sum(os.times()[:4])


def start(path: Path, source: str | None, tests: Sequence[str], budget_s: float, log: Path) -> int:
    """Fork; the child runs ``tests`` with ``source`` instead of what ``path`` holds. Its process id.

    ``tests`` are files, or single tests, in the order in which they run. The child ends by 0 where all that
    it began passed, by 1 where one failed, by ``SESSION_BROKE`` where pytest itself did, and by 5 where none
    ran; after ``budget_s`` of its and its children's processor time no other one begins. A test that fails
    writes its name into the log.
    """
    child = os.fork()
    if child:
        os.setpgid(child, child)  # here too: `end` may come before the child has done it
        return child
    code = 3
    try:
        os.setpgid(0, 0)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for standard in (1, 2):
            os.dup2(descriptor, standard)
        most = int(budget_s) + _PATIENCE_S
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        _for_children(path, source, log)
        if source is not None:
            load_instead(str(path), source)
        code = _run(tests, budget_s)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001
        # The copy of the parent must not go on, whatever happened here.
        traceback.print_exc()
    finally:
        os._exit(code)


def status_of(child: int) -> int:
    """Waits for its end, or to be interrupted. Nothing that its tests started is left then."""
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    finally:
        end(child)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def end(child: int) -> None:
    """A trial has a process group of its own, which a terminal's Ctrl-C does not reach."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _run(tests: Sequence[str], budget_s: float) -> int:
    import pytest

    sys.argv = ["pytest"]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=line"]
    options += ["-m", "not long"]
    # Imported before pytest could rewrite its assertions, which are none of ours.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    count = _Count(budget_s)
    for some in _few_files(tests):
        try:
            code = int(pytest.main([*options, *some], plugins=[count]))
        except BaseException:  # noqa: BLE001
            # What was left over is found when all tests are done, and is an error where warnings are.
            traceback.print_exc()
            code = SESSION_BROKE
        if count.failed:
            # The whole name, which may hold blanks.
            print(f"\nfailed: {count.failed}")
            return 1
        if code not in (0, 2, 5):  # 2: asked to end, 5: no test for this leg
            return SESSION_BROKE
        if count.is_over():
            break
    print(f"tests: {count.run}")
    return 0 if count.run else 5


def _few_files(tests: Sequence[str]) -> Iterator[list[str]]:
    """In their order, those of six files at a time: pytest imports all that it is given before it begins."""
    some: list[str] = []
    for test in tests:
        if len({one.partition("::")[0] for one in (*some, test)}) > _AT_A_TIME:
            yield some
            some = []
        some.append(test)
    if some:
        yield some


class _Count:
    """How many tests ran; asks for the end when the budget is spent."""

    def __init__(self, budget_s: float) -> None:
        self.run, self.failed = 0, ""
        self._budget_s = budget_s

    def is_over(self) -> bool:
        return spent_s() > self._budget_s

    def pytest_runtest_logfinish(self) -> None:
        self.run += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._look_at(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._look_at(report)

    def _look_at(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if self.is_over():
            item.session.shouldstop = "the budget is spent"


def _for_children(path: Path, source: str | None, log: Path) -> None:
    """Without a change the environment is the same but for that: no test fails for what is in it."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_CHILDREN), os.environ.get("PYTHONPATH"))))
    if source is not None:
        changed = log.with_suffix(".py")
        changed.write_text(source, encoding="utf-8")
        os.environ["RPL_CHANGED_FILE"], os.environ["RPL_CHANGED_SOURCE"] = str(path), str(changed)
