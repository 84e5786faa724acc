"""Each check of the self-test on figures just within and just beyond what it allows, without any program.

The bounds stand here as docs/first-day.md and the lines of `rpl selftest` tell them: a check that allows more
than it says would confirm what is wrong.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from rpl_core.model.metric import Origin
from rpl_core.model.trace import TraceRole
from rpl_selftest.bench import TRACED, Answer, Bench, Recorded, kernels
from rpl_selftest.check import Check, NotPossibleError, Outcome, document_of, run_checks
from rpl_selftest.checks import counting, machine, timing

GOOD, BAD = Outcome.CONFIRMED, Outcome.REFUTED
LONG, SHORT = "fma_long", "fma_short"


class Scripted(Bench):
    """A bench whose commands answer what is written down for their first words."""

    answers: dict

    def rpl(self, *words, statuses=(0,), environment=()):
        _ = environment
        told = next(
            answer for start, answer in self.answers.items() if " ".join(map(str, words)).startswith(start)
        )
        status, document = told if isinstance(told, tuple) else (0, told)
        if status not in statuses:
            raise NotPossibleError(f"exit code {status}")
        return Answer(status, json.dumps(document).encode(), 1.0, "said")

    def build(self, name="known_work"):
        return self.folder / name, self.folder / f"{name}.hsaco"


@pytest.fixture
def bench(tmp_path, rpl_host):
    made = Scripted(folder=tmp_path, host=rpl_host())
    made.answers = {}
    made.temporary.mkdir()
    return made


def recorded(launch_ns=(), event_ns=None, *, origin=Origin.MEASURED, profile=None, counters=None, wall_s=1.0):
    """What a run gave: (kernel, ns) of each launch, the program's own times, and counts of one launch."""
    names = list(dict.fromkeys([*(name for name, _ in launch_ns), *(counters or {})]))
    known = [SimpleNamespace(name=name) for name in names]
    ends = np.array([ns for _, ns in launch_ns], dtype=np.int64) + 1000
    run = SimpleNamespace(
        role=TraceRole.TIMING,
        kernels=known,
        source=SimpleNamespace(format="rocpd 3"),
        dispatches=SimpleNamespace(
            kernel=np.array([names.index(name) for name, _ in launch_ns], dtype=np.int64),
            begin_ns=np.full(len(ends), 1000),
            end_ns=ends,
        ),
    )
    passes = []
    if counters is not None:
        every = sorted({name for counts in counters.values() for name in counts})
        # Two launches of each kernel; each count is spread over two instances.
        rows = [
            (2 * k + launch, every.index(name), value / 2)
            for k, counts in enumerate(counters.values())
            for launch in (0, 1)
            for name, value in counts.items()
            for _ in range(2)
        ]
        passes.append(
            SimpleNamespace(
                role=TraceRole.COUNTERS,
                kernels=[SimpleNamespace(name=f"{name}(float*)") for name in counters],
                counter_names=every,
                dispatches=SimpleNamespace(kernel=np.repeat(np.arange(len(counters)), 2)),
                counters=SimpleNamespace(
                    dispatch=np.array([row[0] for row in rows]),
                    counter=np.array([row[1] for row in rows]),
                    value=np.array([row[2] for row in rows]),
                ),
            )
        )
    recording = SimpleNamespace(
        origin=origin,
        timing_runs=[run] if launch_ns else [],
        counter_passes=passes,
        traces=[run, *passes],
        gpu_agents=(SimpleNamespace(product="a GPU"),),
    )
    return Recorded(recording, profile or {}, event_ns or {}, wall_s)


def given(bench, name, made):
    bench.once(f"recording {name}", lambda: made)


def run_of(long_ns, short_ns, event_long_ns, event_short_ns, **more):
    launches = [(LONG, long_ns), (SHORT, short_ns)]
    return recorded(launches, {LONG: (event_long_ns,), SHORT: (event_short_ns,)}, **more)


