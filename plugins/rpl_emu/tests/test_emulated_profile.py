"""What the software KFD wrote down becomes a recording: modelled times, ordered by queues and barriers."""

from __future__ import annotations

import json
import sqlite3

import pytest

from rpl_core.errors import BadDataError, MissingError
from rpl_core.interfaces.collector import PlannedPass
from rpl_core.model.trace import TraceRole
from rpl_emu.collector import EmulatedCollector
from rpl_emu.rocpd_file import read_work, write_rocpd


def launch(kernel, queue, bound_ns, *, done_before=0, completes=0, **facts):
    return "emulated " + json.dumps(
        {
            "pid": 7,
            "gpu": 0,
            "queue": queue,
            "done_before": done_before,
            "completes": completes,
            "symbol": kernel,
            "kernel": f"{kernel}(int*)",
            "kernel_object": sum(kernel.encode()),
            "grid": [128, 1, 1],
            "workgroup": [64, 1, 1],
            "lds_bytes": 0,
            "scratch_bytes": 0,
            "static_lds_bytes": 0,
            "kernarg_bytes": 8,
            "arch_vgpr": 8,
            "accum_vgpr": 0,
            "sgpr": 16,
            "places": [],
            "waves": 2,
            "classes": {"valu.fma.f32": {"executed": 10, "lanes": 640}},
            "modelled": {"bound_ns": bound_ns},
            **facts,
        }
    )


def barrier(queue, *waits_for, completes):
    return "barrier " + json.dumps(
        {"pid": 7, "gpu": 0, "queue": queue, "waits_for": waits_for, "completes": completes}
    )


@pytest.fixture
def laid_out(tmp_path):
    """``laid_out(lines...)``: begin and end of each launch, by kernel."""

    def read(*lines):
        log = tmp_path / "log"
        log.write_text("\n".join(["kernel gpu=0 name=a", *lines, ""]))
        return {one.facts["symbol"]: (one.begin_ns, one.end_ns) for one in read_work(log)[7].launches}

    return read


def test_launches_of_one_queue_follow_each_other_and_queues_run_beside_each_other(laid_out):
    assert laid_out(launch("a", 1, 100), launch("b", 2, 30), launch("c", 1, 50.4)) == {
        "a": (0, 100),
        "b": (0, 30),
        "c": (100, 150),
    }


def test_a_barrier_packet_holds_what_comes_after_it_in_its_queue(laid_out):
    found = laid_out(
        launch("a", 1, 100, completes=5),
        barrier(2, 5, completes=6),
        launch("b", 2, 10),
        barrier(3, 6, completes=8),
        launch("c", 3, 10),
        launch("d", 4, 10),
    )
    assert found == {"a": (0, 100), "b": (100, 110), "c": (100, 110), "d": (0, 10)}


def test_what_had_ended_when_the_program_submitted_a_launch_came_before_it(laid_out):
    found = laid_out(
        launch("a", 1, 100), launch("b", 2, 10, done_before=1), launch("c", 3, 10, done_before=0)
    )
    assert found == {"a": (0, 100), "b": (100, 110), "c": (0, 10)}


def test_a_line_that_was_cut_off_is_told(laid_out):
    with pytest.raises(BadDataError, match="cut off"):
        laid_out('emulated {"pid": 7, "gpu')


def test_the_recording_says_everywhere_that_it_is_modelled(laid_out, tmp_path, rpl_cli):
    lines = [launch("a", 1, 100), launch("b", 2, 30), launch("a", 1, 100)]
    laid_out(*lines)
    times, counters = tmp_path / "times.db", tmp_path / "counters.db"
    work = read_work(tmp_path / "log")[7]
    write_rocpd(times, 7, "./app", work, ())
    write_rocpd(counters, 7, "./app", work, ("SQ_INSTS_VALU", "SQ_WAVES"))
    again = tmp_path / "again.db"
    write_rocpd(again, 7, "./app", work, ())
    assert again.read_bytes() == times.read_bytes()
    ran = rpl_cli("profile", "--from", times, "--from", counters, "-o", tmp_path / "out", "--json")
    assert ran.exit_code == 0, ran.stderr
    profile = json.loads((tmp_path / "out" / "profile.json").read_text())
    assert profile["provenance"]["origin"] == "modelled"
    assert profile["runtime_source"].startswith("modelled: ")
    assert profile["runtime_ms"] == pytest.approx(230e-6)
    assert profile["stability"]["cv"] is None
    assert profile["provenance"]["device"] == "gfx942-emu"


def test_a_full_disk_is_told_with_the_size_of_the_recording(laid_out, tmp_path, monkeypatch):
    """SQLite says it in the same way where a file may have no more pages."""
    laid_out(launch("a", 1, 500))
    work, path, connect = read_work(tmp_path / "log")[7], tmp_path / "1_results.db", sqlite3.connect

    def limited(name, **options):
        connection = connect(name, **options)
        if name != ":memory:":
            connection.execute("PRAGMA max_page_count = 10")
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    with pytest.raises(MissingError, match="no space left to write") as told:
        write_rocpd(path, 7, "app", work, ())
    assert list(tmp_path.glob("*results.db*")) == []
    monkeypatch.undo()
    write_rocpd(path, 7, "app", work, ())
    assert f"{path.stat().st_size} bytes are needed" in str(told.value.cause)


