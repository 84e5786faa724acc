"""What a worker does with one job: a program that logs each start says what ran, how often and when."""

from __future__ import annotations

import hashlib
import re

import pytest

from rpl_autotune.interfaces import Job, Outcome, Timing, Variant
from rpl_autotune.run_job import answer_job, checked_pattern, run_job
from rpl_core.errors import MissingError, UsageError

PROGRAM = """\
echo "$1" >> log
case "$1" in
  word) echo "took soon ms" ;;
  none) echo "it took long" ;;
  zero) echo "took 0 ms" ;;
  less) echo "took -3 ms" ;;
  fails) echo "took 1 ms"; exit 3 ;;
  slow) exec sleep 30 ;;
  *) echo "took 9 ms"; echo "took ${2:-5} ms" ;;
esac
"""
TOOK = r"took (\S+) ms"


@pytest.fixture
def job(tmp_path):
    """``job(variants, **more)``: a job in a folder that holds the program."""
    (tmp_path / "program").write_text(PROGRAM)

    def make(variants, *, timing=None, **more):
        return Job(
            number=7,
            variants=tuple(variants),
            timing=timing or Timing(source="printed", runs=3, pattern=TOOK, unit_ms=0.5),
            working_directory=str(tmp_path),
            scratch=str(tmp_path / "scratch"),
            **{"time_limit_s": 20.0, "build_time_limit_s": 20.0, **more},
        )

    return make


@pytest.fixture
def log(tmp_path):
    """What was started since the last look."""

    def look():
        path = tmp_path / "log"
        words = path.read_text().split() if path.exists() else []
        path.unlink(missing_ok=True)
        return words

    return look


def asked(index, *words, **more):
    return Variant(index=index, command=("sh", "program", *words), **more)


def test_the_last_number_behind_the_pattern_counts_in_its_unit(job, log):
    outcome = run_job(job([asked(4, "fine", "8"), asked(2, "other", "1e3")]), "gpu 0")
    assert (outcome.number, outcome.device) == (7, "gpu 0")
    told = [(one.index, one.state, one.times_ms, one.origin) for one in outcome.readings]
    assert told == [(4, "ok", (4.0,) * 3, "measured"), (2, "ok", (500.0,) * 3, "measured")]
    assert log() == ["fine"] * 3 + ["other"] * 3
    assert outcome.wall_s > 0
    # The same as text, as tasks take and give it.
    text = answer_job(job([asked(4, "fine", "8")]).model_dump_json(), "gpu 0")
    assert Outcome.model_validate_json(text).readings == outcome.readings[:1]


@pytest.mark.parametrize(
    ("word", "state", "reason"),
    [
        ("word", "no_time", "'soon', which is no number"),
        ("none", "no_time", "no line of the output matches"),
        ("zero", "no_time", "'0', which is no time"),
        ("less", "no_time", "'-3', which is no time"),
        ("fails", "failed", "exited with status 3"),
    ],
)
def test_what_a_program_does_wrong_is_a_state_and_ends_its_runs(job, log, word, state, reason):
    (wrong, right) = run_job(job([asked(0, word), asked(1, "fine")]), "gpu").readings
    assert (wrong.state, wrong.times_ms) == (state, ())
    assert reason in wrong.reason
    assert (right.state, right.reason) == ("ok", None)
    assert log() == [word, "fine", "fine", "fine"]


def test_a_program_that_hangs_is_ended(job):
    (slow,) = run_job(job([asked(0, "slow")], time_limit_s=0.3), "gpu").readings
    assert (slow.state, slow.times_ms) == ("time_limit", ())


def test_a_program_that_is_not_there_is_no_state_of_a_configuration(job):
    with pytest.raises(MissingError):
        run_job(job([Variant(index=0, command=("./absent",))]), "gpu")


def test_wall_time_is_that_of_the_process_in_milliseconds(job, tmp_path):
    (tmp_path / "program").write_text("exec sleep 0.05")
    outcome = run_job(job([asked(0)], timing=Timing(source="wall", runs=2)), "gpu")
    (reading,) = outcome.readings
    assert len(reading.times_ms) == 2
    assert all(time >= 50 for time in reading.times_ms)
    assert sum(reading.times_ms) <= 1000 * outcome.wall_s