@pytest.mark.parametrize(
    ("difference_ns", "outcome"),
    [(4_000_000, GOOD), (4_019_000, GOOD), (3_981_000, GOOD), (4_021_000, BAD), (3_979_000, BAD)],
)
def test_times_agree_within_half_a_percent(bench, difference_ns, outcome):
    """Of 4 ms by events, however much an event costs."""
    given(bench, "timing", run_of(3_000_000 + difference_ns, 3_000_000, 8_006_000, 4_006_000))
    found = timing.events(bench)
    assert found.outcome is outcome
    assert found.figures["slope"] == pytest.approx(difference_ns / 4_000_000 - 1)
    assert found.figures["around_ns"] == 8_006_000 - 3_000_000 - difference_ns


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (run_of(8, 4, 8, 4, origin=Origin.MODELLED), "modelled bounds"),
        (run_of(8, 4, 4, 4), "took no longer"),
        (run_of(8, 4, 3, 4), "took no longer"),
        (recorded([(LONG, 8)], {LONG: (8.0,), SHORT: (4.0,)}), "no time of fma_short"),
        (recorded([(LONG, 8), (SHORT, 4)], {SHORT: (4.0,)}), "no time of fma_long"),
        (recorded([], {LONG: (8.0,), SHORT: (4.0,)}), "no timing run"),
    ],
)
def test_times_that_say_nothing_confirm_nothing(bench, made, why):
    given(bench, "timing", made)
    with pytest.raises(NotPossibleError, match=why):
        timing.events(bench)


def test_every_launch_is_counted(bench):
    launches = [(LONG, 8)] * 3 + [(SHORT, 4)] * 2
    given(bench, "timing", recorded(launches, {LONG: (1.0,) * 3, SHORT: (1.0,) * 2}))
    assert timing.launches_seen(bench).outcome is GOOD
    assert timing.launches_seen(bench).found == "5 of 5"
    other = Scripted(folder=bench.folder, host=bench.host)
    given(other, "timing", recorded(launches, {LONG: (1.0,) * 2, SHORT: (1.0,) * 2, "lds_tree": (1.0,)}))
    found = timing.launches_seen(other)
    assert (found.outcome, found.found) == (BAD, "fma_long: 3 of 2; lds_tree: 0 of 1")


OVERHEADS = (("timing", 0.02), ("calls", 0.02), ("counters", 0.10), ("traced", 1.00), ("sampled", 0.10))


@pytest.mark.parametrize(("name", "most"), OVERHEADS)
@pytest.mark.parametrize(("beside", "outcome"), [(-0.5, GOOD), (-0.001, GOOD), (0.001, BAD)])
def test_watching_costs_no_more_than_it_may(bench, name, most, beside, outcome):
    watched = 1000.0 * (1 + most + beside)
    sizes = TRACED if name == "traced" else bench.sizes
    bench.once(f"bare times {sizes.iterations}", lambda: 1000.0)
    # Of a trace the second launch is the traced one; of others the middle of all counts.
    times = (1.0, watched, 2.0) if name == "traced" else (9000.0, 1.0, watched)
    samples = [{"kernel": LONG, "samples": 999}, {"kernel": SHORT, "samples": 1}]
    profile = {"sections": {"pc_sampling": {"kernels": samples}}, "diagnostics": []}
    counts = {LONG: {"SQ_WAVES": 4}}
    made = recorded([(LONG, 1)], {LONG: times}, counters=counts, profile=profile, wall_s=7.0)
    given(bench, name, made)
    bench.once("trace", lambda: (made, ()))
    check = {
        "timing": timing.timing_overhead,
        "calls": timing.api_overhead,
        "counters": timing.counting_overhead,
        "traced": timing.trace_overhead,
        "sampled": timing.sampling_overhead,
    }[name]
    found = check(bench)
    assert found.outcome is outcome
    assert found.figures == {"added": pytest.approx(most + beside), "wall_s": 7.0}


