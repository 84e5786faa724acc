"""``rpl doctor``: what is installed, what is missing, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_core.cli.session import Session
    from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport
    from rpl_core.plugins.relay import Contribution


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> int:
    """Look at the installation and name the remedy for everything that is missing.

    Exit code 0 when all is well, 69 when something is missing or broken: what it is needed for is shown.

    Example: rpl doctor --json
    """
    from rpl_core.exit_codes import ExitCode
    from rpl_core.interfaces.doctor import DoctorStatus

    session = session_of(context)
    session.tell_settings()
    reports = [(c.value.name, _run(c)) for c in session.host.catalog.doctor_checks().contributions]
    reports += [("settings", report) for report in _settings(session)]
    if as_json:
        session.output.json({name: _plain(report) for name, report in reports})
    else:
        rows = [(name, report.status.value, report.fact) for name, report in reports]
        session.output.table(("check", "status", "found"), rows)
        for name, report in reports:
            if report.status is not DoctorStatus.OK:
                session.output.note(_advice(name, report))
    healthy = all(report.status is DoctorStatus.OK for _, report in reports)
    return int(ExitCode.OK if healthy else ExitCode.MISSING)


def _settings(session: Session) -> Iterator[DoctorReport]:
    """Which file is in force, and each program, endpoint and plugin that it names."""
    from rpl_core.interfaces.doctor import DoctorReport, DoctorStatus

    configuration = session.full_configuration
    if configuration.file is None:
        return
    named = [f"{name} = {value!r}" for name, value in configuration.naming().items()]
    ignored = configuration.ignored()
    fact = f"{configuration.file}" + (f" names {', '.join(named)}" if named else "")
    if ignored:
        fact += f" is not trusted, {configuration.distrust}; ignored: {', '.join(ignored)}"
    yield DoctorReport(DoctorStatus.OK, fact)


def _run(offered: Contribution[DoctorCheck]) -> DoctorReport:
    """The check's report; one that breaks shows as broken."""
    from rpl_core.errors import RplError
    from rpl_core.interfaces.doctor import DoctorReport, DoctorStatus
    from rpl_core.model.value_checks import require_value
    from rpl_core.plugins.boundary import plugin_boundary

    try:
        with plugin_boundary(offered.plugin, f"the check {offered.value.name!r}"):
            return require_value(offered.value.check(), DoctorReport)
    except RplError as error:
        return DoctorReport(DoctorStatus.BROKEN, error.fact, remedy=error.next_step)


def _plain(report: DoctorReport) -> dict[str, str | None]:
    told = {"status": report.status.value, "found": report.fact}
    return {**told, "needed_for": report.needed_for or None, "remedy": report.remedy}


def _advice(name: str, report: DoctorReport) -> str:
    needed = f" Needed for: {report.needed_for}." if report.needed_for else ""
    remedy = f" Next: {report.remedy}." if report.remedy else ""
    return f"{name}: {report.status.value}.{needed}{remedy}"
