"""The event table of a rocpd part: which API call (stack id) a row belongs to.

``rocpd_event.correlation_id`` is the external id, usually 0; the link between a dispatch and the API
call that launched it is ``stack_id`` (docs/reference/formats.md, trap 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.id_lookup import positions, taken
from rpl_rocprofv3.readers.sqlite.integer_columns import read_integers

if TYPE_CHECKING:
    from rpl_core.model.trace import Int32Column, Int64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns.id_lookup import IntegerColumn
    from rpl_rocprofv3.readers.rocpd.parts import Part

__all__ = ["Events", "read_events"]


@frozen(eq=False)
class Events:
    """Columns of ``rocpd_event``, -1 where not recorded."""

    id: IntegerColumn
    stack_id: IntegerColumn
    parent_stack_id: IntegerColumn
    category_id: IntegerColumn

    def positions(self, event_ids: Int64Column) -> Int32Column:
        """Row of each event id, -1 where there is none."""
        return positions(event_ids, self.id)

    def stack_id_at(self, rows: Int32Column) -> Int64Column:
        """Stack id of the events at ``rows``; -1 for no row and for the stack id 0, which means none."""
        return taken(self.stack_id, rows, none=0)


def read_events(database: Database, part: Part, *, of_api_calls: bool) -> Events:
    """Read the event table; parents and categories only when API calls need them."""
    table = part.table("event")
    assert table is not None  # the identity check asked for it
    columns = ("id", "stack_id", "parent_stack_id", "category_id")
    read = read_integers(database, table, columns if of_api_calls else columns[:2])
    nothing = np.empty(0, np.int64)
    return Events(*(read[name] if name in read.values else nothing for name in columns))
