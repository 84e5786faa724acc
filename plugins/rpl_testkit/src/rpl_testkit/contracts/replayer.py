"""The contract of a replayer: one time per iteration with its origin, and a named failure otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_testkit.contracts.violation import ContractViolation, demand, demand_kind, demand_reason_or_none

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.interfaces.replayer import Replayer


def assert_replayer(replayer: Replayer, scratch: Path, *, capture: Path | None = None) -> None:
    """Check the answer for a capture that does not exist and, where the machine allows, a real one."""
    from rpl_core.interfaces.replayer import ReplayReport, ReplayRequest
    from rpl_core.model.origin import Origin

    subject = demand_kind("rpl_replayers", replayer)
    demand_reason_or_none(replayer.missing(), subject)
    try:
        replayer.replay(ReplayRequest(capture=scratch / "no-such-capture"))
    except RplError:
        pass
    except Exception as error:
        raise ContractViolation(f"{subject}: a missing capture raised {error!r}") from error
    else:
        demand(False, subject, "a missing capture must raise an RplError")
    if capture is None:
        return
    report = replayer.replay(ReplayRequest(capture=capture, iterations=3))
    demand(isinstance(report, ReplayReport), subject, "replay() returns a ReplayReport")
    times = report.iteration_ns
    demand(len(times) == 3, subject, f"three iterations were asked for, {len(times)} reported")
    demand(
        all(isinstance(t, int) and t > 0 for t in times), subject, "a time is a whole number of ns above 0"
    )
    demand(isinstance(report.origin, Origin), subject, "the report says where its times come from")
