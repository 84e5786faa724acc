"""Two recordings from disk to the answer: verdicts, one-sided kernels, refusals, exit codes."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from rpl_compare.comparison.text import answer_lines, compare_text
from rpl_compare.contract import CompareDocument

pytestmark = pytest.mark.usefixtures("synthetic_counts")


def items(document: dict) -> dict[str, dict]:
    return {item["name"]: item for item in (*document["application"], *document["kernels"])}


def test_a_slower_kernel_is_a_regression_with_exit_1(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(100_000, 10, other=50_000))
    new = make_runs("new", steady(106_000, 10, other=50_000))
    document = rpl_cli("compare", base, new, "--json").assert_exit(1).json()
    found = items(document)
    assert document["gate"]["outcome"] == "regression"
    assert document["gate"]["worst_item"] == "k"
    assert found["k"]["verdict"] == "regressed"
    assert found["k"]["change"] == pytest.approx(0.06, abs=0.002)
    assert found["k"]["ratio_low"] < 1.06 < found["k"]["ratio_high"]
    assert found["other"]["verdict"] == "unchanged"
    # 4 dispatches of 100 us in a run without deviation, 2 of 50 us: 500 us of kernel time.
    assert found["runtime"]["base"]["median_ns"] == pytest.approx(500_000, rel=0.005)
    assert found["k"]["base"]["launches"] == 4


def test_the_same_times_pass_with_exit_0_and_swapping_mirrors(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(100_000, 10, other=50_000))
    same = make_runs("same", steady(100_100, 10, other=50_000))
    slow = make_runs("slow", steady(106_000, 10, other=50_000))
    assert rpl_cli("compare", base, same, "--json").assert_ok().json()["gate"]["outcome"] == "pass"
    back = rpl_cli("compare", slow, base, "--json").assert_ok().json()
    assert items(back)["k"]["verdict"] == "improved"
    assert items(back)["k"]["change"] == pytest.approx(1 / 1.06 - 1, abs=0.002)


def test_three_runs_cannot_tell_and_exit_75(make_runs, steady, rpl_cli) -> None:
    base, new = make_runs("base", steady(100_000, 3)), make_runs("new", steady(200_000, 3))
    outcome = rpl_cli("compare", base, new).assert_exit(75)
    assert "CANNOT TELL" in outcome.stdout
    assert "+100.00%" in outcome.stdout
    assert re.search(r"at least (\d+) runs per side are needed", outcome.stdout)
    # Both recordings name one command line, of two builds: the user knows which is which.
    hint = "next: rpl compare --interleaved --base COMMAND_OF_BASE --new COMMAND_OF_NEW --pairs "
    assert hint in " ".join(outcome.stdout.split())


def test_single_runs_show_the_ratio_and_no_verdict(make_runs, steady, rpl_cli) -> None:
    base, new = make_runs("base", steady(100_000, 1)), make_runs("new", steady(103_000, 1))
    document = rpl_cli("compare", base, new, "--json").assert_exit(75).json()
    assert items(document)["k"]["ratio"] == pytest.approx(1.03)
    assert items(document)["k"]["ratio_low"] is None
    assert items(document)["k"]["minimum_detectable_change"] is None


def test_synthetic_data_pass_no_gate_without_the_switch(make_runs, steady, rpl_cli) -> None:
    base, new = make_runs("base", steady(100_000, 10)), make_runs("new", steady(100_000, 10))
    outcome = rpl_cli("compare", base, new, "--json", env={"RPL_ALLOW_SYNTHETIC_GATES": "0"}).assert_exit(75)
    gate = outcome.json()["gate"]
    assert gate["outcome"] == "no_verdict"
    assert "synthetic" in gate["reasons"][0]
    assert outcome.json()["provenance"]["origin"] == "synthetic"


def test_kernels_of_one_side_are_listed(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(100_000, 6, gone=5000))
    new = make_runs("new", steady(100_000, 6, fresh=7000, more=9000))
    document = rpl_cli("compare", base, new, "--json").json()
    assert [kernel["name"] for kernel in document["only_base"]] == ["gone"]
    assert [kernel["name"] for kernel in document["only_new"]] == ["more", "fresh"]
    assert document["only_base"][0]["launches"] == 2
    # 4 * 100 us + 2 * 5 us
    assert document["only_base"][0]["share"] == pytest.approx(10 / 410, rel=0.02)
    text = rpl_cli("compare", base, new).stdout
    assert "only in BASE (1):" in text
    assert "only in NEW (2):" in text


def test_quiet_prints_the_worst_change_in_percent(make_runs, steady, rpl_cli) -> None:
    base, new = make_runs("base", steady(100_000, 10)), make_runs("new", steady(106_000, 10))
    outcome = rpl_cli("compare", base, new, "--quiet").assert_exit(1)
    assert float(outcome.stdout) == pytest.approx(6.0, abs=0.1)
    assert outcome.stdout.startswith("+")
    assert outcome.stderr == ""
    assert float(rpl_cli("compare", new, base, "--quiet").assert_ok().stdout) < 0


def test_only_named_kernels_decide(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(100_000, 10, other=50_000))
    new = make_runs("new", steady(106_000, 10, other=50_000))
    document = rpl_cli("compare", base, new, "--kernel", "oth", "--json").assert_ok().json()
    assert [item["name"] for item in document["kernels"]] == ["other"]
    assert all(not item["gated"] for item in document["application"])
    rpl_cli("compare", base, new, "--kernel", "k").assert_exit(1)
    missing = rpl_cli("compare", base, new, "--kernel", "absent").assert_exit(69)
    assert "'absent'" in missing.stderr


def test_a_named_kernel_of_one_side_gives_no_verdict(make_runs, steady, rpl_cli) -> None:
    base, new = make_runs("base", steady(100_000, 5, gone=900)), make_runs("new", steady(100_000, 5))
    outcome = rpl_cli("compare", base, new, "--kernel", "gone").assert_exit(75)
    assert "ran in BASE only" in outcome.stderr


def test_small_kernels_are_shown_but_do_not_decide(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(1_000_000, 10, tiny=1_000))
    new = make_runs("new", steady(1_000_000, 10, tiny=2_000))
    document = rpl_cli("compare", base, new, "--json").assert_ok().json()
    assert items(document)["tiny"]["verdict"] == "regressed"
    assert not items(document)["tiny"]["gated"]
    rows = [line.split() for line in compare_text(CompareDocument.model_validate(document)).splitlines()]
    assert [row[-1] for row in rows if row[:1] == ["tiny"]] == ["(regressed)"]
    assert len([row for row in rows if row[:1] == ["k"]]) == 1
    rpl_cli("compare", base, new, "--min-share", "0.01%").assert_exit(1)


def test_the_allowed_slowdown_is_the_users(make_runs, steady, rpl_cli) -> None:
    base, new = make_runs("base", steady(100_000, 10)), make_runs("new", steady(106_000, 10))
    rpl_cli("compare", base, new, "--fail-above", "10%").assert_ok()
    rpl_cli("compare", base, new, "--fail-above", "5").assert_exit(1)
    for wrong in ("0", "abc", "-3%", "nan", "3000%"):
        rpl_cli("compare", base, new, f"--fail-above={wrong}").assert_exit(64)
    rpl_cli("compare", base, new, "--alpha", "0.7").assert_exit(64)


def test_the_median_of_dispatches_ignores_another_number_of_launches(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(100_000, 8))
    new = make_runs("new", [{"k": [*run["k"], *run["k"][:1]]} for run in steady(100_000, 8)])
    outcome = rpl_cli("compare", base, new, "--kernel", "k").assert_exit(1)
    assert "4 against 5 per run" in outcome.stderr
    rpl_cli("compare", base, new, "--kernel", "k", "--statistic", "median").assert_ok()


def test_processes_of_a_run_add_up_and_a_lost_one_blocks_the_answer(make_runs, steady, rpl_cli) -> None:
    two = make_runs("two", steady(100_000, 6), processes=2)
    same = make_runs("same", steady(100_000, 6), processes=2)
    one = make_runs("one", steady(100_000, 6))
    document = rpl_cli("compare", two, same, "--json").assert_ok().json()
    assert document["base"]["processes"] == 2
    assert items(document)["k"]["base"]["median_ns"] == pytest.approx(800_000, rel=0.01)
    lost = rpl_cli("compare", two, one, "--json").assert_exit(75).json()
    assert lost["gate"]["outcome"] == "no_verdict"
    assert "2 processes" in lost["gate"]["reasons"][0]
    rpl_cli("compare", two, one, "--force").assert_ok()


def test_a_kernel_missing_in_some_runs_is_inconclusive(make_runs, steady, rpl_cli) -> None:
    runs = steady(100_000, 8, other=50_000)
    broken = [dict(run) for run in runs]
    del broken[3]["other"]
    base, new = make_runs("base", runs), make_runs("new", broken)
    found = items(rpl_cli("compare", base, new, "--json").assert_exit(75).json())["other"]
    assert found["verdict"] == "inconclusive"
    assert found["reason"] == "NEW: only 7 of 8 runs hold it"


def test_zero_times_are_inconclusive_not_a_ratio(make_runs, steady, rpl_cli) -> None:
    zero = steady(100_000, 6, other=50_000)
    for run in zero:
        run["other"] = [0, 0]
    base, new = make_runs("base", steady(100_000, 6, other=50_000)), make_runs("new", zero)
    outcome = rpl_cli("compare", base, new, "--json", "--min-share", "0").assert_exit(75)
    assert items(outcome.json())["other"]["ratio"] is None
    assert "time of zero" in items(outcome.json())["other"]["reason"]
    assert any(d["code"] == "dispatch.zero_duration" for d in outcome.json()["diagnostics"])


def test_rows_that_a_reader_left_out_block_the_answer(make_runs, steady, rpl_cli) -> None:
    damaged = steady(100_000, 6, other=50_000)
    damaged[2]["other"] = [50_000, -5]
    base, new = make_runs("base", steady(100_000, 6, other=50_000)), make_runs("new", damaged)
    gate = rpl_cli("compare", base, new, "--json").assert_exit(75).json()["gate"]
    assert gate["outcome"] == "no_verdict"
    assert gate["reasons"] == ["NEW lost data: 1 dispatch ends before it begins and is left out"]


def test_noise_is_refused_and_named(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(100_000, 12, spread=0.25))
    new = make_runs("new", steady(104_000, 12, spread=0.25))
    outcome = rpl_cli("compare", base, new, "--kernel", "k").assert_exit(75)
    assert "above 10%; --force" in outcome.stdout
    assert "vary by more than 5%" in outcome.stderr


def test_recordings_of_different_gpus_exit_65(make_runs, steady, rpl_cli, tmp_path: Path) -> None:
    folders = {"base": "AMD Instinct MI300X", "new": "AMD Instinct MI325X"}
    for name, product in folders.items():
        write_csv(tmp_path / name, product, [100_000] * 3)
    outcome = rpl_cli("compare", tmp_path / "base", tmp_path / "new").assert_exit(65)
    assert "AMD Instinct MI300X against AMD Instinct MI325X" in outcome.stderr


def write_csv(folder: Path, product: str, durations: list[int]) -> None:
    """One run as rocprofv3 writes CSV; such files carry no synthetic stamp, so only shapes matter here."""
    folder.mkdir(parents=True)
    agent = {
        "Node_Id": 2,
        "Logical_Node_Id": 2,
        "Agent_Type": "GPU",
        "Name": "gfx942",
        "Product_Name": product,
    }
    rows = []
    now = 1000
    for number, duration in enumerate(durations, 1):
        rows.append(
            {
                "Kind": "KERNEL_DISPATCH",
                "Agent_Id": "Agent 2",
                "Queue_Id": 1,
                "Stream_Id": 0,
                "Thread_Id": 1,
                "Dispatch_Id": number,
                "Kernel_Id": 1,
                "Kernel_Name": "k",
                "Correlation_Id": number,
                "Start_Timestamp": now,
                "End_Timestamp": now + duration,
                "LDS_Block_Size": 0,
                "Scratch_Size": 0,
                "VGPR_Count": 8,
                "Accum_VGPR_Count": 0,
                "SGPR_Count": 16,
                **{f"Workgroup_Size_{axis}": 64 for axis in "XYZ"},
                **{f"Grid_Size_{axis}": 64 for axis in "XYZ"},
            }
        )
        now += duration + 500
    for name, table in (("1_agent_info.csv", [agent]), ("1_kernel_trace.csv", rows)):
        with (folder / name).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(table[0]))
            writer.writeheader()
            writer.writerows(table)


def test_every_entry_of_a_folder_may_be_a_run(rpl_cli, tmp_path: Path) -> None:
    for side, time in (("base", 100_000), ("new", 108_000)):
        for number in range(8):
            write_csv(tmp_path / side / f"run{number}", "AMD Instinct MI300X", [time + 100 * number] * 3)
    outcome = rpl_cli("compare", tmp_path / "base", tmp_path / "new", "--each-is-a-run", "--json")
    document = outcome.assert_exit(1).json()
    assert document["base"]["runs"] == 8
    assert items(document)["k"]["change"] == pytest.approx(0.08, abs=0.005)
    one = rpl_cli("compare", tmp_path / "base/run0", tmp_path / "new/run0", "--json").assert_exit(75).json()
    assert one["base"]["runs"] == 1  # whose two files are no runs of their own


@pytest.mark.parametrize(("count", "last"), [(8, ""), (9, "  ... and 1 more"), (12, "  ... and 4 more")])
def test_eight_reasons_are_written_out(count: int, last: str) -> None:
    reasons = [f"r{number}" for number in range(count)]
    gate = SimpleNamespace(outcome="pass", fail_above=0.03, worst_change=None, reasons=reasons)
    lines = answer_lines(SimpleNamespace(gate=gate, base=None, new=None))
    assert list(lines)[1:] == [*(f"  r{number}" for number in range(8)), *([last] if count > 8 else [])]


def test_a_folder_of_run_directories_is_one_side(make_runs, steady, rpl_cli, tmp_path: Path) -> None:
    for side, time in (("base", 100_000), ("new", 106_000)):
        nested = make_runs.under(side)
        for number in range(4):
            nested(f"r{number}", steady(time, 2, spread=0.001 * (number + 1)))
        (tmp_path / side / "latest").symlink_to("r3")
    document = rpl_cli("compare", tmp_path / "base", tmp_path / "new", "--json").assert_exit(1).json()
    assert (document["base"]["runs"], document["new"]["runs"]) == (8, 8)


def test_differences_of_the_surroundings_are_told(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(100_000, 5), collector_version="1.0.0", options={"clock_mhz": 1700.0})
    new = make_runs("new", steady(100_000, 5), collector_version="1.1.0", tool_version="0.2.0")
    document = rpl_cli("compare", base, new, "--json").json()
    codes = {diagnostic["code"] for diagnostic in document["diagnostics"]}
    assert {"compare.collector_differs", "compare.tool_version_differs", "compare.overrides_differ"} <= codes


def test_the_same_recording_twice_is_noticed(make_runs, steady, rpl_cli) -> None:
    base = make_runs("base", steady(100_000, 6))
    codes = {d["code"] for d in rpl_cli("compare", base, base, "--json").json()["diagnostics"]}
    assert "compare.same_files" in codes


def test_the_document_is_written_and_equal_bytes_each_time(
    make_runs, steady, rpl_cli, tmp_path: Path
) -> None:
    base, new = make_runs("base", steady(100_000, 6)), make_runs("new", steady(100_000, 6))
    rpl_cli("compare", base, new, "-o", tmp_path / "a").assert_ok()
    rpl_cli("compare", base, new, "-o", tmp_path / "b").assert_ok()
    first = (tmp_path / "a" / "compare.json").read_bytes()
    assert first == (tmp_path / "b" / "compare.json").read_bytes()
    assert CompareDocument.model_validate_json(first).schema_version == "1.0"


def test_hostile_names_stay_on_their_row(make_runs, steady, rpl_cli) -> None:
    name = "evil\x1b[31m\nname\t" + "x" * 2000
    base = make_runs("base", steady(100_000, 6, kernel=name))
    new = make_runs("new", steady(100_000, 6, kernel=name))
    outcome = rpl_cli("compare", base, new).assert_ok()
    assert "\x1b" not in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) < 200
    row = next(line for line in outcome.stdout.splitlines() if line.startswith("evil"))
    assert row.endswith("unchanged")
    assert items(rpl_cli("compare", base, new, "--json").json())[name]["verdict"] == "unchanged"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 64),
        (("only-one",), 64),
        (("absent-a", "absent-b"), 69),
        (("a", "b", "--base", "./x"), 64),
        (("--interleaved",), 64),
        (("a", "--interleaved", "--base", "x", "--new", "y"), 64),
        (("a", "--history", "b"), 64),
    ],
)
def test_wrong_usage(rpl_cli, arguments: tuple[str, ...], code: int) -> None:
    rpl_cli("compare", *arguments).assert_exit(code)


@pytest.mark.parametrize("name", ["compare", "history", "comparison"])
def test_schemas_are_printed(rpl_cli, name: str) -> None:
    schema = rpl_cli("schema", name).assert_ok().json()
    assert "schema_version" in schema["required"] or "schema_version" in schema["properties"]
