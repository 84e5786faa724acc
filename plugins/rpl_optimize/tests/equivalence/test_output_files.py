"""``output-files``: what counts as equal, as different and as no evidence at all."""

from __future__ import annotations

import pytest
from attrs import evolve

from rpl_core.process.output import LogFile
from rpl_optimize.equivalence.checks import OutputFilesCheck
from rpl_optimize.equivalence.program_run import make_working_copy
from rpl_optimize.interfaces.equivalence import EquivalenceVerdict
from rpl_testkit import contracts

EQUAL, DIFFERENT, NOT_RUN = (
    EquivalenceVerdict.EQUAL,
    EquivalenceVerdict.DIFFERENT,
    EquivalenceVerdict.NOT_RUN,
)
TWO = "echo 2.0 > out.txt"


def check(desk, baseline: bytes, candidate: bytes, **options):
    return OutputFilesCheck().check(desk.request(baseline, candidate, **options))


def test_the_contract_of_checks_is_kept(tmp_path) -> None:
    contracts.assert_equivalence_check(OutputFilesCheck(), tmp_path)


@pytest.mark.parametrize(
    ("kernel", "options", "verdict", "evidence"),
    [
        ("printf '2.0\\n' > out.txt", {}, EQUAL, "4 bytes equal"),
        ("echo 2.1 > out.txt", {}, DIFFERENT, "at byte 2"),
        ("echo 2.1 > out.txt", {"relative": 0.06}, EQUAL, "largest difference 0.1"),
        ("echo 2.1 > out.txt", {"relative": 0.04}, DIFFERENT, "'2.0' became '2.1' in line 1"),
        ("echo 2.1 > out.txt", {"absolute": 0.2}, EQUAL, "within 0.2"),
        (":", {}, DIFFERENT, "not written"),
        (": > out.txt", {}, DIFFERENT, "4 bytes became 0"),
        ("echo 2.0 > out.txt; echo broken >&2; exit 3", {}, DIFFERENT, "exited with status 3: broken"),
        ("echo 2.0 > out.txt; kill -SEGV $$", {}, DIFFERENT, "SIGSEGV"),
        ("echo 2.0 > out.txt; sleep 60", {"time_limit_s": 1.0}, DIFFERENT, "did not end within 1 s"),
    ],
)
def test_verdicts(desk, kernel: str, options: dict, verdict, evidence: str) -> None:
    report = check(desk, desk.script(TWO), desk.script(kernel), outputs=("out.txt",), **options)
    assert report.verdict is verdict, report
    assert evidence in report.evidence
    assert report.crashed == ("kill" in kernel or "sleep" in kernel)


@pytest.mark.parametrize(
    ("baseline", "outputs", "reason"),
    [
        ("echo 2.0 > out.txt", (), "no outputs were named"),
        ("echo 2.0 > out.txt", ("/tmp/out.txt",), "absolute path"),
        ("echo 2.0 > out.txt", ("../out.txt",), "not a file below"),
        ("echo 2.0 > out.txt", ("",), "not a file below"),
        ("echo 2.0 > out.txt", ("out.txt", "other.txt"), "does not write other.txt"),
        (": > out.txt", ("out.txt",), "all outputs are empty"),
        ("echo oh no; exit 1", ("out.txt",), "the unchanged program exited with status 1: oh no"),
        ("ln -s /etc/passwd out.txt", ("out.txt",), "does not write out.txt"),
        ("mkdir out.txt", ("out.txt",), "does not write out.txt"),
        ("date +%s.%N > out.txt", ("out.txt",), "two runs of the unchanged program differ in out.txt"),
    ],
)
def test_nothing_to_compare_is_not_run(desk, baseline: str, outputs, reason: str) -> None:
    report = check(desk, desk.script(baseline), desk.script(baseline, "# other"), outputs=outputs)
    assert report.verdict is NOT_RUN, report
    assert reason in report.evidence


def test_the_same_program_twice_proves_nothing(desk) -> None:
    request = desk.request(desk.script(TWO), desk.script(TWO), outputs=("out.txt",))
    report = OutputFilesCheck().check(evolve(request, candidate_command=request.baseline_command))
    assert report.verdict is NOT_RUN


def test_a_spread_within_the_tolerance_is_shown(desk) -> None:
    noisy = desk.script("if [ -e ../../seen ]; then echo 2.01; else echo 2.0; fi > out.txt; touch ../../seen")
    report = check(desk, noisy, desk.script(TWO), outputs=("out.txt",), relative=0.1)
    assert report.verdict is EQUAL
    assert "two runs of the unchanged program: out.txt" in report.evidence


