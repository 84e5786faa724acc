"""The answer to -L: every counter of the synthetic device, in the layout of rocprofv3-avail."""

from __future__ import annotations

from rpl_testkit.synthetic_recording.counter_twin import available_counters, counter_definition

__all__ = ["list_available"]


def list_available() -> str:
    """Return the text for stdout."""
    lines = [f"{'GPU':30}:\t0", f"{'Name':30}:\tgfx942"]
    for name in available_counters():
        definition = counter_definition(name, 0)
        lines += [
            f"{'Counter_Name':20}:\t{name}",
            f"{'Description':20}:\t{definition.description}",
            f"{'Expression':20}:\t{definition.expression}"
            if definition.is_derived
            else f"{'Block':20}:\t{definition.block}",
            "",
        ]
    return "\n".join(lines)
