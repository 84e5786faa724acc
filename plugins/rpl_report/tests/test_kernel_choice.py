"""``--names``, ``--top``, ``--sort``, ``--kernel`` and ``--csv``: the same kernels under the same names."""

from __future__ import annotations

import csv
import io

import pytest

NAMES = ("void ns::gemm<64, float>(int)", "void ns::gemm<32, float>(int)", "_Z4copyPfi")


@pytest.fixture
def run(rpl_make_rocpd, rpl_cli, tmp_path):
    rows = [(NAMES[0], 0, 5000), (NAMES[1], 6000, 9000), (NAMES[1], 9500, 9900), (NAMES[2], 10_000, 10_500)]
    rpl_cli("analyze", rpl_make_rocpd(rows), "-o", tmp_path / "run").assert_ok()
    return tmp_path / "run"


def _names(rpl_cli, run, *words):
    rows = list(csv.DictReader(io.StringIO(rpl_cli("report", run, "--csv", *words).assert_ok().stdout)))
    return [row["kernel"] for row in rows]


def test_kernels_have_one_short_name_everywhere(rpl_cli, run):
    shown = ["gemm<64, …>", "gemm<32, …>", "copy"]
    assert _names(rpl_cli, run) == shown
    text = rpl_cli("report", run).assert_ok().stdout
    assert all(text.count(name) >= 2 for name in shown)
    assert "void ns" not in text
    assert "_Z4copy" not in text
    page = rpl_cli("report", run, "--format", "html").assert_ok().stdout
    assert all(page.count(name.replace("<", "&lt;").replace(">", "&gt;")) >= 2 for name in shown)
    assert rpl_cli("explain", "gemm<32, …>", "--run", run).assert_ok().stdout.startswith("gemm<32, …>\n")


def test_full_names_are_demangled_and_mangled_ones_as_the_linker_has_them(rpl_cli, run):
    assert _names(rpl_cli, run, "--names", "full")[2] == "copy(float*, int)"
    assert _names(rpl_cli, run, "--names", "mangled")[2] == NAMES[2]


def test_rows_are_chosen_and_ordered_as_asked(rpl_cli, run):
    assert _names(rpl_cli, run, "--sort", "calls")[0] == "gemm<32, …>"
    assert _names(rpl_cli, run, "--sort", "name") == ["copy", "gemm<32, …>", "gemm<64, …>"]
    assert _names(rpl_cli, run, "--kernel", "^gemm", "--top", "1") == ["gemm<64, …>"]
    text = rpl_cli("report", run, "--top", "1").assert_ok().stdout
    assert "(2 more kernels with 43.8% of the time: --all shows them" in text
    every = rpl_cli("report", run, "--top", "1", "--all").assert_ok().stdout
    assert "more kernels" not in every
    assert all(f"\n{name} " in every for name in ("gemm<64, …>", "copy"))
    assert (
        "no kernel's name holds nothing" in rpl_cli("report", run, "--kernel", "nothing").assert_ok().stdout
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--kernel", "["), "no regular expression"),
        (("--sort", "colour"), "expected one of time"),
        (("--names", "long"), "expected one of short, full, mangled"),
    ],
)
def test_what_can_not_be_is_a_usage_error(rpl_cli, run, words, complaint):
    assert complaint in rpl_cli("report", run, *words).assert_exit(64).stderr
