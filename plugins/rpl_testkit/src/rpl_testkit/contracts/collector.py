"""The contract of a collector: a plan that runs nothing of the user's, and passes kept in their places."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError
from rpl_testkit.contracts.same_value import same_value
from rpl_testkit.contracts.violation import demand, demand_kind, demand_reason_or_none

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.interfaces.collector import CollectionPlan, Collector, CollectRequest, PlannedPass


def assert_collector(collector: Collector, scratch: Path) -> None:
    """Check names, ``missing`` and ``plan``; executing passes is left to the collector's own tests.

    In ``scratch`` an application is put that would leave a trace if somebody started it. A collector that
    adds passes to a finished profile is not asked for a plan.
    """
    from rpl_core.interfaces.collector import CollectRequest
    from rpl_core.model.trace import TraceRole

    subject = demand_kind("rpl_collectors", collector)
    reason = collector.missing()
    demand_reason_or_none(reason, subject)
    if collector.role is not TraceRole.TIMING:
        return
    application, started = _application(scratch)
    request = CollectRequest(command=(str(application), "--size", "a b;c"), runs=2)
    try:
        plan = collector.plan(request)
        again = collector.plan(request)
    except MissingError:
        demand(reason is not None, subject, "plan() raises MissingError though missing() says None")
        return
    finally:
        demand(not started.exists(), subject, "plan() started the application")
    demand(same_value(plan, again), subject, "the same request gives two different plans")
    _check_plan(plan, request, subject)


def _check_plan(plan: CollectionPlan, request: CollectRequest, subject: str) -> None:
    from rpl_core.model.trace import TraceRole

    names = [planned.name for planned in plan.passes]
    writing = [p for p in plan.passes if any("{directory}" in word for word in p.command)]
    directories = [planned.directory for planned in writing]
    demand(len(set(names)) == len(names), subject, f"pass names repeat: {names}")
    demand(
        len(set(directories)) == len(directories),
        subject,
        f"two passes write into one directory: {directories}",
    )
    timing = [planned for planned in plan.passes if planned.role is TraceRole.TIMING]
    demand(
        len(timing) == request.runs, subject, f"{request.runs} timing runs asked for, {len(timing)} planned"
    )
    for planned in plan.passes:
        _check_pass(planned, request, f"{subject}, pass {planned.name}")


def _check_pass(planned: PlannedPass, request: CollectRequest, subject: str) -> None:
    directory = PurePosixPath(planned.directory)
    inside = not directory.is_absolute() and ".." not in directory.parts and planned.directory != ""
    demand(inside, subject, f"directory {planned.directory!r} must lie inside the run directory")
    words = planned.command
    demand(bool(words) and all(isinstance(w, str) for w in words), subject, "command is a tuple of words")
    demand(
        words[-3:] == request.command, subject, "the command must end with the application's words, unchanged"
    )


def _application(scratch: Path) -> tuple[Path, Path]:
    """An executable, and the file that it would write."""
    program, started = scratch / "rpl-contract-application", scratch / "it-was-started"
    program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(started))}\n", encoding="utf-8")
    program.chmod(0o755)
    return program, started
