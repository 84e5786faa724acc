"""One mutant and its tests in a process of its own: the change is made where Python loads the module.

No file is changed, so trials can run beside each other in one checkout. The process is forked from one that
has imported the libraries (never rpl) already, and a limit on CPU seconds ends what loops.
"""

from __future__ import annotations

import os
import resource
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["imported_before_forks", "start"]

#: Memory of one trial: a change can make arrays grow.
_MOST_BYTES = 8 * 2**30


def imported_before_forks() -> None:
    """Libraries that nearly every test needs."""
    names = ("attrs", "click", "hypothesis.strategies", "jinja2", "networkx", "numpy", "pydantic", "pytest")
    for name in names:
        import_module(name)


def start(path: Path, source: str | None, tests: Sequence[str], cpu_s: int, log: Path) -> int:
    """Fork; the child runs ``tests`` with ``source`` instead of what ``path`` holds. Its process id."""
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        os.setpgid(0, 0)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for standard in (1, 2):
            os.dup2(descriptor, standard)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        if source is not None:
            _load_instead(path, source)
        import pytest

        sys.argv = ["pytest"]
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=line"]
        # Imported before pytest could rewrite its assertions, which are none of ours.
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        code = int(pytest.main([*options, *files], plugins=[_Only(tests)]))
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001
        # The copy of the parent must not go on, whatever happened here.
        traceback.print_exc()
    finally:
        os._exit(code)


class _Only:
    """Runs the named tests, in their order. What has other parameters today is none of them."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid]
        )


def _load_instead(path: Path, source: str) -> None:
    read = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if os.path.realpath(self.path) == os.path.realpath(path):
            # Compiled here, so that no cached byte code counts and none is written.
            return compile(source, self.path, "exec", dont_inherit=True)
        return read(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
