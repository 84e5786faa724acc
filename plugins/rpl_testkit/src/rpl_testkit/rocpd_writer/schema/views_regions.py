"""Data views of CPU-side records: API regions, their arguments, marks, and both together."""

from __future__ import annotations

from typing import Final

from rpl_testkit.rocpd_writer.schema.view_model import SqlView, View, left, must, same
from rpl_testkit.rocpd_writer.schema.view_parts import (
    CATEGORY,
    CORRELATION,
    duration,
    event_of,
    process_thread,
)

__all__ = ["REGION_VIEWS"]

_EVENT_TEXT = same("event", "extdata call_stack line_info")
_SAMPLE_JOINS = (
    must("track", "track", "sample.track_id"),
    *event_of("sample"),
    left("string", "label", "track.name_id"),
    *process_thread("track"),
)
_SAMPLE_HEAD = {
    **same("sample", "id guid"),
    **CATEGORY,
    "name": "label.string",
    **same("track", "nid"),
    **same("process", "pid"),
    **same("thread", "tid"),
}
_SAMPLE_TAIL = {**same("sample", "event_id"), **CORRELATION, **_EVENT_TEXT}

REGION_VIEWS: Final = (
    View(
        "regions",
        "rocpd_region",
        "region",
        (*event_of("region"), must("string", "label", "region.name_id"), *process_thread("region")),
        {
            **same("region", "id guid"),
            **CATEGORY,
            "name": "label.string",
            **same("region", "nid"),
            **same("process", "pid"),
            **same("thread", "tid"),
            **duration("region"),
            **same("region", "event_id"),
            **CORRELATION,
            **_EVENT_TEXT,
        },
    ),
    View(
        "region_args",
        "rocpd_region",
        "region",
        (
            must("event", "event", "region.event_id"),
            must("arg", "arg", "event.id", column="event_id"),
            must("info_process", "process", "region.pid"),
        ),
        {**same("region", "id guid nid"), **same("process", "pid"), **same("arg", "type name value")},
    ),
    View(
        "samples",
        "rocpd_sample",
        "sample",
        _SAMPLE_JOINS,
        {**_SAMPLE_HEAD, **same("sample", "timestamp"), **_SAMPLE_TAIL},
    ),
    View(
        "sample_regions",
        "rocpd_sample",
        "sample",
        _SAMPLE_JOINS,
        {
            **_SAMPLE_HEAD,
            "start": "sample.timestamp",
            "END": "sample.timestamp",
            "duration": "(sample.timestamp - sample.timestamp)",
            **_SAMPLE_TAIL,
        },
    ),
    SqlView("regions_and_samples", "SELECT * FROM regions UNION ALL SELECT * FROM sample_regions"),
    View(
        "events_args",
        "rocpd_event",
        "event",
        (must("arg", "arg", "event.id", column="event_id"), left("string", "category", "event.category_id")),
        {
            "event_id": "event.id",
            **CATEGORY,
            **same("event", "stack_id parent_stack_id correlation_id"),
            "arg_position": "arg.position",
            "arg_type": 'arg."type"',
            "arg_name": "arg.name",
            "arg_value": "arg.value",
            **same("event", "call_stack line_info"),
            **same("arg", "extdata"),
        },
    ),
    # Real files never fill extdata.$.stream_id, so this view stays empty there
    # (docs/reference/formats.md, 2.4).
    SqlView(
        "stream_args",
        """SELECT
  arg.id AS argument_id,
  arg.event_id AS event_id,
  arg.position AS arg_position,
  arg."type" AS arg_type,
  arg.value AS arg_value,
  json_extract(arg.extdata, '$.stream_id') AS stream_id,
  stream.nid AS nid,
  process.pid AS pid,
  stream.name AS stream_name,
  stream.extdata AS extdata
FROM rocpd_arg AS arg
JOIN rocpd_info_stream AS stream
  ON stream.id = json_extract(arg.extdata, '$.stream_id') AND stream.guid = arg.guid
JOIN rocpd_info_process AS process ON process.id = stream.pid AND process.guid = stream.guid
WHERE arg.name = 'stream'""",
    ),
)
