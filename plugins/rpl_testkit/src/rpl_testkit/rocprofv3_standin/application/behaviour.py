"""Misbehaviour on demand, so that tests see how a caller copes with a profiler that fails.

`RPL_STANDIN_MISBEHAVE` or the scenario key `misbehaviour` holds `KIND[=VALUE][:WHEN]`, several separated
by `;`. KIND: `hang`, `hang_hard` (ignores SIGTERM and SIGINT), `abort`, `no_output`, `truncated`, `empty`,
`disk_full`, `slow=SECONDS`, `unavailable=COUNTER,...`, `exit=CODE`,
for thread traces `att_empty`, `att_data_lost`, `att_undecoded`, for PC sampling `pc_unsupported`, for kernel
replay `replay_declined=REASON` (launches of the first kernel). WHEN: `trace`, `counters` or `run=N` (needs
`RPL_STANDIN_STATE`, runs count from 1).
"""

from __future__ import annotations

from typing import Final

from rpl_core.values import frozen

__all__ = ["Misbehaviour", "active_misbehaviours", "parse_misbehaviours"]

_KINDS: Final = (
    "hang",
    "hang_hard",
    "abort",
    "no_output",
    "truncated",
    "empty",
    "disk_full",
    "slow",
    "unavailable",
    "exit",
    "att_empty",
    "att_data_lost",
    "att_undecoded",
    "pc_unsupported",
    "replay_declined",
)


@frozen
class Misbehaviour:
    """One failure: what, with which value, and when (empty: always)."""

    kind: str
    value: str = ""
    when: str = ""


def parse_misbehaviours(text: str) -> tuple[Misbehaviour, ...]:
    """Read the notation above. ValueError names what is not understood."""
    return tuple(_parse_one(part.strip()) for part in text.split(";") if part.strip())


def _parse_one(text: str) -> Misbehaviour:
    action, _, when = text.partition(":")
    kind, _, value = action.partition("=")
    if kind not in _KINDS:
        raise ValueError(f"misbehaviour {kind!r} is not one of {', '.join(_KINDS)}")
    if when and when not in ("trace", "counters") and not when.startswith("run="):
        raise ValueError(f"condition {when!r} is not trace, counters or run=N")
    return Misbehaviour(kind, value, when)


def active_misbehaviours(
    given: tuple[Misbehaviour, ...], *, counting: bool, run: int | None
) -> dict[str, str]:
    """Return kind to value of those that apply to this run."""
    here = {"", "counters" if counting else "trace", f"run={run}"}
    return {item.kind: item.value for item in given if item.when in here}
