"""Measuring in turns: order, looks, early end, failures and interrupts, and judging the pairs again later."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rpl_core.errors import ApplicationError, BadDataError, InterruptedRunError, NoVerdictError, UsageError
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.model.trace import TraceRole
from rpl_measure.interleaved import (
    MOST_REPEATED_PAIRS,
    MeasureRequest,
    measure_pairs,
    open_pairs,
)
from rpl_measure.manifest import complete_pairs, read_manifest, repeated_pairs
from rpl_testkit.fixtures import RocpdBuilder

NOISE = (0, 300, -200, 100, -300, 250, -150, 50)


class ScriptedCollector(Collector):
    """Writes one rocpd file per run; the command's second word is the kernel's time in ns."""

    name = "scripted"
    summary = "for tests"

    def __init__(self, before: Callable[[int], None] = lambda _run: None) -> None:
        self.order: list[str] = []
        self._before = before

    def missing(self) -> None:
        return None

    def plan(self, request) -> CollectionPlan:
        return CollectionPlan(
            tuple(
                PlannedPass(f"run_{n}", TraceRole.TIMING, f".rocpd_profile/run_{n}", request.command)
                for n in range(1, request.runs + 1)
            )
        )

    def run(self, planned: PlannedPass, run_directory: Path, log) -> PassOutcome:
        self._before(len(self.order))
        self.order.append(run_directory.name)
        place = run_directory / planned.directory
        place.mkdir(parents=True)
        # A clock that slows down by 2 % per run: what pairs are made to withstand.
        clock = 1 + 0.02 * len(self.order)
        time = round((int(planned.command[1]) + NOISE[len(self.order) % len(NOISE)]) * clock)
        other = round(50_000 * clock)
        launches = [("k", 1000, 1000 + time), ("other", 2000 + time, 2000 + time + other)]
        path = RocpdBuilder(place)(launches, name="out.db", pid=len(self.order) + 1)
        return PassOutcome(planned, 0, 0.1, files=(path.relative_to(run_directory).as_posix(),))


@pytest.fixture
def measure(rpl_host, tmp_path: Path):
    def run(collector: Collector, decided=lambda _base, _new: False, **request: object):
        values = {"base": ("app", "100000"), "new": ("app", "106000"), "directory": tmp_path / "cmp"}
        return measure_pairs(
            MeasureRequest(**{**values, **request}),
            collector=collector,
            host=rpl_host("rocprofv3"),
            decided=decided,
            log=lambda _line: None,
            step=lambda _step: None,
        )

    return run


def manifest(directory: Path) -> dict:
    return json.loads((directory / "comparison.json").read_text())


def test_one_warm_up_each_then_pairs_in_the_order_of_the_seed(measure, tmp_path: Path) -> None:
    collector = ScriptedCollector()
    measured = measure(collector, most_pairs=4, seed=11)
    warm_ups, turns = collector.order[:2], collector.order[2:]
    assert warm_ups == ["warm-up-base", "warm-up-new"]
    assert turns == ["new", "base", "base", "new", "base", "new", "new", "base"]
    assert measured.pairs == 4
    written = manifest(tmp_path / "cmp")
    assert written["state"] == "complete"
    assert written["seed"] == 11
    assert [(o["pair"], o["side"]) for o in written["observations"][2:5]] == [
        (0, "new"),
        (0, "base"),
        (1, "base"),
    ]


def test_each_side_is_a_run_directory_of_its_own(measure, rpl_cli, tmp_path: Path) -> None:
    measure(ScriptedCollector(), most_pairs=3)
    for side in ("base", "new"):
        run = json.loads((tmp_path / "cmp" / side / "run.json").read_text())
        assert run["state"] == "complete"
        assert [entry["state"] for entry in run["passes"]] == ["complete"] * 3
        rpl_cli("analyze", tmp_path / "cmp" / side, "--quiet").assert_ok()


def test_looks_come_after_10_15_20_30_pairs_and_a_decision_ends_it(measure) -> None:
    asked: list[int] = []

    def decided(base, new) -> bool:
        asked.append(len(base.runs))
        assert len(base.runs) == len(new.runs)
        return len(asked) == 2

    measured = measure(ScriptedCollector(), decided)
    assert (measured.pairs, measured.out_of_time) == (15, False)
    assert asked == [10, 15]


@pytest.mark.parametrize(
    ("most", "looks"), [(30, (10, 15, 20, 30)), (12, (10, 12)), (10, (10,)), (40, (10, 15, 20, 30, 40))]
)
def test_the_last_look_is_at_the_last_pair(most: int, looks: tuple[int, ...]) -> None:
    assert MeasureRequest(("a",), ("b",), Path("x"), most_pairs=most).looks == looks


def test_a_failing_run_ends_it_and_complete_pairs_stay(measure, tmp_path: Path) -> None:
    def fail(run: int) -> None:
        if run == 7:
            raise ApplicationError("the application ended with status 3")

    with pytest.raises(ApplicationError):
        measure(ScriptedCollector(fail))
    written = manifest(tmp_path / "cmp")
    assert written["state"] == "incomplete"
    assert "status 3" in written["reason"]
    assert [o["complete"] for o in written["observations"]] == [True] * 7 + [False]
    states = {
        side: json.loads((tmp_path / "cmp" / side / "run.json").read_text())["state"]
        for side in ("base", "new")
    }
    assert states == {"base": "incomplete", "new": "incomplete"}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, InterruptedRunError])
def test_an_interrupt_keeps_what_finished_and_says_how_to_judge_it(
    measure, rpl_cli, tmp_path: Path, kind: type[BaseException]
) -> None:
    def interrupt(run: int) -> None:
        if run == 2 + 2 * 12:
            raise kind("stop")

    with pytest.raises(InterruptedRunError, match="complete pairs are kept") as caught:
        measure(ScriptedCollector(interrupt))
    assert "rpl compare" in (caught.value.next_step or "")
    assert manifest(tmp_path / "cmp")["state"] == "incomplete"
    outcome = rpl_cli("compare", tmp_path / "cmp", "--json", env={"RPL_ALLOW_SYNTHETIC_GATES": "1"})
    assert outcome.json()["method"]["pairs"] == 12
    assert outcome.json()["method"]["mode"] == "interleaved"


@pytest.fixture
def killed(measure, tmp_path: Path):
    """``killed(name, at, ...)`` measures into the folder ``name``; gives a copy as SIGKILL leaves it."""

    def run(name: str, at: int, **request: object) -> Path:
        left = tmp_path / f"{name}-left"

        def strike(now: int) -> None:
            if now == at:
                shutil.copytree(tmp_path / name, left)
                raise KeyboardInterrupt

        with pytest.raises(InterruptedRunError):
            measure(ScriptedCollector(strike), directory=tmp_path / name, **request)
        return left

    return run


FIVE = {"most_pairs": 5, "own_looks": (3, 5), "seed": 11, "opened": True}
TURNS = ["new", "base", "base", "new", "base", "new", "new", "base", "base", "new"]


def test_an_opened_measurement_goes_on_behind_its_complete_pairs(measure, killed, tmp_path: Path) -> None:
    """Wherever it was struck: no complete pair is lost or chosen, and the order is that of the seed."""
    place = tmp_path / "cmp"
    open_pairs(MeasureRequest(("app", "100000"), ("app", "106000"), place, seed=11, own_looks=(3, 5)))
    in_the_warm_up = killed("cmp", 1, **FIVE)
    in_the_second_pair = killed(in_the_warm_up.name, 2 + 3, **FIVE)
    before = read_manifest(in_the_second_pair).observations
    collector, asked = ScriptedCollector(), []
    measured = measure(
        collector, lambda base, _new: bool(asked.append(len(base.runs))), directory=in_the_second_pair, **FIVE
    )
    assert asked == [3, 5]
    # The pair that was under way is measured again as a whole, in the same order, behind new warm-ups.
    assert collector.order == ["warm-up-base-again3", "warm-up-new-again3", *TURNS[2:]]
    manifest_now = read_manifest(in_the_second_pair)
    assert manifest_now.observations[: len(before)] == before
    assert manifest_now.state == "complete"
    assert (len(complete_pairs(manifest_now)), repeated_pairs(manifest_now), measured.pairs) == (5, 1, 5)


def test_a_strike_between_pairs_repeats_nothing(measure, killed, tmp_path: Path) -> None:
    place = tmp_path / "cmp"
    open_pairs(MeasureRequest(("app", "100000"), ("app", "106000"), place, seed=11, own_looks=(3, 5)))
    for pairs in (1, 2):  # each time before the first run of the next pair is written down
        place = killed(place.name, 2 + 2, **FIVE)
        run = json.loads((place / "new" / "run.json").read_text())
        run["passes"] = [entry for entry in run["passes"] if entry["state"] == "complete"]
        (place / "new" / "run.json").write_text(json.dumps(run))
        base = json.loads((place / "base" / "run.json").read_text())
        base["passes"] = [entry for entry in base["passes"] if entry["state"] == "complete"]
        (place / "base" / "run.json").write_text(json.dumps(base))
        assert len(complete_pairs(read_manifest(place))) == pairs
    measured = measure(ScriptedCollector(), directory=place, **FIVE)
    assert (measured.pairs, repeated_pairs(read_manifest(place))) == (5, 0)


def test_who_strikes_pairs_that_look_bad_has_one_choice(measure, killed, tmp_path: Path) -> None:
    place = tmp_path / "cmp"
    open_pairs(MeasureRequest(("app", "100000"), ("app", "106000"), place, seed=11, own_looks=(3, 5)))
    for _ in range(MOST_REPEATED_PAIRS + 1):
        place = killed(place.name, 2 + 1, **FIVE)
    with pytest.raises(NoVerdictError, match="chooses among them"):
        measure(ScriptedCollector(), directory=place, **FIVE)


def test_a_decision_that_was_not_written_down_is_taken_again(measure, killed, tmp_path: Path) -> None:
    place = tmp_path / "cmp"
    open_pairs(MeasureRequest(("app", "100000"), ("app", "106000"), place, seed=11, own_looks=(3, 5)))
    measure(ScriptedCollector(), lambda base, _new: len(base.runs) == 3, **FIVE)
    collector = ScriptedCollector()
    measured = measure(collector, lambda base, _new: len(base.runs) == 3, **FIVE)
    assert measured.pairs == 3
    assert collector.order == ["warm-up-base-again2", "warm-up-new-again2"]


def test_a_candidate_that_failed_before_the_interruption_has_failed(measure, tmp_path: Path) -> None:
    place = tmp_path / "cmp"
    open_pairs(MeasureRequest(("app", "100000"), ("app", "106000"), place, seed=11, own_looks=(3, 5)))

    def crash(run: int) -> None:
        if run == 2 + 3:
            error = ApplicationError("the application ended with status 3")
            error.exit_status = 3
            raise error

    with pytest.raises(ApplicationError):
        measure(ScriptedCollector(crash), **FIVE)
    with pytest.raises(ApplicationError, match=r"before the interruption: .*status 3"):
        measure(ScriptedCollector(), **FIVE)


def test_another_measurement_is_not_gone_on_with(measure, tmp_path: Path) -> None:
    open_pairs(MeasureRequest(("app", "1"), ("app", "2"), tmp_path / "cmp", seed=12, own_looks=(3, 5)))
    with pytest.raises(BadDataError, match="holds another measurement"):
        measure(ScriptedCollector(), **FIVE)


def test_drift_that_fools_unpaired_runs_cancels_in_pairs(measure, rpl_cli, tmp_path: Path) -> None:
    measure(ScriptedCollector(), most_pairs=15)
    allowed = {"RPL_ALLOW_SYNTHETIC_GATES": "1"}
    pairs = rpl_cli("compare", tmp_path / "cmp", "--json", env=allowed).assert_exit(1).json()
    found = {item["name"]: item for item in pairs["kernels"]}
    assert found["k"]["verdict"] == "regressed"
    assert found["k"]["change"] == pytest.approx(0.06, abs=0.01)
    assert found["other"]["base"]["drift"]["flagged"]
    apart = rpl_cli("compare", tmp_path / "cmp" / "base", tmp_path / "cmp" / "new", env=allowed)
    assert "drift" in apart.assert_exit(75).stdout


def test_no_pair_starts_after_the_total_time(measure, monkeypatch) -> None:
    clock = iter(range(0, 10_000, 4))
    monkeypatch.setattr("rpl_measure.interleaved.time.monotonic", lambda: next(clock))
    measured = measure(ScriptedCollector(), total_time_s=10.0)
    assert measured.out_of_time
    assert measured.pairs == 2  # asked at 4 s and 8 s, over at 12 s


def test_a_total_time_that_the_warm_up_eats_gives_no_verdict(measure, monkeypatch) -> None:
    clock = iter(range(0, 10_000, 20))
    monkeypatch.setattr("rpl_measure.interleaved.time.monotonic", lambda: next(clock))
    with pytest.raises(NoVerdictError, match="warm-up"):
        measure(ScriptedCollector(), total_time_s=10.0)


def test_a_directory_with_content_is_refused(measure, tmp_path: Path) -> None:
    (tmp_path / "cmp").mkdir()
    (tmp_path / "cmp" / "old").write_text("kept")
    with pytest.raises(UsageError, match="not empty"):
        measure(ScriptedCollector())
    assert (tmp_path / "cmp" / "old").read_text() == "kept"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda m: {**m, "schema_version": "2.0"}, 65),
        (lambda m: {**m, "observations": []}, 75),
        (lambda m: {**m, "observations": [{"pair": 0, "side": "base", "run": "../x", "complete": True}]}, 75),
        (lambda m: {**m, "observations": [_seen("base", "../x"), _seen("new", "run_1")]}, 65),
        (lambda m: "no object", 65),
    ],
)
def test_a_broken_manifest_is_refused(measure, rpl_cli, tmp_path: Path, change, code: int) -> None:
    measure(ScriptedCollector(), most_pairs=2)
    path = tmp_path / "cmp" / "comparison.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    rpl_cli("compare", tmp_path / "cmp").assert_exit(code)


def _seen(side: str, run: str) -> dict:
    return {"pair": 0, "side": side, "run": run, "complete": True}


def test_a_moved_away_side_is_told(measure, rpl_cli, tmp_path: Path) -> None:
    measure(ScriptedCollector(), most_pairs=2)
    (tmp_path / "cmp" / "new").rename(tmp_path / "elsewhere")
    outcome = rpl_cli("compare", tmp_path / "cmp").assert_exit(65)
    assert "is no run directory" in outcome.stderr


def test_wall_clock_runs_compare_as_process_time(rpl_host, rpl_cli, tmp_path: Path) -> None:
    class Timed(ScriptedCollector):
        def run(self, planned, run_directory, log) -> PassOutcome:
            self.order.append(run_directory.name)
            return PassOutcome(planned, 0, 0.1, process_ms=float(planned.command[1]) + len(self.order) * 0.01)

    measured = measure_pairs(
        MeasureRequest(("app", "100"), ("app", "120"), tmp_path / "cmp", most_pairs=10),
        collector=Timed(),
        host=rpl_host("rocprofv3"),
        decided=lambda _base, _new: False,
        log=lambda _line: None,
        step=lambda _step: None,
    )
    assert measured.pairs == 10
    document = rpl_cli("compare", tmp_path / "cmp", "--json").assert_exit(1).json()
    (item,) = document["application"]
    assert item["kind"] == "process_time"
    assert item["change"] == pytest.approx(0.2, abs=0.001)
    assert document["provenance"]["origin"] == "measured"


SCENARIO = """
import sys
from rpl_testkit.synthetic_recording.application_model import (
    Application, KernelModel, Launch, Repeat, SyncStream,
)
slow = 1.08 if any("slow" in word for word in sys.argv) else 1.0
shape = {"grid": (65536, 1, 1), "workgroup": (256, 1, 1)}
K = KernelModel(name="k", symbol="k", nominal_ns=round(100_000 * slow), **shape)
APPLICATION = Application(
    name="a", kernels=(K,), streams=1, steps=(Repeat(5, (Launch("k", 1),)), SyncStream(1))
)
"""


@pytest.fixture
def slow_and_fast(rpl_standin_rocprofv3: Path, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "scenario.py").write_text(SCENARIO)
    monkeypatch.setenv("RPL_STANDIN_SCENARIO", str(tmp_path / "scenario.py"))
    monkeypatch.setenv("RPL_STANDIN_STATE", str(tmp_path / "state"))


@pytest.mark.usefixtures("slow_and_fast", "synthetic_counts")
def test_the_command_measures_two_commands_and_its_directory_gives_the_same_bytes(
    rpl_cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    outcome = rpl_cli(
        "compare", "--interleaved", "--base", "true fast", "--new", "true slow", "--kernel", "k", "-o", out
    ).assert_exit(1)
    assert "10 interleaved pairs" in outcome.stdout
    assert "REGRESSION" in outcome.stdout
    manifests = [json.loads((out / arm / "run.json").read_text()) for arm in ("base", "new")]
    runs = [one for written in manifests for one in written["passes"]]
    assert {one["role"] for one in runs} == {"timing"}  # lean: neither calls nor a run without them
    assert not any("--hip-runtime-trace" in one["command"] for one in runs)
    again = rpl_cli("compare", out, "--kernel", "k", "--json").assert_exit(1)
    assert again.stdout == (out / "compare.json").read_text()


@pytest.mark.usefixtures("slow_and_fast")
def test_too_few_pairs_for_any_answer_are_refused_before_anything_runs(rpl_cli, tmp_path: Path) -> None:
    outcome = rpl_cli(
        "compare", "--interleaved", "--base", "true", "--new", "true", "--pairs", "5", "-o", tmp_path / "o"
    ).assert_exit(64)
    assert "--pairs 8 or more" in outcome.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.usefixtures("slow_and_fast")
def test_a_failing_application_is_its_own_exit_code(rpl_cli, tmp_path: Path) -> None:
    rpl_cli("compare", "--interleaved", "--base", "true", "--new", "false", "-o", tmp_path / "o").assert_exit(
        76
    )
    assert manifest(tmp_path / "o")["state"] == "incomplete"


@pytest.mark.usefixtures("slow_and_fast")
def test_ctrl_c_ends_with_130_and_leaves_a_comparison_that_can_be_judged(rpl_cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["compare", "--interleaved", "--base", "true", "--new", "true", "-o", str(out)]
    program = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "new run_3" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(60) == 130
    assert "Traceback" not in rest
    assert "complete pairs are kept" in rest
    assert manifest(out)["state"] == "incomplete"
    assert manifest(out)["reason"] == "interrupted"
    document = rpl_cli("compare", out, "--json").assert_exit(75).json()
    assert document["method"]["pairs"] >= 2


def test_commands_are_measured_in_turns_without_being_told_to(rpl_cli, tmp_path: Path) -> None:
    words = ("--no-rocprof", "--pairs", "10", "-o", tmp_path / "out", "--json")
    document = rpl_cli("compare", "--base", "true", "--new", "true", *words).assert_exit(75).json()
    assert document["method"]["mode"] == "interleaved"
    assert document["method"]["pairs"] == 10
    one = rpl_cli("compare", "--base", "true").assert_exit(64)
    assert "one command each" in one.stderr
    rpl_cli("compare", "--base", "true", "--new", "true", tmp_path / "out").assert_exit(64)
    assert 'rpl compare --base "./app_old 100" --new' in rpl_cli("compare").assert_exit(64).stderr
