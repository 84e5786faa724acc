"""Which sources of a compile database include a header: the compiler of each is asked (``-MM``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_optimize.build.build_run import StepFailedError
from rpl_optimize.build.environment import build_environment
from rpl_optimize.build.host_comparison import prerequisites
from rpl_optimize.build.objects import dependency_command

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rpl_optimize.build.build_run import BuildRun
    from rpl_optimize.build.compile_database import Entry


def including(run: BuildRun, entries: Iterable[Entry], header: Path) -> tuple[Entry, ...]:
    """Those whose file reads ``header``. A file that its compiler can't preprocess is taken for none."""
    return tuple(entry for entry in entries if _includes(run, entry, header))


def _includes(run: BuildRun, entry: Entry, header: Path) -> bool:
    rules = run.temporary / "includes.d"
    rules.unlink(missing_ok=True)
    command = dependency_command(entry, rules)
    try:
        run.step(command, entry.directory, build_environment(run.temporary, entry.directory), recorded=False)
    except StepFailedError:
        return False
    return header in prerequisites(rules, entry.directory)