@pytest.mark.parametrize(
    ("memory", "valu", "outcome"),
    [
        (0.61, 0.5, GOOD),
        (0.59, 0.5, BAD),
        (1.019, 1.019, GOOD),
        (1.021, 0.5, BAD),
        (0.8, 1.021, BAD),
    ],
)
def test_measured_ceilings_are_those_of_a_sheet_less_what_nobody_reaches(bench, memory, valu, outcome):
    given(bench, "timing", recorded([(LONG, 8)], profile={"provenance": {"device": "gpu"}}))
    sheet = [("HBM", None, 5000.0), ("L2", None, 9000.0), ("F32", "valu", 100.0)]
    spec = [{"ceiling": c, "pipe": p, "rate": r, "origin": "spec"} for c, p, r in sheet]
    measured = {"ceiling": "HBM", "pipe": None, "rate": 1.0, "origin": "measured"}
    rates = [
        {"what": "copy", "pipe": None, "best": memory * 5000.0, "refused": None},
        {"what": "read", "pipe": None, "best": memory * 4000.0, "refused": None},
        {"what": "write", "pipe": None, "best": 90_000.0, "refused": "above the peak"},
        {"what": "L2", "pipe": None, "best": 4500.0, "refused": None},
        {"what": "F32", "pipe": "valu", "best": valu * 100.0, "refused": None},
    ]
    bench.answers = {
        "ceilings measure": {"rates": rates},
        "ceilings --device": {"ceilings": [measured, *spec]},
    }
    found = timing.ceilings(bench)
    assert found.outcome is outcome
    shares = {"memory": memory, "L2": 0.5, "F32 valu": valu}
    assert found.figures == {name: pytest.approx(share) for name, share in shares.items()}


# Counts, which have no tolerance.


def counts_by_arithmetic(bench):
    return {one.name: {"SQ_WAVES": one.waves} for one in kernels(bench.sizes)}


def test_waves_and_instructions_are_equal_or_refuted(bench):
    counts = counts_by_arithmetic(bench)
    given(bench, "counters", recorded(counters=counts))
    assert counting.waves(bench).outcome is GOOD
    exact = {"fma_long": {"SQ_INSTS_VALU": 40, "SQ_INSTS_LDS": 0, "SQ_WAVES": 1, "GRBM_COUNT": 3}}
    for counted, outcome in ((40, GOOD), (41, BAD), (39, BAD)):
        other = Scripted(folder=bench.folder, host=bench.host)
        given(other, "counters", recorded(counters={"fma_long": {"SQ_INSTS_VALU": counted, "SQ_WAVES": 7}}))
        other.once("emulator", lambda: exact)
        found = counting.instructions(other)
        assert found.outcome is outcome
        assert found.figures == {"compared": 1, "wrong": int(outcome is BAD)}
        told = "1 of 1 counts are equal; not counted: SQ_INSTS_LDS of fma_long"
        assert found.found == (told if outcome is GOOD else f"SQ_INSTS_VALU of fma_long: {counted}, not 40")
    counts["lds_tree"]["SQ_WAVES"] += 1
    wrong = Scripted(folder=bench.folder, host=bench.host)
    given(wrong, "counters", recorded(counters=counts))
    found = counting.waves(wrong)
    assert (found.outcome, found.figures) == (BAD, {"compared": 4, "wrong": 1})


def test_without_counters_nothing_is_said_of_them(bench):
    given(bench, "counters", recorded())
    for check in (counting.waves, counting.flops):
        with pytest.raises(NotPossibleError, match="no counter was recorded"):
            check(bench)
    with pytest.raises(NotPossibleError, match="no counter pass"):
        timing.counting_overhead(bench)


@pytest.mark.parametrize(("by_counter", "by_document"), [(0, 0), (1, 0), (0, 1), (-1, 0)])
def test_operations_are_those_of_arithmetic(bench, by_counter, by_document):
    """An FMA is two operations of each of 64 lanes; four waves make as many steps as the loop has."""
    fma = "SQ_INSTS_VALU_FMA_F64"
    steps = {"stream_copy": 0, "lds_tree": 0, SHORT: 1 << 20, LONG: 1 << 21}
    counters = {name: {fma: 4 * n + (by_counter if name == LONG else 0)} for name, n in steps.items()}
    flops = {name: 2 * 64 * 4 * n + (by_document if name == SHORT else 0) for name, n in steps.items()}
    profile = {"kernels": [{"name": name, "roofline": {"flops": n}} for name, n in flops.items()]}
    given(bench, "counters", recorded(counters=counters, profile=profile))
    found = counting.flops(bench)
    wrong = int(by_counter != 0) + int(by_document != 0)
    assert found.figures == {"compared": 6, "wrong": wrong}
    assert found.outcome is (BAD if wrong else GOOD)


