"""``rpl selftest``: what rpl says of itself, confirmed or refuted on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rpl_core.cli.session import Session, session_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.cli.output import Output
    from rpl_selftest.bench import Bench
    from rpl_selftest.check import SelftestDocument

_FILE = click.Path(path_type=Path)
#: Of the whole, and of one command.
_QUICK_S, _FULL_S = 300.0, 2700.0
_QUICK_COMMAND_S, _FULL_COMMAND_S = 60.0, 300.0


@click.command("selftest")
@click.option("--quick", "mode", flag_value="quick", default=True, help="At most 5 minutes (default).")
@click.option("--full", "mode", flag_value="full", help="All checks, at most 45 minutes.")
@click.option(
    "--device", metavar="NAME", help="The device to check, see `rpl devices`; default: as recorded."
)
@click.option(
    "-o", "--output", type=_FILE, metavar="DIR", help="Folder for the results (default: ./rpl-selftest)."
)
@click.option(
    "--programs",
    type=_FILE,
    metavar="DIR",
    help="Programs built already: known_work, and those of the testbed; also capture/.",
)
@click.option(
    "--time-limit", type=click.FloatRange(0, min_open=True), metavar="S", help="Seconds for one command."
)
@click.option("--show", type=_FILE, metavar="ARCHIVE", help="List what is in an archive; nothing runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def selftest(
    context: click.Context,
    /,
    mode: str,
    device: str | None,
    output: Path | None,
    programs: Path | None,
    time_limit: float | None,
    show: Path | None,
    as_json: bool,
) -> int:
    """Check rpl on this machine: each line is confirmed, refuted or not possible.

    Programs of known work are built by hipcc, recorded, captured and replayed. The folder gets a page,
    selftest.json, and selftest.tar.gz to send back, without environment, host name or user.

    \b
    rpl selftest
    rpl selftest --full -o first-day
    rpl selftest --show first-day/selftest.tar.gz

    Exit code 0: all that is essential is confirmed; 1: something is refuted; 75: nothing is refuted, but
    something essential was not possible.
    """
    session = session_of(context)
    if show is not None:
        return _show(session.output, show, as_json)
    folder = _folder(output)
    document = _tested(session, mode, device, programs, time_limit)
    _write(folder, document, session.output)
    if as_json:
        session.output.json(document.model_dump(mode="json"))
    else:
        _print(session.output, document, folder)
    from rpl_core.errors import ExitCode

    if document.verdict == "refuted":
        return int(ExitCode.NEGATIVE_FINDING)
    return int(ExitCode.NO_VERDICT if document.verdict == "no verdict" else ExitCode.OK)


def _folder(output: Path | None) -> Path:
    from rpl_core.errors import UsageError

    folder = output or Path("rpl-selftest")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", next_step="name another one with -o DIR")
    return folder


def _tested(
    session: Session, mode: str, device: str | None, programs: Path | None, time_limit: float | None
) -> SelftestDocument:
    import tempfile
    import time

    from rpl_selftest.bench import Bench
    from rpl_selftest.check import document_of, run_checks
    from rpl_selftest.checks import all_checks
    from rpl_selftest.checks.machine import clock_settings
    from rpl_selftest.kept import scrubber

    full = mode == "full"
    device = session.setting("device", device)
    own = [
        collector.device for collector in session.host.catalog.collectors() if collector.device is not None
    ]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rpl-selftest-") as name:
        bench = Bench(
            folder=Path(name).resolve(),
            host=session.host,
            device=device,
            emulated=device in own,
            programs=None if programs is None else programs.resolve(),
            full=full,
            command_limit_s=time_limit or (_FULL_COMMAND_S if full else _QUICK_COMMAND_S),
            deadline=begin + (_FULL_S if full else _QUICK_S),
            before=clock_settings(),
        )
        bench.temporary.mkdir()
        bench.scrubbed = scrubber(_places(bench))
        checks = all_checks()
        with session.output.progress("selftest", total=None) as tell:
            lines = run_checks(checks, bench, tell)
        return document_of(lines, bench, time.monotonic() - begin)


def _places(bench: Bench) -> list[Path]:
    return [bench.folder, *([bench.programs] if bench.programs else [])]


def _write(folder: Path, document: SelftestDocument, output: Output) -> None:
    from rpl_core.errors import RplError
    from rpl_core.files import storage_error, write_atomic
    from rpl_selftest.kept import DOCUMENT, NAME, PAGE, html_page, keep, write_archive

    page = html_page(document)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / DOCUMENT, document.model_dump_json(indent=2) + "\n")
        write_atomic(folder / PAGE, page)
        write_archive(folder / NAME, document, page)
    except OSError as error:
        raise storage_error(folder, error) from error
    try:
        keep(document)
    except (OSError, RplError) as error:
        output.warning(f"not kept for rpl doctor: {error}")


def _print(output: Output, document: SelftestDocument, folder: Path) -> None:
    from rpl_selftest.kept import NAME, PAGE, summary

    rows = [(line.check, line.outcome + document.label, line.expected, line.found) for line in document.lines]
    output.table(("CHECK", "OUTCOME", "EXPECTED", "FOUND"), rows)
    output.line()
    for line in document.lines:
        if line.outcome == "refuted":
            output.line(f"refuted: {line.check}; {line.document} rests on it")
    output.line(f"{document.verdict}: {summary(document)}")
    output.note(f"page: {folder / PAGE}; to send back: {folder / NAME} (`rpl selftest --show` lists it)")


def _show(output: Output, path: Path, as_json: bool) -> int:
    from rpl_selftest.kept import document_in, read_archive, summary

    parts = read_archive(path)
    document = document_in(parts, path)
    if as_json:
        output.json(
            {"schema_version": "1.0", "files": _listed(parts), "selftest": document.model_dump(mode="json")}
        )
        return 0
    listed = [(str(one["name"]), f"{one['bytes']:,}", str(one["sha256"])) for one in _listed(parts)]
    output.table(("FILE", "BYTES", "SHA-256"), listed, right=("BYTES",))
    output.line()
    rows = [(line.check, line.outcome + document.label, line.found) for line in document.lines]
    output.table(("CHECK", "OUTCOME", "FOUND"), rows)
    output.line()
    output.line(f"{document.product or document.device or 'no GPU'}, {document.date}: {summary(document)}")
    return 0


def _listed(parts: Mapping[str, bytes]) -> list[dict[str, str | int]]:
    from hashlib import sha256

    return [
        {"name": name, "bytes": len(data), "sha256": sha256(data).hexdigest()} for name, data in parts.items()
    ]
