"""The contract of a collector: a plan that runs nothing of the user's, and passes kept in their places."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError
from rpl_core.testing.contracts.same_value import same_value
from rpl_core.testing.contracts.side_effects import started_programs
from rpl_core.testing.contracts.violation import demand, demand_kind, demand_reason_or_none

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import CollectionPlan, Collector, CollectRequest, PlannedPass

#: An application that no machine has: whoever starts it breaks the contract.
APPLICATION = "/nonexistent/rpl-contract-application"


def assert_collector(collector: Collector) -> None:
    """Check names, ``missing`` and ``plan``; executing passes is left to the collector's own tests."""
    from rpl_core.interfaces.collector import CollectRequest

    subject = demand_kind("rpl_collectors", collector)
    reason = collector.missing()
    demand_reason_or_none(reason, subject)
    request = CollectRequest(command=(APPLICATION, "--size", "a b;c"), runs=2)
    with started_programs() as commands:
        try:
            plan = collector.plan(request)
            again = collector.plan(request)
        except MissingError:
            demand(reason is not None, subject, "plan() raises MissingError though missing() says None")
            return
    ran = [command for command in commands if any(APPLICATION in word for word in command)]
    demand(not ran, subject, f"plan() started the application: {ran[:1]}")
    demand(same_value(plan, again), subject, "the same request gives two different plans")
    _check_plan(plan, request, subject)


def _check_plan(plan: CollectionPlan, request: CollectRequest, subject: str) -> None:
    from rpl_core.model.trace import TraceRole

    names = [planned.name for planned in plan.passes]
    directories = [planned.directory for planned in plan.passes]
    demand(len(set(names)) == len(names), subject, f"pass names repeat: {names}")
    demand(len(set(directories)) == len(directories), subject, f"two passes share a directory: {directories}")
    timing = [planned for planned in plan.passes if planned.role is TraceRole.TIMING]
    demand(
        len(timing) == request.runs, subject, f"{request.runs} timing runs asked for, {len(timing)} planned"
    )
    for planned in plan.passes:
        _check_pass(planned, f"{subject}, pass {planned.name}")


def _check_pass(planned: PlannedPass, subject: str) -> None:
    directory = PurePosixPath(planned.directory)
    inside = not directory.is_absolute() and ".." not in directory.parts and planned.directory != ""
    demand(inside, subject, f"directory {planned.directory!r} must lie inside the run directory")
    words = planned.command
    demand(bool(words) and all(isinstance(w, str) for w in words), subject, "command is a tuple of words")
    demand(APPLICATION in words, subject, "the application is missing from the command")
    demand("a b;c" in words, subject, "an argument of the application was changed (split, quoted or lost)")
