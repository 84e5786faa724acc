"""Plans, their command words and the reasons of failed passes, over every combination of what is asked.

Commands are read by a grammar of rocprofv3's options of this file (docs/reference/formats.md, 4), passes are
packed by trying them one after the other, and reasons come from an order of precedence.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
from collections import Counter
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from rpl_core.errors import ApplicationError, BadDataError, ExitCode, MissingError, UsageError
from rpl_core.interfaces.collector import CollectRequest, PlannedPass
from rpl_core.interfaces.options import Options
from rpl_core.model.device import CounterMap
from rpl_core.model.trace import TraceRole
from rpl_core.process import ProcessResult
from rpl_rocprofv3.collector import OutputFormat, ToolVersion
from rpl_rocprofv3.collector.failures import (
    LogWatch,
    Problem,
    no_counters_recorded,
    nothing_recorded,
    pass_failure,
)
from rpl_rocprofv3.collector.passes import ReplayWatch, announced, plan_passes, replay_findings
from rpl_rocprofv3.collector.rocprof import plan_collection
from rpl_rocprofv3.options import COLLECT_KERNEL, COLLECT_LAUNCHES, REPLAY

from .test_planning import TOY

TOOL = Path("/opt/rocm/bin/rocprofv3")
#: rocpd came with ROCm 7.0 and SDK 1.0 (docs/reference/formats.md, 2.8); the number of ROCm counts first.
FORMATS = {
    ((1, 0), None): "rocpd",
    ((0, 9), None): "csv",
    ((1, 0), (6, 4)): "csv",
    ((0, 9), (7, 0)): "rocpd",
    (None, (7, 0, 0)): "rocpd",
    (None, (6, 99)): "csv",
    (None, None): "rocpd",
}


#: Of one run for all groups.
_WAYS = {"rotation": "taking turns", "replay": "by kernel replay"}


def _words(command: tuple[str, ...]) -> tuple[argparse.Namespace, list[str]]:
    """What rocprofv3 would understand, and the application behind ``--``."""
    end = command.index("--")
    assert command[0] == str(TOOL)
    grammar = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    for switch in ("kernel-trace", "memory-copy-trace", "hip-runtime-trace", "marker-trace"):
        grammar.add_argument(f"--{switch}", action="store_true")
    grammar.add_argument("--pmc", nargs="+", action="append", default=[])
    for option in ("replay-mode", "kernel-include-regex", "kernel-iteration-range", "output-format"):
        grammar.add_argument(f"--{option}")
    grammar.add_argument("--kernel-replay-beta-enabled", action="store_true")
    for option in "ido":
        grammar.add_argument(f"-{option}")
    return grammar.parse_args(command[1:end]), list(command[end + 1 :])


@pytest.mark.parametrize(("versions", "form"), FORMATS.items())
def test_the_format_that_is_asked_for_follows_rocm_before_the_sdk(versions: Any, form: str) -> None:
    version = ToolVersion(*versions)
    assert version.output_format is OutputFormat(form)
    assert version.known is (versions != (None, None))


def _refusal(case: tuple[Any, ...], groups: int) -> tuple[type[Exception], str] | None:
    runs, _, _, counters, mode, can, kernel, _, follow = case
    if not counters and not follow and (kernel or mode != "off"):
        first = "collect-kernel" if kernel else "replay"
        return UsageError, f"--{first} is about counters"
    if runs == 0 and not counters:
        return UsageError, "at least one run"
    if mode == "kernel" and not can and (follow or groups > 1):
        return MissingError, "no --replay-mode"
    return None


def _of_groups(name: str, groups: list[list[str]], form: str) -> dict[str, Any]:
    """The words of a counter pass that say which counters are read, how, and into which format."""
    if name == "replay":
        return {"replay_mode": "kernel", "beta": True, "pmc": groups, "form": "json", "i": None}
    if name == "rotation":
        groups_file = "{directory}/pmc_groups.json"
        return {"replay_mode": None, "beta": False, "pmc": [], "form": form, "i": groups_file}
    group = groups[int(name.removeprefix("pass_")) - 1]
    return {"replay_mode": None, "beta": False, "pmc": [group], "form": form, "i": None}


def test_every_plan_says_to_rocprofv3_what_was_asked() -> None:
    """Sets of counters of the toy, whose SQ holds two and whose TCC holds one per pass."""
    counter_sets = {
        (): [],
        ("SQ_A", "TCC_A"): [["SQ_A", "TCC_A"]],
        ("SQ_A", "SQ_B", "SQ_C", "TCC_A", "MALL_X"): [["SQ_A", "SQ_B", "TCC_A"], ["SQ_C"]],
    }
    modes = ("off", "kernel", "rotate", "auto")
    chosen = set()
    for runs, calls, reference, (counters, groups), mode, can, kernel, launches, follow in product(
        (0, 1, 3), (False, True), (False, True), counter_sets.items(), modes, *[(False, True)] * 4
    ):
        if (launches and not kernel) or (follow and runs == 3):
            continue  # half of them tell as much
        options = Options().with_value(REPLAY, mode)
        if kernel:
            options = options.with_value(COLLECT_KERNEL, "gemm|sum")
        if launches:
            options = options.with_value(COLLECT_LAUNCHES, "1,10-12")
        request = CollectRequest(
            command=("app", "--pmc", "--"),
            runs=runs,
            device=TOY,
            counters=counters,
            trace_dependencies=calls,
            reference_run=reference,
            time_limit_s=7.5,
            options=options,
            counters_follow=follow,
        )
        version = ToolVersion((1, 0), (6, 4)) if kernel else ToolVersion((1, 0), (7, 2))

        def plan(request=request, version=version, can=can):
            return plan_collection(request, TOOL, version, lambda: can)

        case = (runs, calls, reference, counters, mode, can, kernel, launches, follow)
        refusal = _refusal(case, len(groups))
        if refusal is not None:
            with pytest.raises(refusal[0], match=refusal[1]):
                plan()
            continue

        found = plan()
        form = "csv" if kernel else "rocpd"
        named = [f"run_{i + 1}" for i in range(runs)]
        timing = found.passes[:runs]
        assert [one.name for one in timing] == named, case
        for one in timing:
            words, application = _words(one.command)
            traced = (
                words.kernel_trace,
                words.memory_copy_trace,
                words.hip_runtime_trace,
                words.marker_trace,
            )
            assert traced == (True, calls, calls, calls)
            assert (words.pmc, words.output_format, words.i) == ([], form, None)
            assert (words.d, words.o) == ("{directory}", "run_%pid%")
            assert application == ["app", "--pmc", "--"]
            assert (one.role, one.directory) == (TraceRole.TIMING, f".rocpd_profile/{one.name}")
            assert one.counters == one.inputs == ()
        rest = list(found.passes[runs:])
        if runs and calls and reference:
            extra = rest.pop(0)
            words, _ = _words(extra.command)
            assert (extra.role, extra.directory) == (TraceRole.REFERENCE, "artifacts/without_calls")
            assert (words.kernel_trace, words.memory_copy_trace, words.hip_runtime_trace) == (
                True,
                False,
                False,
            )
        every = [counter for group in groups for counter in group]
        one_run = len(groups) > 1 and (mode in ("kernel", "rotate") or (mode == "auto" and can))
        expected = [every] if one_run else groups
        assert [list(one.counters) for one in rest] == expected, case
        for number, one in enumerate(rest, 1):
            words, application = _words(one.command)
            assert application == ["app", "--pmc", "--"]
            assert one.role is TraceRole.COUNTERS
            assert words.kernel_include_regex == ("gemm|sum" if kernel else None)
            assert words.kernel_iteration_range == ("[1,10-12]" if launches else None)
            assert not words.kernel_trace
            assert not words.hip_runtime_trace
            name = f"pass_{number}" if not one_run else "rotation" if mode == "rotate" else "replay"
            assert (one.name, one.directory) == (name, f"artifacts/{name}")
            chosen.add(name)
            told = {
                "replay_mode": words.replay_mode,
                "beta": words.kernel_replay_beta_enabled,
                "pmc": words.pmc,
                "form": words.output_format,
                "i": words.i,
            }
            assert told == _of_groups(name, groups, form)
            turns = {"jobs": [{"pmc_groups": groups, "pmc_group_interval": 1}]}
            files = {"pmc_groups.json": turns} if name == "rotation" else {}
            assert {file: json.loads(text) for file, text in one.inputs} == files
        assert {one.time_limit_s for one in found.passes} == {7.5}

        told = [note.code for note in found.diagnostics]
        refused = ["collect.counter_refused"] if "MALL_X" in counters else []
        assert told == refused + (["collect.counter_groups"] if groups and mode != "off" else []), case
        if groups and mode != "off":
            fact = found.diagnostics[-1].fact
            way = "one run holds all counters" if len(groups) < 2 else "in as many runs"
            assert (_WAYS[rest[0].name] if one_run else way) in fact
            assert fact.startswith("1 counter group:" if len(groups) < 2 else "2 counter groups in ")
    assert chosen == {"pass_1", "pass_2", "replay", "rotation"}
    assert announced(Options()) is None
    replay, turns, either = (announced(Options().with_value(REPLAY, m)) or "" for m in modes[1:])
    assert replay.startswith("kernel replay is a beta of AMD")
    assert "figures join different" in turns
    assert either == f"where this rocprofv3 can, auto takes kernel replay: {replay}"


def test_an_unknown_version_is_said_before_what_else_is() -> None:
    found = plan_collection(CollectRequest(command=("a",), runs=1), TOOL, ToolVersion())
    assert [note.code for note in found.diagnostics] == ["collect.version_unknown"]


def test_passes_are_filled_first_fit() -> None:
    """Units in order, each into the first pass where no block overflows; what fits nowhere is refused."""
    rng = random.Random(5)
    names = [f"{prefix}{i}" for prefix in ("SQ_", "SQC_", "TCC_", "TCP_", "OTHER_", "BAD_") for i in range(5)]
    for _ in range(300):
        limits = {"SQ": rng.randint(1, 4), "TCC": rng.randint(1, 3)}
        groups = tuple(tuple(rng.sample(names, rng.randint(1, 3))) for _ in range(rng.randint(0, 2)))
        prefixes = (("SQ", "SQ"), ("SQ_", "SQ"), ("SQC_", "TCC"), ("TCC_", "TCC"))
        dangerous = (("BAD_1", "first"), ("BAD_", "second"))
        table = CounterMap(
            (), (), same_pass=groups, block_limits=limits, block_prefixes=prefixes, dangerous=dangerous
        )
        wanted = [f"{n}{rng.choice(('', '', '_sum'))}" for n in rng.choices(names, k=rng.randint(0, 14))]
        allow = rng.random() < 0.3
        blocks = {"SQ_": "SQ", "SQC_": "TCC", "TCC_": "TCC"}

        def block(name: str, blocks=blocks) -> str:
            return blocks.get(name.split("_")[0] + "_", "")

        left = []
        refused: list[str] = []
        for name in wanted:
            if name in left or name in refused:
                continue
            (refused if name.startswith("BAD_") and not allow else left).append(name)
        order = list(left)
        units = []
        for group in groups:
            unit = [name for name in left if name.replace("_sum", "") in group]
            left = [name for name in left if name not in unit]
            units += [unit] if unit else []
        units += [[name] for name in left]
        room = {"": 1, **limits}
        passes: list[list[str]] = []

        def fits(names: list[str], room=room, block=block) -> bool:
            return all(count <= room[b] for b, count in Counter(map(block, names)).items())

        for unit in units:
            if not fits(unit):
                refused += unit
                continue
            home = next((one for one in passes if fits(one + unit)), None)
            if home is None:
                passes.append(list(unit))
            else:
                home += unit
        found = plan_passes(table, wanted, allow_dangerous=allow)
        assert [list(one) for one in found.passes] == [sorted(one, key=order.index) for one in passes]
        assert [one.counter for one in found.refused] == refused
        for one in found.refused:
            if one.counter.startswith("BAD_") and not allow:
                assert one.reason == ("first" if one.counter.startswith("BAD_1") else "second")
            else:
                assert "must be read together" in one.reason


#: A line of each problem, from the reference, and what is then said; the first that applies counts.
SAID = {
    Problem.UNKNOWN_OPTION: "rocprofv3: error: unrecognized arguments: --x",
    Problem.BROKEN_INSTALLATION: "E1 Fatal error: Failed to resolve path. /x",
    Problem.NO_SPACE: "write: No space left on device",
    Problem.OVER_CAPACITY: "F1 Request exceeds the capabilities of the hardware to collect",
    Problem.INTEGRATED_GPU: "what(): unordered_map::at",
    Problem.NO_GPU: "hipErrorNoDevice: no ROCm-capable device is detected",
    Problem.STREAM_LOOKUP: "F1 failed to retrieve stream ID",
}
MISSING_COUNTERS = "E1 Unable to find all counters for agent 3 in [SQ_A, SQ_B, SQ_C]. Found: [SQ_B]"


def _planned(counters: tuple[str, ...]) -> PlannedPass:
    return PlannedPass("p", TraceRole.COUNTERS, "artifacts/p", ("rocprofv3", "--", "a"), counters)


def _no_fault_of_the_application(present: set[Problem], counters: bool, crashed_without: bool) -> str | None:
    by_problem = {
        Problem.UNKNOWN_OPTION: "this rocprofv3 1.0 (ROCm 7.2) can't do what is needed: unrecognized arg",
        Problem.BROKEN_INSTALLATION: "is not completely installed: Failed to resolve path. /x",
        Problem.NO_SPACE: "pass p found no space left: write:",
    }
    if counters:
        by_problem[Problem.OVER_CAPACITY] = "can't count SQ_A SQ_B in one pass"
        by_problem[Problem.INTEGRATED_GPU] = "failed while it listed counters for SQ_A SQ_B"
    words = next((words for problem, words in by_problem.items() if problem in present), None)
    unknown = "unknown counter in pass p: SQ_A and 1 more"
    return unknown if words is None and counters and crashed_without else words


def test_the_reason_of_a_failed_pass_is_the_first_that_applies() -> None:
    version, log = ToolVersion((1, 0), (7, 2)), Path("the.log")
    ends = [
        ProcessResult(3, None, 1.0),
        *(ProcessResult(None, int(one), 1.0) for one in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)),
        ProcessResult(128 + signal.SIGSEGV, None, 1.0),
        ProcessResult(None, int(signal.SIGKILL), 1.0),
    ]
    problems = list(SAID)
    sets = [set(), *({p} for p in problems), *map(set, combinations(problems, 2)), set(problems)]
    for present, counters, missing, end in product(sets, ((), ("SQ_A", "SQ_B")), (False, True), ends):
        watch = LogWatch()
        for problem in problems:
            if problem in present:
                watch(SAID[problem])
        if missing:
            watch(MISSING_COUNTERS)
        assert set(watch.first) - {Problem.COUNTERS_NOT_FOUND} == present
        crashed = end.signal in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS) or end.exit_status == 139
        error = pass_failure(_planned(counters), end, watch, version, log)
        text = error.one_line()
        case = (present, counters, missing, end, text)
        words = _no_fault_of_the_application(present, bool(counters), missing and crashed)
        if words is not None:
            assert isinstance(error, MissingError), case
            assert words in text, case
            continue
        assert error.exit_code is ExitCode.APPLICATION_FAILED
        assert isinstance(error, ApplicationError), case
        how = error.exit_status, error.signal
        assert how == (end.exit_status, end.signal)
        if Problem.NO_GPU in present:
            assert "no GPU that it may use: hipErrorNoDevice" in text, case
        elif crashed:
            cause = "counter collection aborts so" if counters else "the application itself"
            assert ("loses streams" if Problem.STREAM_LOOKUP in present else cause) in text, case
            step = "leave --roofline away" if counters else "--no-rocprof"
            assert f"see the.log; {step}" in text.replace("`", ""), case
        else:
            said = [SAID[p] for p in problems if p in present] + [MISSING_COUNTERS] * missing
            last = f"its last output was {said[-1]!r}" if said else "the application (pass p)"
            assert last in text, case
            assert ("its last output" in text) is bool(said)


def test_why_a_pass_that_ended_well_holds_nothing(tmp_path: Path) -> None:
    inside, outside = tmp_path / "p" / "x.db", tmp_path / "q" / "x.db"
    log = Path("the.log")
    for full, gpu, opened, files in product(
        (False, True), (False, True), ((), (inside,), (outside,), (inside, outside)), ((), (inside,))
    ):
        watch = LogWatch()
        for path in opened:
            watch(f"E1 Opened result file: {path} (UUID=1-2)")
        watch(SAID[Problem.NO_SPACE] if full else "fine")
        if gpu:
            watch(SAID[Problem.NO_GPU])
        error = nothing_recorded(_planned(()), files, watch, tmp_path / "p", log)
        text = error.one_line()
        assert isinstance(error, MissingError if full else BadDataError)
        if full:
            assert "no space left" in text
        elif outside in opened and not files:
            assert f"wrote {outside} outside of the directory" in text
        else:
            assert ("rocprofv3 wrote no file" in text) is (not files)
            assert ("the recording is empty" in text) is bool(files)
            assert ("no GPU that it may use" in text) is gpu
            assert ("exit handlers" in text) is not gpu
    watch = LogWatch()
    assert "no counter value recorded in pass p" in no_counters_recorded(_planned(("A",)), watch, log).fact
    watch("for agent 4 in [SQ_A]. Found: []")
    fact = no_counters_recorded(_planned(("A",)), watch, log).fact
    assert fact == "unknown counter in pass p: SQ_A"


def test_what_was_not_replayed_is_counted_by_kernel_and_reason(tmp_path: Path) -> None:
    """Launches named in results JSON, one of a kernel without a name, one that no record has."""
    symbols = [
        {"kernel_id": 1, "formatted_kernel_name": "first"},
        {"kernel_id": 2, "kernel_name": "second"},
        {"kernel_id": 3, "kernel_name": ""},
    ]
    dispatches = {10: 1, 11: 2, 12: 1, 13: 3, 14: 1}
    records = [
        {"dispatch_data": {"dispatch_info": {"dispatch_id": i, "kernel_id": k}}}
        for i, k in dispatches.items()
    ]
    whole = {
        "rocprofiler-sdk-tool": [
            {"kernel_symbols": symbols, "callback_records": {"counter_collection": records}}
        ]
    }
    good, bad = tmp_path / "a_results.json", tmp_path / "b_results.json"
    good.write_text(json.dumps(whole))
    bad.write_text("{")
    watch = ReplayWatch()
    for number, reason in ((10, "untracked_memory"), (11, "untracked_memory"), (12, "untracked_memory")):
        watch(f"I1 [kernel-replay] dispatch_id={number} outcome=declined reason={reason} queue=1")
    for number, reason in ((13, "graph"), (14, "graph"), (99, "graph")):
        watch(f"I1 [kernel-replay] dispatch_id={number} outcome=declined reason={reason}")
    for line in (
        "W1 x] kernel replay: snapshot failed",
        "W1 x] kernel-replay queue did not drain in 60 s",
    ) * 2:
        watch(line)
    watch("kernel replay: snapshot failed")  # not the library's
    found = replay_findings(_planned(("A",)), watch, (bad, good))
    told = [(note.code, note.count) for note in found]
    first, none, graph, second = (
        "launches of first were not replayed (untracked memory)",
        "launches of kernels without a record were not replayed (graph)",
        "launches of first were not replayed (graph)",
        "launches of second were not replayed (untracked memory)",
    )
    assert told == [("collect.not_replayed", n) for n in (1, 2, 2, 1)] + [("collect.replay_warning", 2)] * 2
    for note, words in zip(found, (graph, first, none, second), strict=False):
        assert note.fact.startswith(words)
        assert note.where == "p"
