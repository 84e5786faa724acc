"""Joins and column groups that several data views share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rpl_testkit.rocpd_writer.schema.view_model import left, must, same

if TYPE_CHECKING:
    from rpl_testkit.rocpd_writer.schema.view_model import Join

__all__ = [
    "CATEGORY",
    "CORRELATION",
    "agent_columns",
    "category_of",
    "duration",
    "event_of",
    "process_thread",
]

CATEGORY: Final = {"category": "category.string"}
CORRELATION: Final = {**same("event", "stack_id parent_stack_id"), "corr_id": "event.correlation_id"}


def event_of(alias: str) -> tuple[Join, ...]:
    """Join the event of `alias` and the text of its category."""
    return (must("event", "event", f"{alias}.event_id"), category_of("event"))


def category_of(event: str) -> Join:
    """Join the category text; an event without one is kept."""
    return left("string", "category", f"{event}.category_id")


def process_thread(alias: str) -> tuple[Join, ...]:
    """Join process and thread of `alias`; rows that lack either disappear."""
    return (must("info_process", "process", f"{alias}.pid"), must("info_thread", "thread", f"{alias}.tid"))


def agent_columns(alias: str, prefix: str = "agent") -> dict[str, str]:
    """Return the four index and type columns of an agent under `prefix`."""
    return {
        f"{prefix}_abs_index": f"{alias}.absolute_index",
        f"{prefix}_log_index": f"{alias}.logical_index",
        f"{prefix}_type_index": f"{alias}.type_index",
        f"{prefix}_type": f'{alias}."type"',
    }


def duration(alias: str) -> dict[str, str]:
    """Return begin, end and their difference, all ns."""
    return {**same(alias, "start end"), "duration": f'({alias}."end" - {alias}."start")'}
