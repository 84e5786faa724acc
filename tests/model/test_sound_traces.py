"""What a trace may hold, column by column; which GPUs ran something; facts by their keys; a worker's answers.

A trace with every table is drawn, and then one thing of it is made wrong: each column that points somewhere,
each length, each pair of times.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import attrs
import numpy as np
import pytest

from rpl_core.errors import BadDataError, InterruptedRunError
from rpl_core.executor_worker import done
from rpl_core.interfaces.analyzer import AppFigure, Fact, Facts, KernelFigure
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.model.recording import Recording
from rpl_core.model.trace import (
    Agent,
    ApiCalls,
    CallKind,
    CallMeaning,
    Copies,
    CounterValues,
    DeviceEvents,
    Dispatches,
    Kernel,
    LaunchShapes,
    Process,
    Queue,
    Stream,
    Trace,
    TraceRole,
    TraceSource,
    protect,
    require_sound,
)

ROWS = 6
#: Table -> columns that point into something, and how many of that there are in the trace of this test.
POINTS = {
    "dispatches": {"process": 2, "agent": 3, "kernel": 4, "stream": 2, "queue": 5, "shape": 3},
    "copies": {"process": 2, "source_agent": 3, "destination_agent": 3, "stream": 2, "direction": 2},
    "api_calls": {"process": 2, "function": 3},
    "device_events": {"process": 2, "agent": 3, "queue": 5, "source_queue": 5},
    "counters": {"dispatch": ROWS, "counter": 2},
}
TABLES = {
    "dispatches": Dispatches,
    "copies": Copies,
    "api_calls": ApiCalls,
    "device_events": DeviceEvents,
    "counters": CounterValues,
}


def table(name, rng):
    columns = {}
    for field in attrs.fields(TABLES[name]):
        size = POINTS[name].get(field.name)
        if size is not None:
            # The first, the last and none of them are there in each column.
            some = [0, size - 1, -1, *(rng.randrange(size) for _ in range(ROWS - 3))]
            columns[field.name] = np.array(some, np.int64 if field.name == "dispatch" else np.int32)
        elif field.name == "begin_ns":
            columns["begin_ns"] = np.arange(ROWS, dtype=np.int64) * 10
        elif field.name == "end_ns":
            columns["end_ns"] = columns["begin_ns"] + np.array([0, *range(5, 5 + ROWS - 1)])
        else:
            columns[field.name] = np.zeros(ROWS, np.int64)
    return TABLES[name](**columns)


def sound(seed=0, **changes):
    rng = random.Random(seed)
    whole = Trace(
        source=TraceSource("r", "f", ("a.db",)),
        role=TraceRole.COUNTERS,
        origin=Origin.MEASURED,
        processes=tuple(Process(f"g{n}", n, "node") for n in range(2)),
        agents=tuple(Agent("node", n, "GPU") for n in range(3)),
        kernels=tuple(Kernel(f"k{n}") for n in range(4)),
        streams=tuple(Stream(0, n) for n in range(2)),
        queues=tuple(Queue(0, n) for n in range(5)),
        shapes=LaunchShapes(
            np.ones((3, 3), np.int64), np.ones((3, 3), np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64)
        ),
        copy_directions=("to", "from"),
        api_functions=("a", "b", "c"),
        counter_names=("X", "Y"),
        **{name: table(name, rng) for name in TABLES},
    )
    return attrs.evolve(whole, **changes)


def with_column(trace, name, column, values):
    return attrs.evolve(trace, **{name: attrs.evolve(getattr(trace, name), **{column: values})})


def test_a_trace_with_every_table_is_sound():
    for seed in range(5):
        require_sound(sound(seed), trusted=True)


@pytest.mark.parametrize(
    ("name", "column", "size"), [(t, c, n) for t in POINTS for c, n in POINTS[t].items()]
)
def test_a_column_points_to_what_is_there_or_to_nothing(name, column, size):
    for wrong in (-2, size, size + 9):
        values = getattr(getattr(sound(), name), column).copy()
        values[-1] = wrong
        with pytest.raises(ValueError, match=rf"{name}\.{column} points outside of the {size} there are"):
            require_sound(with_column(sound(), name, column, values), trusted=True)


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_of_one_length_and_times_go_on(name):
    for field in attrs.fields(TABLES[name]):
        short = getattr(getattr(sound(), name), field.name)[:-1]
        with pytest.raises(ValueError, match="Trace"):
            require_sound(with_column(sound(), name, field.name, short), trusted=True)
    if name == "counters":
        return
    ends = getattr(sound(), name).end_ns.copy()
    ends[2] = getattr(sound(), name).begin_ns[2] - 1
    with pytest.raises(ValueError, match=f"{name} has rows that end before they begin"):
        require_sound(with_column(sound(), name, "end_ns", ends), trusted=True)
    begins = getattr(sound(), name).begin_ns.copy()
    begins[1], begins[2] = begins[2], begins[1] - 1
    turned = with_column(sound(), name, "begin_ns", begins)
    turned = with_column(turned, name, "end_ns", begins + 100)
    if name == "dispatches":
        with pytest.raises(ValueError, match="not in the order of their begin"):
            require_sound(turned, trusted=True)
    else:
        require_sound(turned, trusted=True)


def test_what_is_no_trace_and_what_no_file_can_hold_is_refused():
    with pytest.raises(TypeError, match="str where a Trace was expected"):
        require_sound("a trace")
    with pytest.raises(ValueError, match="surrogates"):
        require_sound(sound(kernels=tuple(Kernel(f"k\udc80{n}") for n in range(4))), trusted=True)
    with pytest.raises(ValueError, match="1 api_meanings for 3 api_functions"):
        sound(api_meanings=(CallMeaning(CallKind.UNKNOWN),))
    assert [one.kind for one in sound().meanings()] == [CallKind.UNKNOWN] * 3


def test_columns_that_everybody_shares_can_not_be_written():
    trace = sound()
    columns = [
        column
        for name in (*TABLES, "shapes")
        for column in attrs.asdict(getattr(trace, name), recurse=False).values()
    ]
    assert all(column.flags.writeable for column in columns)
    protect(trace)
    assert len(columns) > 40
    assert not any(column.flags.writeable for column in columns)


@pytest.mark.parametrize("seed", range(20))
def test_the_gpus_of_a_recording_are_those_that_ran_something(seed):
    """Once each, in the order in which they are met; as it is described where any trace does that."""
    rng = random.Random(seed)
    traces = []
    for _ in range(rng.randint(1, 3)):
        agents = tuple(
            Agent(rng.choice("ab"), n, rng.choice(("GPU", "GPU", "CPU", "NIC")), rng.choice((None, "gfx942")))
            for n in range(3)
        )
        ran = np.array([rng.choice((-1, 0, 1, 2)) for _ in range(rng.randint(0, 3))], np.int32)
        empty = {field.name: np.zeros(len(ran), np.int32) for field in attrs.fields(Dispatches)}
        traces.append(sound(agents=agents, dispatches=Dispatches(**{**empty, "agent": ran})))
    met: dict[tuple[str, int], list[Agent]] = {}
    for trace in traces:
        for n, agent in enumerate(trace.agents):
            if agent.kind == "GPU" and n in trace.dispatches.agent.tolist():
                met.setdefault((agent.node, agent.index), []).append(agent)
    expected = [next((a for a in some if a.architecture), some[-1]) for some in met.values()]
    assert list(Recording(tuple(traces)).gpu_agents) == expected


def test_traces_have_their_roles():
    counted = sound()
    timed = sound(role=TraceRole.TIMING, counters=None)
    bare = sound(role=TraceRole.REFERENCE, counters=None, origin=Origin.SYNTHETIC)
    recording = Recording((timed, counted, bare, timed))
    assert recording.timing_runs == (timed, timed)
    assert recording.counter_passes == (counted,)
    assert recording.reference_runs == (bare,)
    assert recording.origin is Origin.SYNTHETIC
    assert Recording((timed, counted)).origin is Origin.MEASURED


# Facts.


def metric(value):
    return Metric(value, "ns", Exactness.EXACT, Origin.MEASURED)


def test_figures_of_a_kernel_are_its_own_and_those_of_the_application():
    own, other = KernelFigure("own"), KernelFigure("other")
    whole, absent = AppFigure("whole"), AppFigure("absent")
    text = Fact("text", str)
    values = {
        own: {"k": metric(1.0), "j": metric(2.0)},
        other: {"j": metric(3.0)},
        whole: metric(4.0),
        absent: None,
        text: "said",
    }
    facts = Facts(values)
    assert facts.figures("k") == {"own": metric(1.0), "whole": metric(4.0)}
    assert facts.figures("j") == {"own": metric(2.0), "other": metric(3.0), "whole": metric(4.0)}
    assert facts.figures("nobody") == {"whole": metric(4.0)}
    assert (len(facts), set(facts)) == (5, set(values))
    assert (facts[text], facts.get(Fact("none")), facts[absent]) == ("said", None, None)
    assert absent in facts
    assert Fact("none") not in facts
    with pytest.raises(KeyError):
        facts[Fact("none")]
    with pytest.raises(TypeError):
        facts[own]["k"] = metric(9.0)
    more = facts.with_values({text: "again", Fact("new"): 1})
    assert (more[text], more[Fact("new")], facts[text], len(more)) == ("again", 1, "said", 6)
    # Keys are the same by their names.
    assert Fact("text") in facts


@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        (Fact("a", int), 3, None),
        (Fact("a", int), None, None),
        (Fact("a", int), "3", "the fact 'a' is int, not str"),
        (Fact("a", (int, str)), 2.0, "the fact 'a' is int or str, not float"),
        (Fact("a", object), object(), None),
        (Fact("a", dict, published=True), {"x": [1, None]}, None),
        (Fact("a", dict, published=True), {"x": float("nan")}, "can't be written as JSON"),
        (Fact("a", dict, published=True), {"x": {1}}, "can't be written as JSON"),
        (Fact("a", str, published=True), "\udc80", "can't be written as JSON"),
        (KernelFigure("a"), {"k": metric(1.0)}, None),
        (KernelFigure("a"), None, None),
        (KernelFigure("a"), {"k": 1.0}, "maps kernel names to sound Metrics: found 1.0"),
        (KernelFigure("a"), {1: metric(1.0)}, "maps kernel names to sound Metrics"),
        (KernelFigure("a"), [metric(1.0)], "the fact 'a' is Mapping, not list"),
        (AppFigure("a"), metric(1.0), None),
        (AppFigure("a"), 1.0, "the fact 'a' is Metric, not float"),
    ],
)
def test_a_fact_is_of_the_kind_of_its_key(fact, value, said):
    problem = fact.violation(value)
    assert problem is None if said is None else said in problem


# What a worker answers.


def _answer(argument, place):
    if argument == "known":
        raise BadDataError("it is broken", next_step="mend it")
    if argument == "unknown":
        raise KeyError("x")
    if argument == "interrupted":
        raise InterruptedRunError("stopped")
    return f"{argument} at {place}"


def test_a_worker_answers_with_text_or_with_what_went_wrong():
    assert done(_answer, "task", "gpu0") == {"place": "gpu0", "text": "task at gpu0"}
    known = done(_answer, "known", "gpu0")
    assert (known["place"], known["exit_code"]) == ("gpu0", 65)
    assert known["error"].startswith("it is broken")
    unknown = {"place": "gpu0", "error": "KeyError: 'x'", "exit_code": 70}
    assert done(_answer, "unknown", "gpu0") == unknown
    with pytest.raises(InterruptedRunError):
        done(_answer, "interrupted", "gpu0")


TASKS = """
import sys
from rpl_core.errors import InterruptedRunError

def say(argument, place):
    print("noise of a plugin")
    return f"{argument} at {place}"

def stop(argument, place):
    raise InterruptedRunError("stopped")
"""


def test_a_worker_ends_with_its_input_or_where_it_is_interrupted(tmp_path):
    """A line of JSON for each task; what tasks print is no answer, behind an interrupt nothing is done."""
    (tmp_path / "tasks.py").write_text(TASKS)
    places = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": places}
    tasks = [["tasks", "say", "a"], ["tasks", "say", "b"], ["tasks", "stop", ""], ["tasks", "say", "c"]]
    worker = [sys.executable, "-m", "rpl_core.executor_worker", "gpu1"]
    given = "".join(json.dumps(task) + "\n" for task in tasks)
    ran = subprocess.run(worker, input=given, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert answers == [{"place": "gpu1", "text": f"{letter} at gpu1"} for letter in "ab"]
    assert ran.stderr.count("noise of a plugin") == 2
