"""A million dispatches and the longest names make a page of less than 5 MB, fast."""

from __future__ import annotations

import time

import attrs
import numpy as np
import pytest

from rpl_core.interfaces.section import RenderRequest
from rpl_core.model.recording import Recording
from rpl_core.pipeline import AnalysisRequest, analyse
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host
from rpl_report.html import HtmlRenderer
from rpl_report.timeline.build import timeline_of
from rpl_testkit.traces import TracedDispatch, make_trace

COUNT, STREAMS, KERNELS = 1_000_000, 8, 400


def _long_trace():
    """Eight busy streams, 400 kernels with names of 2 KB full of markup."""
    names = [f"<kernel&{i}>" + "<&>\"'" * 400 for i in range(KERNELS)]
    seed = make_trace(
        [TracedDispatch(names[i], 10 * i, 10 * i + 5, stream=i % STREAMS) for i in range(KERNELS)]
    )
    rng = np.random.default_rng(7)
    stream = (np.arange(COUNT) % STREAMS).astype(np.int32)
    length = rng.integers(2_000, 50_000, COUNT)
    begin = np.empty(COUNT, dtype=np.int64)
    for number in range(STREAMS):
        own = stream == number
        begin[own] = np.cumsum(length[own] + 700) - length[own]
    order = np.argsort(begin, kind="stable")
    columns = attrs.asdict(seed.dispatches, recurse=False)
    first = {name: np.resize(column, COUNT) for name, column in columns.items()}
    dispatches = attrs.evolve(
        seed.dispatches,
        **first
        | {
            "stream": stream[order],
            "kernel": rng.integers(0, KERNELS, COUNT).astype(np.int32),
            "dispatch_id": np.arange(1, COUNT + 1),
            "correlation_id": np.arange(1, COUNT + 1),
            "begin_ns": begin[order],
            "end_ns": (begin + length)[order],
        },
    )
    return attrs.evolve(seed, dispatches=dispatches)


@pytest.mark.long
def test_a_million_dispatches_fit_into_five_megabytes():
    trace = _long_trace()
    host = create_host(PluginSelection.from_environment(modules=(), disabled=(), trace=False), config={})
    documents = analyse(Recording((trace,)), AnalysisRequest(device="MI300X"), host)
    start = time.process_time()
    timeline = timeline_of(trace)
    page = HtmlRenderer().render(RenderRequest(documents.by_name(), timeline=timeline))
    assert time.process_time() - start < 20
    assert timeline.nodes == COUNT
    assert len(page.encode()) < 5_000_000
    assert "1\N{NARROW NO-BREAK SPACE}000\N{NARROW NO-BREAK SPACE}000 dispatches" in page