@pytest.mark.parametrize(
    ("share", "outcome"), [(1.0, GOOD), (0.951, GOOD), (1.049, GOOD), (0.949, BAD), (1.051, BAD)]
)
def test_bytes_are_those_of_the_copy(bench, share, outcome):
    moved = 2 * (256 << 20) * share
    profile = {"kernels": [{"name": "stream_copy", "roofline": {"bytes": moved}}]}
    given(bench, "counters", recorded(counters={"stream_copy": {"SQ_WAVES": 1}}, profile=profile))
    found = counting.memory_bytes(bench)
    assert (found.outcome, found.figures["share"]) == (outcome, pytest.approx(share))


#: Registers of a kernel, those that a SIMD gives it by 8, and the waves that 512 of them hold, at most 8.
REGISTERS = (
    (0, 8, 8),
    (1, 8, 8),
    (64, 64, 8),
    (65, 72, 7),
    (100, 104, 4),
    (128, 128, 4),
    (256, 256, 2),
    (257, 264, 1),
)


@pytest.mark.parametrize(("vgprs", "allocated", "waves"), REGISTERS)
def test_registers_are_those_of_the_code_object(bench, monkeypatch, vgprs, allocated, waves):
    code = SimpleNamespace(name=LONG, vgprs=vgprs, lds_bytes=512, scratch_bytes=16)
    objects = (SimpleNamespace(kernels=(code, SimpleNamespace(name="another"))),)
    monkeypatch.setattr("rpl_codeobject.reading.read_code_objects", lambda _path: objects)

    def found(**wrong):
        told = {"vgpr_per_thread": allocated, "lds_bytes": 512, "scratch_bytes": 16, "waves_per_simd": waves}
        told |= wrong
        kernel = {"name": LONG, "resources": told, "occupancy": told}
        machine_ = Scripted(folder=bench.folder, host=bench.host)
        given(machine_, "timing", recorded(profile={"kernels": [kernel]}))
        return counting.registers(machine_)

    right = found()
    assert (right.outcome, right.found) == (GOOD, "4 of 4 figures are equal")
    for name, value in (
        ("vgpr_per_thread", allocated + 8),
        ("lds_bytes", 511),
        ("scratch_bytes", 0),
        ("waves_per_simd", waves + 1),
    ):
        wrong = found(**{name: value})
        assert (wrong.outcome, wrong.figures) == (BAD, {"wrong": 1})
        assert f"of {LONG}: {value}, not " in wrong.found


@pytest.mark.parametrize(("more", "outcome"), [(0, GOOD), (1, BAD)])
def test_programs_that_users_have_the_source_of_are_counted_too(bench, more, outcome):
    """Names are mangled in a recording of C++; one program that can't be counted costs only itself."""
    (naive, tiled), (reduce_lds, _) = (bench.testbed_programs()[name] for name in ("gemm", "reduction"))
    exact = {one.name: {"SQ_INSTS_VALU": 100, "SQ_WAVES": 9, "GRBM_COUNT": 1} for one in (naive, tiled)}
    counts = {
        f"_Z{len(one.name)}{one.name}PKf": {"SQ_INSTS_VALU": 100, "SQ_WAVES": one.waves}
        for one in (naive, tiled)
    }
    counts[f"_Z{len(tiled.name)}{tiled.name}PKf"]["SQ_INSTS_VALU"] += more
    bench.once("testbed gemm", lambda: (recorded(counters=counts), exact))

    def absent():
        raise NotPossibleError(f"no {reduce_lds.name}")

    with pytest.raises(NotPossibleError):
        bench.once("testbed reduction", absent)
    found = counting.testbed(bench)
    assert (found.outcome, found.figures) == (outcome, {"compared": 4, "wrong": more})
    assert found.found.endswith("reduction: no reduce_lds")


# Samples and traces.


def sampled(of_long, of_short, places=()):
    blocks = [
        {"kernel": LONG, "samples": of_long, "places": list(places)},
        {"kernel": SHORT, "samples": of_short, "places": []},
        {"kernel": "stream_copy", "samples": 0, "places": []},
    ]
    fact = {"code": "pc_sampling.few", "fact": "the driver gave few"}
    profile = {"sections": {"pc_sampling": {"kernels": blocks}}, "diagnostics": [fact]}
    return recorded([(LONG, 8000), (SHORT, 2000)], profile=profile)


@pytest.mark.parametrize(
    ("of_long", "outcome"), [(8000, GOOD), (8490, GOOD), (7510, GOOD), (8510, BAD), (7490, BAD)]
)
def test_samples_are_shared_as_time_is_within_five_points(bench, of_long, outcome):
    given(bench, "sampled", sampled(of_long, 10_000 - of_long))
    found = timing.pc_samples(bench)
    assert found.outcome is outcome
    assert found.figures == {"share": pytest.approx(of_long / 10_000), "expected": pytest.approx(0.8)}


