"""``rpl ledger``: show what an optimization did, and replay its verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of
from rpl_core.text import counted, shorten
from rpl_optimize.ledger.lines import LedgerEntry, LedgerEvent

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_optimize.ledger.verify import Verification


_PATH = click.Path(path_type=Path)


@click.group("ledger")
def ledger_group() -> None:
    """Show the ledger of an optimization, and replay its verdicts.

    PATH is a ledger.jsonl, or the directory of a session.

    \b
    rpl ledger show SESSION
    rpl ledger verify SESSION
    """


@ledger_group.command("verify")
@click.argument("path", type=_PATH)
@click.option("--key", type=_PATH, metavar="KEY", help="The key of --sign; without a signature by it: 1.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify(context: click.Context, path: Path, key: Path | None, as_json: bool) -> int:
    """Check the chain of hashes and work out every verdict again from its evidence.

    In a session's directory all files must be the recorded ones too: times, gains and optimize.json are
    worked out again from the recordings and the ledger. What the ledger says nothing of is named.
    Exit code 0: everything is as recorded; 1: something differs; 65: a line was changed, lost or torn.
    """
    import attrs

    from rpl_core.errors import ExitCode
    from rpl_optimize.ledger.session_files import read_key, signature_problem, verify_session_files
    from rpl_optimize.ledger.verify import verify_ledger
    from rpl_optimize.loop.recorded_session import verify_recorded_session
    from rpl_optimize.session_layout import ledger_path

    session = session_of(context)
    output = session.output
    not_bound: tuple[str, ...] = ()
    ledger = ledger_path(path)
    secret = None if key is None else read_key(key)
    verified = verify_ledger(ledger)
    if secret is not None:
        problem = signature_problem(ledger, secret, verified.lines, verified.last_sha256)
        if problem is not None:
            verified = attrs.evolve(verified, problems=(*verified.problems, (verified.lines, problem)))
        elif not as_json:
            output.line("signature: made with this key, over every line")
    if path.is_dir():
        files = verify_session_files(path)
        again = verify_recorded_session(path, lambda: session.host.catalog.readers().contributions)
        verified = attrs.evolve(
            verified,
            problems=(*verified.problems, *files.problems, *again.problems),
            notes=(*verified.notes, *again.notes),
        )
        not_bound = files.not_bound
        if not as_json:
            output.line(f"files: {files.checked} compared with what the ledger says of them")
    if as_json:
        output.json({**_verification_json(verified), "not_bound": list(not_bound)})
    else:
        for name in not_bound:
            output.line(f"not bound to the chain: {name}")
        _print(output, verified)
    return int(ExitCode.OK if verified.agrees else ExitCode.NEGATIVE_FINDING)


@ledger_group.command("show")
@click.argument("path", type=_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show(context: click.Context, path: Path, as_json: bool) -> None:
    """Print the events in their order. Hashes are checked on the way, verdicts are not replayed.

    Of a ledger whose last line was torn (kill -9, a full disk) the other lines are printed; of a damaged one
    those before the damage, with exit code 65.
    """
    from rpl_optimize.ledger.lines import BrokenLedgerError, read_ledger
    from rpl_optimize.session_layout import ledger_path

    output = session_of(context).output
    entries: list[LedgerEntry] = []
    broken: BrokenLedgerError | None = None
    try:
        entries.extend(read_ledger(ledger_path(path)))
    except BrokenLedgerError as error:
        broken = error
    if as_json:
        events = [_event(entry) for entry in entries]
        output.json({"schema_version": "1.0", "events": events, "broken": broken and broken.fact})
    else:
        rows = [
            (str(e.sequence), e.time_utc[:19], e.event.value, candidate_of(e), summary_of(e)) for e in entries
        ]
        output.table(("LINE", "UTC", "EVENT", "CANDIDATE", "WHAT"), rows, right=("LINE", "CANDIDATE"))
    if broken is not None and not broken.torn:
        raise broken
    if broken is not None:
        output.note(broken.one_line())


def _event(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "time_utc": entry.time_utc,
        "event": entry.event.value,
        "data": entry.data,
        "sha256": entry.sha256,
    }


def _print(output: Output, verified: Verification) -> None:
    output.line(f"chain: {counted(verified.lines, 'line')}, each with the hash of the one before it")
    for verdict in verified.verdicts:
        recorded = verdict.recorded
        state = "; ".join(verdict.differences) or "the same by its evidence"
        output.line(f"candidate {verdict.candidate}: {recorded.verdict} at {recorded.stage}: {state}")
    for line, problem in verified.problems:
        output.line(f"line {line}: {problem}")
    for line, note in verified.notes:
        output.line(f"line {line}, a note: {note}")
    if not verified.verdicts:
        output.line("no verdict was recorded")
    if not verified.finished:
        output.line("the session is not finished: lines that would follow may be missing")
    output.line("everything is as recorded" if verified.agrees else "NOT as recorded")


def _verification_json(verified: Verification) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "lines": verified.lines,
        "agrees": verified.agrees,
        "finished": verified.finished,
        "last_sha256": verified.last_sha256,
        "verdicts": [
            {
                "line": verdict.line,
                "candidate": verdict.candidate,
                "recorded": verdict.recorded.model_dump(mode="json"),
                "replayed": verdict.replayed.model_dump(mode="json"),
                "differences": list(verdict.differences),
            }
            for verdict in verified.verdicts
        ],
        "problems": [{"line": line, "problem": problem} for line, problem in verified.problems],
        "notes": [{"line": line, "note": note} for line, note in verified.notes],
    }


# One line for people about each event of a ledger.

_LONGEST = 100


def summary_of(entry: LedgerEntry) -> str:
    """What happened. The data may come from elsewhere: whatever is missing or odd is left out."""
    return shorten(" ".join(_words(entry.event, entry.data).split()), _LONGEST)


def candidate_of(entry: LedgerEntry) -> str:
    number = entry.data.get("candidate")
    return str(number) if isinstance(number, int) else ""


def _words(event: LedgerEvent, data: Mapping[str, Any]) -> str:
    if event is LedgerEvent.JUDGED:
        judgement = _part(data, "judgement")
        return f"{judgement.get('verdict')} at {judgement.get('stage')}: {judgement.get('reason')}"
    if event in (LedgerEvent.SOURCE_GUARDED, LedgerEvent.BINARY_GUARDED):
        guards = [g for g in _list(data, "guards") if isinstance(g, dict)]
        refusing = [f"{g.get('guard')}: {g.get('reason')}" for g in guards if g.get("passed") is not True]
        return "; ".join(refusing) or f"{len(guards)} passed"
    if event in (LedgerEvent.TIMED_ALONE, LedgerEvent.MEASURED, LedgerEvent.REMEASURED):
        return _times(_part(data, "measurement"))
    if event is LedgerEvent.MODELLED:
        part = _part(data, "modelled")
        if part.get("problem") is not None:
            return str(part["problem"])
        return f"{_short(part.get('base'))} to {_short(part.get('new'))} {part.get('unit')} (modelled)"
    if event is LedgerEvent.PLACED:
        return _placement(_part(data, "placement"))
    if event is LedgerEvent.EQUIVALENCE_CHECKED:
        checks = [c for c in _list(data, "checks") if isinstance(c, dict)]
        return ", ".join(f"{c.get('check')}: {c.get('verdict')}" for c in checks) or "no check"
    if event is LedgerEvent.BUILT:
        build = _part(data, "build")
        return str(build.get("problem") or f"{build.get('binary')} in {_short(build.get('wall_s'))} s")
    names = _SHOWN.get(event, ())
    return ", ".join(f"{_spaced(name)} {_short(data[name])}" for name in names if data.get(name) is not None)


_SHOWN: Mapping[LedgerEvent, tuple[str, ...]] = {
    LedgerEvent.SESSION_STARTED: ("source", "proposer", "tool_version"),
    LedgerEvent.RESUMED: ("tool_version",),
    LedgerEvent.BASELINE_PROFILED: ("number", "directory", "runs", "origin"),
    LedgerEvent.TARGET_CHOSEN: ("kernel", "reason"),
    LedgerEvent.PROPOSED: ("kernel", "proposer", "summary"),
    LedgerEvent.CONTINUED: ("under_way", "pairs", "repeated_pairs", "padding_bytes", "directory"),
    LedgerEvent.PLANNED: ("stage", "most_runs", "run_s", "padding_bytes", "seed"),
    LedgerEvent.ACCEPTED: ("measured_gain", "predicted_gain", "kernel_gain"),
    LedgerEvent.ROLLED_BACK: ("verdict", "reason"),
    LedgerEvent.WRITTEN: ("path", "backup"),
    LedgerEvent.FINISHED: ("termination_reason", "verdict", "termination_detail"),
    LedgerEvent.RECOVERED: ("dropped_bytes",),
    LedgerEvent.NOTE: ("text",),
}


def _times(part: Mapping[str, Any]) -> str:
    if part.get("problem") is not None:
        return str(part["problem"])
    look = _part(part, "look")
    ratio = look.get("ratio")
    shown = f"{ratio:.4f}" if isinstance(ratio, float) else "unknown"
    return f"{look.get('decision')} after {look.get('pairs')} pairs, new / base {shown}"


def _placement(part: Mapping[str, Any]) -> str:
    if part.get("problem") is not None:
        return str(part["problem"])
    shifts = [shift for shift in _list(part, "shifts") if isinstance(shift, dict)]
    told = (f"+{shift.get('padding_bytes')} bytes: {_times(_part(shift, 'measurement'))}" for shift in shifts)
    return "; ".join(told)


def _short(value: object) -> str:
    """Three digits are enough to look at; the ledger holds them all."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    return value if isinstance(value, list) else []