def test_a_log_that_could_not_be_written_ends_the_collection_and_says_so(tmp_path):
    said = "softkfd: its log can't be written: No space left on device"
    planned = PlannedPass(
        "run_1", TraceRole.TIMING, "run_1", ("sh", "-c", f'echo "{said}" >&2; exit 74'), (), None
    )
    with pytest.raises(MissingError, match="No space left on device") as told:
        EmulatedCollector().run(planned, tmp_path, lambda line: None)
    assert "more than the 0 bytes" in str(told.value.cause)


def test_a_barrier_between_queues_is_a_certain_edge_of_the_graph(laid_out, tmp_path, rpl_cli):
    laid_out(
        launch("a", 1, 100),
        launch("b", 2, 30),
        barrier(1, completes=5),
        barrier(2, 5, 77, completes=0),
        launch("c", 2, 10),
        barrier(3, 5, completes=6),
    )
    write_rocpd(tmp_path / "times.db", 7, "./app", read_work(tmp_path / "log")[7], ())
    ran = rpl_cli("profile", "--from", tmp_path / "times.db", "-o", tmp_path / "out")
    assert ran.exit_code == 0, ran.stderr
    graph = json.loads((tmp_path / "out" / "dag.json").read_text())
    assert graph["sync_info"] == "measured_events"
    assert graph["order_known"] is True
    # Counters of hardware are nothing that an emulated run can have.
    advised = rpl_cli("analyze", tmp_path / "times.db", "--device", "gfx942-emu", "-o", tmp_path / "named")
    assert advised.exit_code == 0, advised.stderr
    (kernel, *_) = json.loads((tmp_path / "named" / "analysis.json").read_text())["kernels"]
    assert "record-counters" not in {step["advice"] for step in kernel["next_steps"]}
    assert kernel["remedy"] is None
    explained = rpl_cli("explain", "--run", tmp_path / "named").assert_ok().stdout
    assert (
        "unknown     hbm_utilization: no counters were recorded for this kernel: it ran in an emul"
        in explained
    )
    assert "collect them with" not in explained
    assert json.loads((tmp_path / "named" / "roofline.json").read_text())["how_to_collect"] is None
    assert {"kind": "measured_event", "confidence": "certain", "count": 1} in graph["edges"]
    assert graph["bounds"]["certain_only_ns"] == graph["critical_path_ns"] == 110


def test_counters_of_a_program_are_compared_kernel_by_kernel(tmp_path, rpl_cli):
    run, recorded = tmp_path / "run" / "pass_1", tmp_path / "recorded"
    run.mkdir(parents=True)
    recorded.mkdir()
    lines = [launch("a", 1, 10), launch("a", 1, 10), launch("b", 1, 10)]
    (run / "software_kfd.log").write_text("\n".join([*lines, ""]))
    head = "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value"
    rows = [
        *(f'{n},"a(int*)",{name},{value}' for n in (1, 2) for name, value in (("SQ_WAVES", 2),)),
        '3,"b(int*)",SQ_WAVES,3',
        '3,"other",SQ_WAVES,9',
    ]
    (recorded / "from_0_counter_collection.csv").write_text("\n".join([head, *rows, ""]))
    again = [head, '1,"a(int*)",SQ_INSTS_VALU_FMA_F32,20', '1,"a(int*)",SQ_WAVES,7', ""]
    (recorded / "from_8_counter_collection.csv").write_text("\n".join(again))
    ran = rpl_cli("emu", "calibrate", str(tmp_path / "run"), str(recorded), "--json")
    found = {(one["kernel"], one["counter"]): one for one in json.loads(ran.stdout)["counters"]}
    assert {key: (one["emulated"], one["recorded"], one["agrees"]) for key, one in found.items()} == {
        ("a(int*)", "SQ_WAVES"): (4, 4.0, True),
        ("a(int*)", "SQ_INSTS_VALU_FMA_F32"): (20, 20.0, True),
        ("b(int*)", "SQ_WAVES"): (2, 3.0, False),
    }
    assert ran.exit_code == 1
    ran = rpl_cli("emu", "calibrate", str(tmp_path / "run"), str(recorded), "--kernel", "a(")
    assert (ran.exit_code, ran.stdout.count("agrees")) == (0, 2)
    assert rpl_cli("emu", "calibrate", str(recorded), str(recorded)).exit_code == 65
    (recorded / "from_0_counter_collection.csv").write_text('no\n"')
    assert rpl_cli("emu", "calibrate", str(tmp_path / "run"), str(recorded)).exit_code == 65