def test_a_thousand_samples_are_needed(bench):
    given(bench, "sampled", sampled(799, 200))
    with pytest.raises(NotPossibleError, match="999 samples of the two kernels, 1000 are needed; the driver"):
        timing.pc_samples(bench)
    other = Scripted(folder=bench.folder, host=bench.host)
    given(other, "sampled", sampled(800, 200))
    assert timing.pc_samples(other).outcome is GOOD


def instruction(isa, hits, latency=0, idle=None):
    return {"isa": isa, "hits": hits, "latency": latency, "idle": idle}


@pytest.mark.parametrize(
    ("vector", "outcome"), [(0.6, GOOD), (0.749, GOOD), (0.451, GOOD), (0.751, BAD), (0.449, BAD)]
)
def test_samples_and_trace_agree_within_fifteen_points(bench, vector, outcome):
    """By the trace 60 % of the cycles are vector instructions', 30 % scalar ones', 10 % of memory."""
    rest = (1 - vector) / 4
    places = [
        {"instruction": "v_fma_f64 v[0:1]", "samples": vector * 10_000},
        {"instruction": "s_add_u32 s0", "samples": rest * 30_000},
        {"instruction": "global_load_dword v0", "samples": rest * 9000},
        {"instruction": None, "samples": rest * 1000},
    ]
    given(bench, "sampled", sampled(8000, 2000, places))
    traced = [
        instruction("v_fma_f64 v[0:1]", 9, 500, 100),
        instruction("s_add_u32 s0", 9, 300),
        instruction("s_nop 0", 0, 10**6),
        instruction("global_load_dword v0", 1, 60, 40),
    ]
    bench.once("trace", lambda: (recorded(), tuple(traced)))
    found = timing.samples_and_trace(bench)
    assert (found.outcome, found.figures["apart"]) == (outcome, pytest.approx(abs(vector - 0.6)))


@pytest.mark.parametrize(("more", "outcome"), [(0, GOOD), (1, BAD), (-1, BAD)])
def test_traced_waves_make_as_many_steps_as_the_loop_has(bench, more, outcome):
    """65 536 of each wave; other instructions whose names begin alike are others."""
    listed = [
        instruction("v_fma_f64 v[0:1], v[2:3]", 2 * 65536),
        instruction("v_fma_f64 v[4:5]", 65536 + more),
        instruction("v_fma_f64_x v[4:5]", 5),
        instruction("s_endpgm", 3),
    ]
    bench.once("trace", lambda: (recorded(), tuple(listed)))
    found = timing.thread_trace(bench)
    assert (found.outcome, found.figures) == (outcome, {"waves": 3, "fmas": 3 * 65536 + more})
    other = Scripted(folder=bench.folder, host=bench.host)
    other.once("trace", lambda: (recorded(), tuple(listed[:3])))
    with pytest.raises(NotPossibleError, match="no wave of the kernel ran to its end"):
        timing.thread_trace(other)


# Replays, and what is left behind.


def replayed(reproduced, **more):
    where = {"runtime": "rocr", "rocm_version": "7.0", "interface_version": None}
    told = {"reproduced": reproduced, "reproduced_reason": None, "error": None, "environment": where}
    return {**told, "capture": {"hash": "xxh3:1"}, **more}


@pytest.mark.parametrize(("full", "replays"), [(False, 3), (True, 20)])
def test_replays_all_leave_the_captured_memory(bench, full, replays):
    bench.full = full
    bench.once("isolated", lambda: bench.folder / "isolated")
    bench.answers = {"replay full-vm": replayed(True)}
    found = machine.replay(bench)
    assert (found.outcome, found.figures) == (GOOD, {"same": replays, "replays": replays})
    other = Scripted(folder=bench.folder, host=bench.host)
    other.once("isolated", lambda: bench.folder / "isolated")
    other.answers = {"replay full-vm": (1, replayed(False))}
    found = machine.replay(other)
    assert (found.outcome, found.figures["same"]) == (BAD, 0)
    with pytest.raises(NotPossibleError, match="nothing rests on equal ones"):
        machine.compare(other)
    unknown = Scripted(folder=bench.folder, host=bench.host)
    unknown.once("isolated", lambda: bench.folder / "isolated")
    unknown.answers = {"replay full-vm": replayed(None, reproduced_reason="no hashes")}
    with pytest.raises(NotPossibleError, match="is not known: no hashes"):
        machine.replay(unknown)