def test_standard_output_is_compared_without_the_error_output(desk) -> None:
    talks = "echo 1 2 3; echo $$ >&2"
    assert check(desk, desk.script(talks), desk.script(talks, "#"), outputs=("-",)).verdict is EQUAL
    assert check(desk, desk.script(talks), desk.script("echo 1 2 4"), outputs=("-",)).verdict is DIFFERENT
    assert check(desk, desk.script("echo >&2"), desk.script("echo a >&2"), outputs=("-",)).verdict is NOT_RUN


def test_the_users_files_stay_and_old_outputs_are_no_outputs(desk) -> None:
    (desk.home / "results").mkdir()
    (desk.home / "results" / "out.txt").write_text("2.0\n")
    (desk.home / "log.txt").write_text("mine")
    (desk.home / "in.txt").write_text("2.0\n")
    writes = desk.script("cp in.txt results/out.txt; echo x >> log.txt; echo > results/new.txt")
    outputs = ("results/out.txt",)
    assert check(desk, writes, desk.script(":"), outputs=outputs).verdict is DIFFERENT
    assert check(desk, writes, desk.script("cat in.txt > results/out.txt"), outputs=outputs).verdict is EQUAL
    assert (desk.home / "log.txt").read_text() == "mine"
    assert sorted(p.name for p in desk.home.rglob("*")) == ["in.txt", "log.txt", "out.txt", "results"]


def test_a_large_file_that_the_program_rewrites_is_noticed(desk) -> None:
    (desk.home / "big.bin").write_bytes(bytes(2 << 20))
    report = check(desk, desk.script("echo x >> big.bin; echo 1 > o"), desk.script(":"), outputs=("o",))
    assert report.verdict is NOT_RUN
    assert "big.bin, which is not named as an output" in report.evidence


def test_relative_paths_of_the_command_lead_to_the_users_files(desk) -> None:
    (desk.tmp / "data").mkdir()
    (desk.tmp / "data" / "in.txt").write_text("5\n")
    copies = desk.script('cp "$1" out.txt')
    request = desk.request(copies, desk.script('cat "$1" > out.txt'), outputs=("out.txt",))
    commands = [(c[0], "../data/in.txt") for c in (request.baseline_command, request.candidate_command)]
    request = evolve(request, baseline_command=commands[0], candidate_command=commands[1])
    report = OutputFilesCheck().check(request)
    assert report.verdict is EQUAL, report


def test_the_unchanged_program_runs_twice_for_all_candidates(desk) -> None:
    counts = desk.script(f"echo run >> {desk.tmp}/runs; echo 1 > out.txt")
    checker = OutputFilesCheck()
    first = desk.request(counts, desk.script("echo 1 > out.txt"), outputs=("out.txt",))
    assert checker.check(first).verdict is EQUAL
    assert checker.check(first).verdict is EQUAL
    assert (desk.tmp / "runs").read_text() == "run\nrun\n"


def test_an_endless_output_is_no_evidence(desk, monkeypatch) -> None:
    monkeypatch.setattr(LogFile.__init__, "__defaults__", (1000,))
    endless = desk.script("head -c 5000 /dev/zero")
    report = check(desk, endless, desk.script("head -c 5000 /dev/zero #"), outputs=("-",))
    assert report.verdict is NOT_RUN
    assert "longer than the log may be" in report.evidence


def test_a_program_that_can_not_start_is_not_run(desk) -> None:
    report = check(desk, b"#!/no/such/shell\n", desk.script(TWO), outputs=("out.txt",))
    assert report.verdict is NOT_RUN
    assert "cannot start" in report.evidence


def test_sessions_are_not_copied_into_each_others_checks(tmp_path) -> None:
    for name in ("data/in.bin", "runs/one/ledger.jsonl", "runs/one/candidates/001/app", "runs/notes.txt"):
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_text(name)
    copy = make_working_copy(tmp_path / "here", tmp_path / "copy", (), ("./app",)).directory
    found = {str(path.relative_to(copy)) for path in copy.rglob("*")}
    assert found == {"data", "data/in.bin", "runs", "runs/notes.txt"}


def test_what_holds_thousands_of_files_and_no_data_is_not_copied_for_each_run(tmp_path) -> None:
    for name in (".git/HEAD", "env/pyvenv.cfg", "cache/CACHEDIR.TAG", "data/in.bin"):
        (tmp_path / "here" / name).parent.mkdir(parents=True)
        (tmp_path / "here" / name).write_text(name)
    copy = make_working_copy(tmp_path / "here", tmp_path / "copy", (), ("./app",)).directory
    assert {path.name for path in copy.iterdir() if path.is_symlink()} == {".git", "env", "cache"}
    assert (copy / "env" / "pyvenv.cfg").read_text() == "env/pyvenv.cfg"
