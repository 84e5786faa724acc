"""What the host did, of drawn calls: threads walked call by call (docs/reference/execution-graph.md, 3.5)."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from rpl_analysis.execution_graph.results.loads import host_timeline
from rpl_core.model.trace import CallKind, CallMeaning

#: What each function means: waits, copies of both kinds, and others.
FUNCTIONS = (
    ("hipMemcpyAsync", CallMeaning(CallKind.OTHER, copies=True)),
    ("hipMemcpy", CallMeaning(CallKind.BLOCKING_COPY, copies=True)),
    ("hipStreamSynchronize", CallMeaning(CallKind.STREAM_SYNC)),
    ("hipEventSynchronize", CallMeaning(CallKind.EVENT_SYNC)),
    ("hipDeviceSynchronize", CallMeaning(CallKind.DEVICE_SYNC)),
    ("hipLaunchKernel", CallMeaning(CallKind.OTHER)),
    ("hipFree", CallMeaning(CallKind.FREE)),
)
WAITS = {CallKind.STREAM_SYNC, CallKind.EVENT_SYNC, CallKind.DEVICE_SYNC}


def _drawn(rng: random.Random) -> list[tuple[int, int, int, int]]:
    """(thread, begin, end, function), some inside of others, in no order; many threads have one call."""
    calls = []
    for thread in range(rng.randint(1, 4)):
        at = rng.randint(0, 3)
        for _ in range(rng.choice((1, 1, 2, 5, 9))):
            end = at + rng.randint(1, 6)
            calls.append((thread, at, end, rng.randrange(len(FUNCTIONS))))
            inner = rng.randint(at, end)
            if rng.random() < 0.4 and inner < end:
                calls.append((thread, inner, rng.randint(inner + 1, end), rng.randrange(len(FUNCTIONS))))
            at = end + rng.choice((0, 1, 3))
    rng.shuffle(calls)
    # Two calls of one thread that begin together: the longer one is around the other.
    return list({call[:3]: call for call in calls}.values())


def _outermost(calls: list[tuple[int, int, int, int]], thread: int) -> list[int]:
    """Numbers of the calls of a thread that no other one of it is around, as they begin."""
    own = [number for number, call in enumerate(calls) if call[0] == thread]
    return sorted(
        (
            one
            for one in own
            if not any(
                calls[other][1] <= calls[one][1] and calls[one][2] <= calls[other][2]
                for other in own
                if other != one
            )
        ),
        key=lambda one: calls[one][1],
    )


@pytest.mark.parametrize("seed", range(60))
def test_outermost_calls_and_which_of_them_copy(seed: int) -> None:
    rng = random.Random(seed)
    calls = _drawn(rng)
    threads = max(call[0] for call in calls) + 1
    waited = sorted(rng.sample(range(len(calls)), rng.randint(0, min(2, len(calls)))))
    submitted = [rng.randint(-1, len(calls) - 1) for _ in range(5)]
    work_rows = rng.sample(range(5), 3)
    recorded = rng.random() < 0.2

    column = [np.array(values, np.int64) for values in zip(*calls, strict=True)]
    meanings = tuple(meaning for _, meaning in FUNCTIONS)
    table = SimpleNamespace(begin_ns=column[1], end_ns=column[2], function=column[3].astype(np.int32))
    kinds = np.array([meanings[function].kind for function in column[3].tolist()])
    host = SimpleNamespace(table=table, thread=column[0].astype(np.int32), kind=kinds, threads=threads)
    found = host_timeline(
        SimpleNamespace(
            copies=[1] if recorded else [],
            meanings=lambda: meanings,
            api_functions=tuple(name for name, _ in FUNCTIONS),
        ),
        SimpleNamespace(work_rows=np.array(work_rows)),
        SimpleNamespace(
            program=SimpleNamespace(calls=host, submissions=SimpleNamespace(call=np.array(submitted))),
            syncs=SimpleNamespace(call=np.array([-1, *waited])),
        ),
    )

    assert found is not None
    for thread in range(threads):
        rows = range(int(found.first[thread]), int(found.first[thread + 1]))
        expected = _outermost(calls, thread)
        shown = [(found.begin_ns[i], found.end_ns[i], found.function[i]) for i in rows]
        assert shown == [calls[one][1:] for one in expected]
        moving = False  # data may move that nobody has waited for
        for row, one in zip(rows, expected, strict=True):
            meaning = meanings[calls[one][3]]
            ends = meaning.kind in WAITS or meaning.kind is CallKind.BLOCKING_COPY
            assert found.copies[row] == (not recorded and (meaning.copies or (ends and moving)))
            assert found.waits[row] == (meaning.kind in WAITS or one in waited)
            moving = not ends and (moving or meaning.copies)
    assert found.first[-1] == len(found.begin_ns) == len(found.copies)
    for place, row in enumerate(work_rows):
        call = submitted[row]
        assert found.thread[place] == (calls[call][0] if call >= 0 else -1)
        assert found.returned_ns[place] == (calls[call][2] if call >= 0 else -1)


def test_nothing_is_told_without_calls() -> None:
    without = SimpleNamespace(program=SimpleNamespace(calls=None))
    assert host_timeline(SimpleNamespace(), SimpleNamespace(), without) is None
