"""The contracts of what people read: the text of a renderer, and what a doctor check found."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.renderer import Renderer, RenderRequest

#: Generous for loaded test machines; the interface asks for a second or two.
_LIMIT_S = 20.0


def assert_renderer(renderer: Renderer, request: RenderRequest) -> None:
    """Check the output for ``request``; put hostile kernel names into its documents."""
    subject = demand_kind("rpl_renderers", renderer)
    demand(renderer.suffix.startswith("."), subject, "suffix begins with a dot")
    text = renderer.render(request)
    demand(isinstance(text, str), subject, "render() returns text")
    demand(bool(text.strip()), subject, "the output is empty")
    demand("\x1b" not in text, subject, "a name in the documents reached the output as a terminal escape")
    demand(renderer.render(request) == text, subject, "the same documents give two different outputs")


def assert_doctor_check(check: DoctorCheck) -> None:
    """Run the check once."""
    from rpl_core.interfaces.doctor import DoctorReport, DoctorStatus

    subject = demand_kind("rpl_doctor_checks", check)
    begin = time.monotonic()
    report = check.check()
    seconds = time.monotonic() - begin
    demand(isinstance(report, DoctorReport), subject, "check() returns a DoctorReport")
    demand(isinstance(report.status, DoctorStatus), subject, "status is a DoctorStatus")
    demand(bool(report.fact.strip()), subject, "the report states a fact")
    healthy = report.status is DoctorStatus.OK
    demand(healthy or bool((report.remedy or "").strip()), subject, "what is not ok needs a remedy")
    demand(healthy or bool(report.needed_for.strip()), subject, "what is not ok says what it is needed for")
    demand(seconds < _LIMIT_S, subject, f"it took {seconds:.0f} s")