@pytest.mark.parametrize(
    ("verdict", "share", "outcome"),
    [("equal", 0.75, GOOD), ("equal", 0.74, BAD), ("different", 1.0, BAD), ("equal", None, BAD)],
)
def test_a_comparison_is_equal_and_notices_three_of_four_wrong_versions(bench, verdict, share, outcome):
    bench.once("isolated", lambda: bench.folder / "isolated")
    controls = [{"edit": "a barrier", "outcome": "survived"}, {"edit": "an add", "outcome": "found"}]
    compared = {"verdict": verdict, "found_share": share, "controls": controls, "reason": "r"}
    status = {"equal": 0, "different": 1}[verdict]
    bench.answers = {"replay full-vm": replayed(True), "replay compare": (status, compared)}
    found = machine.compare(bench)
    assert (found.outcome, found.figures) == (outcome, {"controls": 2, "noticed": share})
    assert "not: a barrier" in found.found
    bench.answers["replay compare"] = (75, {**compared, "verdict": "no_verdict", "controls": None})
    with pytest.raises(NotPossibleError, match="r"):
        machine.compare(bench)


def test_what_is_left_behind_is_refuted(bench):
    assert machine.files_left(bench).outcome is GOOD
    (bench.temporary / "b").touch()
    (bench.temporary / "a").mkdir()
    found = machine.files_left(bench)
    assert (found.outcome, found.found) == (BAD, "2 left: a, b")
    assert machine.processes_left(bench).figures == {"left": 0}


@pytest.mark.parametrize(
    ("broken", "missing", "outcome"),
    [
        ((), (), GOOD),
        (("gpu-access",), (), BAD),
        ((), ("counters",), None),
        (("python",), ("counters",), BAD),
    ],
)
def test_the_doctor_s_list_is_ok_broken_or_says_what_is_missing(bench, broken, missing, outcome):
    names = ("python", "runs-directory", "device-plugin", "rocprofv3", "gpu-access", "counters")
    told = {name: {"status": "ok", "found": "there"} for name in names}
    told |= {name: {"status": "broken", "found": "no"} for name in broken}
    told |= {name: {"status": "missing", "found": f"no {name}"} for name in missing}
    told["browser"] = {"status": "broken", "found": "another command's"}
    bench.answers = {"doctor": (69 if missing else 0, told)}
    if outcome is None:
        with pytest.raises(NotPossibleError, match="counters: no counters"):
            machine.doctor(bench)
    else:
        assert machine.doctor(bench).outcome is outcome


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ((GOOD, GOOD), "confirmed"),
        ((GOOD, None), "no verdict"),
        ((BAD, None), "refuted"),
        ((None, None), "no verdict"),
    ],
)
@pytest.mark.parametrize("essential", [True, False])
def test_the_verdict_of_all_lines(bench, outcomes, verdict, essential):
    """One that is not possible leaves the whole open only where it is essential."""

    def finds(outcome):
        def find(_bench):
            if outcome is None:
                raise NotPossibleError("not here")
            return SimpleNamespace(outcome=outcome, found="found", figures={})

        return find

    checks = [
        Check(f"c{n}", "runs", "expected", "docs/first-day.md", finds(o)) for n, o in enumerate(outcomes)
    ]
    checks[-1] = Check(
        "last", "runs", "expected", "docs/first-day.md", finds(outcomes[-1]), essential=essential
    )
    checks.append(Check("long", "runs", "expected", "docs/first-day.md", finds(BAD), only_full=True))
    told = []
    document = document_of(run_checks(checks, bench, told.append), bench, 1.26)
    assert told == ["c0", "last"]
    if not essential and outcomes[0] is not None and verdict == "no verdict":
        verdict = "confirmed"
    assert (document.verdict, document.mode, document.seconds) == (verdict, "quick", 1.3)
    count = [sum(o is one for o in outcomes) for one in (GOOD, BAD, None)]
    assert [document.confirmed, document.refuted, document.not_possible] == count
