"""Numbers that the writer hands out while rows stream by: string ids and event rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EventRecord", "Events", "Strings"]

#: One row of rocpd_event: id, category id, stack id, parent stack id, external correlation id.
EventRecord = tuple[int, int, int, int, int]


class Strings:
    """The string table: text to id in order of first use. Id 1 is the empty string."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {"": 1}

    def id_of(self, text: str) -> int:
        """Return the id of `text`, adding it when new."""
        return self._ids.setdefault(text, len(self._ids) + 1)

    def rows(self) -> Iterator[tuple[int, str]]:
        """Yield (id, text) in id order."""
        return ((number, text) for text, number in self._ids.items())


class Events:
    """Event rows collected in memory until `take`; ids are given in order of creation."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._next = 1
        self._pending: list[EventRecord] = []

    def add(self, category: str, stack_id: int, parent: int, external: int) -> int:
        """Create an event and return its id."""
        number = self._next
        self._next = number + 1
        self._pending.append((number, self._strings.id_of(category), stack_id, parent, external))
        return number

    def take(self) -> list[EventRecord]:
        """Return the events created since the last call."""
        pending, self._pending = self._pending, []
        return pending
