"""Builders for counter passes and for devices whose counter map is exactly what a test is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

from rpl_core.model.device import CounterMap, DeviceModel, Quantity
from rpl_core.model.recording import Recording
from rpl_core.model.trace import CounterValues, Trace
from rpl_testkit.traces import TracedDispatch, make_trace
from rpl_testkit.traces import make_device as a_device

PassBuilder = Callable[..., Trace]
DeviceBuilder = Callable[..., DeviceModel]


@pytest.fixture
def counter_pass() -> PassBuilder:
    """``counter_pass({"A": 1.0}, ...)``: a pass of one launch per mapping; other fields by keyword."""

    def build(*launches: dict[str, float] | tuple[str, dict[str, float]], **fields: Any) -> Trace:
        rows = [launch if isinstance(launch, tuple) else ("kernel", launch) for launch in launches]
        return make_trace(
            [
                TracedDispatch(name, 1000 * i, 1000 * i + 500, counters=dict(counters), **fields)
                for i, (name, counters) in enumerate(rows)
            ]
        )

    return build


@pytest.fixture
def with_instances() -> Callable[[Trace, Sequence[tuple[int, str, int, float]]], Trace]:
    """Replace the counter rows of a trace by (dispatch, counter, instance, value)."""

    def replace(trace: Trace, rows: Sequence[tuple[int, str, int, float]]) -> Trace:
        names = tuple(sorted({row[1] for row in rows}))
        values = CounterValues(
            dispatch=np.array([row[0] for row in rows], dtype=np.int64),
            counter=np.array([names.index(row[1]) for row in rows], dtype=np.int32),
            instance=np.array([row[2] for row in rows], dtype=np.int32),
            value=np.array([row[3] for row in rows], dtype=np.float64),
            duration_ns=np.full(len(rows), 500, dtype=np.int64),
        )
        return attrs.evolve(trace, counters=values, counter_names=names)

    return replace


@pytest.fixture
def recording() -> Callable[..., Recording]:
    """``recording(trace, ...)``."""
    return lambda *traces: Recording(tuple(traces))


@pytest.fixture
def make_device() -> DeviceBuilder:
    """``make_device(quantity, ...)``: a device of 4 CUs and 2 XCDs that defines only these quantities."""

    def build(*quantities: Quantity, **fields: Any) -> DeviceModel:
        return a_device(**{"counter_map": CounterMap(quantities, ()), **fields})

    return build
