"""The devices of a run in one line: every GPU that did work, equal ones together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text.table import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_analysis.contracts.ranks import GpuTimePart

__all__ = ["device_names"]


def device_names(profile: ProfileDocument) -> str | None:
    """Such as "8 x PRODUCT (GPU 2 to 9)"; ``None`` where nothing names a device."""
    own = profile.gpu.product or profile.gpu.architecture or _traced_family(profile)
    gpus = profile.ranks.gpus if profile.ranks else ()
    if len(gpus) < 2:
        return own
    groups: dict[str, list[GpuTimePart]] = {}
    for gpu in gpus:
        groups.setdefault(gpu.product or gpu.architecture or own or "unknown GPU", []).append(gpu)
    left_out = profile.ranks.gpus_left_out if profile.ranks else 0
    named = [f"{len(group)} x {name} ({_numbers(group)})" for name, group in groups.items()]
    return ", ".join([*named, *([f"and {left_out} more"] if left_out else [])])


def _traced_family(profile: ProfileDocument) -> str | None:
    """What thread traces say of the GPU where nothing else does."""
    found = (part.get("architecture") for part in profile.untimed_thread_traces)
    family = next((name for name in found if name), None)
    return f"a {family} GPU" if family else None


def _numbers(gpus: Sequence[GpuTimePart]) -> str:
    machines = len({gpu.node for gpu in gpus})
    if machines > 1:
        return f"on {counted(machines, 'machine')}"
    numbers = sorted(gpu.agent for gpu in gpus if gpu.agent is not None)
    if not numbers:
        return "not numbered"
    gapless = len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1
    return f"GPU {numbers[0]} to {numbers[-1]}" if gapless else f"GPU {', '.join(map(str, numbers))}"
