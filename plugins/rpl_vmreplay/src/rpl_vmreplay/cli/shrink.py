"""``rpl capture shrink``, and what `rpl capture verify --accesses` shares with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of
from rpl_core.text.table import counted
from rpl_vmreplay.cli.captures import replayer_option, timeout_option

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_vmreplay.capture.accesses import Accesses
    from rpl_vmreplay.capture.folder import Capture

_FOLDER = click.Path(path_type=Path)


@click.command("shrink")
@click.argument("folder", type=_FOLDER)
@click.option("-o", "--output", "target", type=_FOLDER, required=True, help="Folder of the new capture.")
@replayer_option("What tells the accesses; default: a replayer that logs them.")
@timeout_option("Seconds for one replay")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def shrink(
    context: click.Context,
    /,
    folder: Path,
    target: Path,
    replayer: str | None,
    kernel_timeout: float,
    as_json: bool,
) -> int:
    """Write a capture of the same launch with those pages of FOLDER only that it touches.

    The launch is replayed with a log of its accesses, its workgroups in three orders. The new capture is
    verified and replayed before it takes its place. It is for this code: another kernel that
    reads other pages ends in a fault there.

    \b
    rpl capture shrink isolate_capture -o small

    Exit code 0: written; 65: not whole, or the launch reaches memory that FOLDER lacks; 75: a replay does
    not leave what the captured launch left; 124: time limit.
    """
    from rpl_vmreplay.capture.shrink import shrink as shrink_capture
    from rpl_vmreplay.capture.wholeness import whole_capture
    from rpl_vmreplay.isolate.output_folder import output_folder
    from rpl_vmreplay.replayers import logging_replayer

    session = session_of(context)
    with output_folder(target, replace=False) as place:
        capture = whole_capture(folder)
        done = shrink_capture(capture, logging_replayer(session, replayer), place, kernel_timeout)
    new = done.capture
    if as_json:
        sizes = {"regions": len(new.regions), "bytes": new.bytes}
        before = {"regions": len(capture.regions), "bytes": capture.bytes}
        told = {"folder": str(target), **sizes, "before": before}
        session.output.json({"schema_version": "1.0", **told, "accesses": accesses_document(done.accesses)})
    else:
        kept = f"{new.bytes} of {capture.bytes} bytes"
        session.output.line(
            f"{kept} kept, in {counted(len(new.regions), 'region')} (before: {len(capture.regions)})"
        )
        if reason := done.accesses.reproduced_reason:
            session.output.note(f"whether replays leave what the launch left can't be said: {reason}")
    return 0


def accesses_told(session: Session, capture: Capture, replayer: str | None, limit_s: float) -> Accesses:
    from rpl_vmreplay.capture.accesses import accesses_of
    from rpl_vmreplay.replayers import logging_replayer

    return accesses_of(capture, logging_replayer(session, replayer), limit_s)


def accesses_document(accesses: Accesses | None) -> dict[str, Any] | None:
    """``None`` where the launch did not come to its end."""
    if accesses is None:
        return None
    from rpl_vmreplay.capture.ranges import size_of

    return {
        "read_first_bytes": size_of(accesses.read_first),
        "written_bytes": size_of(accesses.written),
        "touched_bytes": accesses.bytes,
        "reproduced": accesses.reproduced,
        "reproduced_reason": accesses.reproduced_reason,
    }