def test_rounds_turn_their_order_behind_one_discarded_run_of_each(job, log):
    timing = Timing(source="printed", runs=9, pattern=TOOK)
    variants = [asked(n, name, str(n + 1)) for n, name in enumerate("abc")]
    outcome = run_job(job(variants, timing=timing, in_turns=True, rounds=3), "gpu")
    assert log() == ["a", "b", "c", *"abc", *"cba", *"abc"]
    assert [one.times_ms for one in outcome.readings] == [(1.0,) * 3, (2.0,) * 3, (3.0,) * 3]
    run_job(job([asked(0, "a"), asked(1, "fails")], timing=timing, in_turns=True, rounds=2), "gpu")
    assert log() == ["a", "fails", "a", "a"]


@pytest.mark.parametrize(
    ("check", "state", "reason"),
    [
        ("true", "ok", None),
        ("echo sum; echo; exit 4", "wrong", r"the validation exited with status 4: sum"),
        ("exit 4", "wrong", r"the validation exited with status 4$"),
    ],
)
def test_a_configuration_is_measured_once_its_results_are_right(job, log, check, state, reason):
    (reading,) = run_job(job([asked(0, "fine", validate_command=("sh", "-c", check))]), "gpu").readings
    assert reading.state == state
    assert reading.reason is None if reason is None else re.search(reason, reading.reason)
    assert log() == (["fine"] * 3 if state == "ok" else [])


def test_what_is_run_is_known_by_all_files_that_the_command_names(job, tmp_path):
    def digest(*words):
        return run_job(job([asked(0, *words)]), "gpu").readings[0].binary

    (tmp_path / "data").write_text("one")
    first = digest("fine", "data")
    assert digest("fine", "data") == first
    (tmp_path / "data").write_text("two")
    assert digest("fine", "data") != first
    assert digest("fine", "8") not in (first, None)


def built(index, key, script):
    words = ("sh", "-c", f"echo build >> log; {script}", "cc", "{output}")
    return Variant(index=index, build=words, build_key=key * 32, command=("sh", "{program}", "built"))


def test_each_build_is_made_once_and_its_program_runs(job, log, tmp_path):
    copy = 'cp program "$1"'
    (one, two) = run_job(job([built(0, "a", copy), built(1, "a", copy)]), "gpu").readings
    assert log() == ["build", *["built"] * 6]
    assert (one.state, two.state) == ("ok", "ok")
    assert one.binary == two.binary == hashlib.sha256(PROGRAM.encode()).hexdigest()
    # Another worker of the session finds it; a program that was deleted is built again.
    assert run_job(job([built(2, "a", copy)]), "gpu").readings[0].state == "ok"
    assert "build" not in log()
    (program,) = (tmp_path / "scratch").rglob("program")
    program.unlink()
    assert run_job(job([built(3, "a", copy)]), "gpu").readings[0].state == "ok"
    assert log()[0] == "build"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo begin; echo 'k.hip:1: error: no'; echo end; exit 1", "k.hip:1: error: no"),
        ("echo begin; echo end; exit 1", "end"),
        ("exit 5", "the build exited with status 5"),
        ("true", "left no program at {output}"),
    ],
)
def test_a_build_that_fails_is_told_by_its_first_error_and_not_made_again(job, log, script, reason):
    for _ in range(2):
        (reading,) = run_job(job([built(0, "b", script)]), "gpu").readings
        assert (reading.state, reading.times_ms, reading.binary) == ("build_failed", (), None)
        assert reading.reason.endswith(reason)
    assert log() == ["build"]


def test_a_build_that_hangs_is_ended(job):
    (reading,) = run_job(job([built(0, "c", "exec sleep 30")], build_time_limit_s=0.3), "gpu").readings
    assert reading.state == "build_failed"


def test_a_pattern_has_one_number():
    assert [checked_pattern(text) for text in ("a(b)", "a", "(?:x)(y)")] == ["a(b)", "a", "(?:x)(y)"]
    for wrong in ("(a)(b)", "(a"):
        with pytest.raises(UsageError, match="--time-regex"):
            checked_pattern(wrong)
