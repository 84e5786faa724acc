"""What CI gets: annotations, a summary, JUnit, a badge, a page of a history; hostile names are only names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.usefixtures("synthetic_counts")

ROOT = Path(__file__).parents[4]
HOSTILE = 'k]]><u>|`[x](y)`::error title=a,b::c%0A</failure>"\x1b[31m\u202e\nnext'


@pytest.fixture
def sides(make_runs, steady):
    """A version that is slower in the kernel with the hostile name."""
    base = make_runs("base", steady(100_000, 10, kernel=HOSTILE, other=50_000))
    return base, make_runs("new", steady(108_000, 10, kernel=HOSTILE, other=50_000))


def test_a_regression_annotates_summarises_and_fails(sides, rpl_cli, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("what stood there\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    files = {name: tmp_path / name for name in ("perf.xml", "badge.svg", "badge.json")}
    words = ("--annotate", "github", "--junit", files["perf.xml"], "--badge", files["badge.svg"])
    shown = rpl_cli("compare", *sides, *words).assert_exit(1)
    plain = rpl_cli("compare", *sides).assert_exit(1)
    assert shown.stdout == plain.stdout  # nothing of it stands on stdout
    commands = [line for line in shown.stderr.splitlines() if line.startswith("::")]
    assert [line.split(" ")[0] for line in commands] == ["::error"] * len(commands)
    assert len(commands) >= 2
    title, message = re.fullmatch(r"::error title=([^:,]*)::(.*)", commands[-1]).groups()
    assert "%3A%3Aerror title=a%2Cb%3A%3Ac" in title
    assert "\x1b" not in title + message

    document = ET.fromstring(files["perf.xml"].read_text())
    suite = document[0]
    assert (suite.get("failures"), suite.get("errors")) == (document.get("failures"), "0")
    failed = [case for case in suite.iter("testcase") if case.find("failure") is not None]
    assert int(suite.get("failures")) == len(failed) >= 2
    assert any(case.get("name").startswith("k]]><u>|") for case in failed)
    assert [case.get("name") for case in failed][-1] == "answer"
    origin = suite.find("properties/property")
    assert (origin.get("name"), origin.get("value")) == ("origin", "synthetic")

    text = summary.read_text()
    assert text.startswith("what stood there\n### rpl compare: slower (limit 3 %)")
    assert "SYNTHETIC" in text
    rows = [line for line in text.splitlines() if line.startswith("| <code>")]
    assert rows
    assert all(row.count(" | ") == 4 and "<u>" not in row and "`" not in row for row in rows)

    drawn = ET.fromstring(files["badge.svg"].read_text())
    assert "slower +" in drawn.get("aria-label")
    assert "synthetic" in drawn.get("aria-label")
    rpl_cli("compare", *sides, "--badge", files["badge.json"]).assert_exit(1)
    told = json.loads(files["badge.json"].read_text())
    assert (told["schemaVersion"], told["color"]) == (1, "red")


def test_doubt_is_no_success(make_runs, steady, rpl_cli, tmp_path):
    """Too few runs: JUnit has errors, the annotation is a warning, the badge is not green."""
    base, new = make_runs("base", steady(100_000, 3)), make_runs("new", steady(108_000, 3))
    words = ("--annotate", "github", "--junit", tmp_path / "perf.xml", "--badge", tmp_path / "badge.json")
    shown = rpl_cli("compare", base, new, *words).assert_exit(75)
    assert "::warning title=rpl compare::can't tell (limit 3 %25)" in shown.stderr
    suite = ET.parse(tmp_path / "perf.xml").getroot()[0]
    assert int(suite.get("errors")) >= 1
    assert suite.get("failures") == "0"
    assert json.loads((tmp_path / "badge.json").read_text())["color"] == "yellow"


def test_a_pass_is_a_notice_and_every_case_passes(make_runs, steady, rpl_cli, tmp_path):
    base, new = make_runs("base", steady(100_000, 10)), make_runs("new", steady(100_100, 10))
    words = ("--annotate", "github", "--junit", tmp_path / "perf.xml")
    shown = rpl_cli("compare", base, new, *words).assert_ok()
    assert "::notice title=rpl compare::no slower (limit 3 %25)" in shown.stderr
    suite = ET.parse(tmp_path / "perf.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    assert len(suite.findall("testcase")) == int(suite.get("tests")) >= 2


def test_what_can_not_be_written_is_one_line(sides, rpl_cli, tmp_path, monkeypatch):
    assert (
        "a badge is written as .svg or .json"
        in rpl_cli("compare", *sides, "--badge", tmp_path / "badge.png").assert_exit(64).stderr
    )
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    stopped = rpl_cli("compare", *sides, "--annotate", "github").assert_exit(64)
    assert "GITHUB_STEP_SUMMARY names" in stopped.stderr


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    handle_startendtag = handle_starttag


def test_a_history_has_a_plot_with_a_point_per_entry_and_its_step(make_runs, steady, rpl_cli, tmp_path):
    nightly = make_runs.under("nightly")
    for day in range(1, 11):
        time = 100_000 if day < 6 else 110_000
        times = steady(time, 3, spread=0.002 + 0.0002 * day, kernel=HOSTILE)
        nightly(f"2026-03-{day:02}", times, created_utc=f"2026-03-{day:02}T01:00:00Z")
    page = tmp_path / "history.html"
    folder = tmp_path / "nightly"
    folder = folder if folder.is_dir() else next(tmp_path.rglob("nightly"))
    words = ("--html", page, "--annotate", "github", "--json")
    shown = rpl_cli("compare", "--history", folder, *words).assert_exit(1)
    document = shown.json()
    item = document["kernels"][0]
    assert len(item["values_ns"]) == len(document["entries"]) == 10
    assert item["values_ns"][0] == pytest.approx(item["first_ns"])
    parsed = _Elements()
    parsed.feed(page.read_text(encoding="utf-8"))
    plots = [attrs for tag, attrs in parsed.tags if tag == "svg" and attrs.get("class") == "history"]
    items = [*document["application"], *document["kernels"]]
    assert len(plots) == len(items)
    assert len([1 for tag, attrs in parsed.tags if tag == "rect"]) == 10 * len(items)
    steps = sum(len(each["steps"]) for each in items)
    assert len([1 for tag, attrs in parsed.tags if attrs.get("class") == "slower"]) == steps >= 1
    assert not any(tag in ("u", "script") for tag, attrs in parsed.tags)
    assert "::error title=rpl compare --history::slower" in shown.stderr


def _commands(name: str) -> str:
    """The shell of the step ``name`` of the example."""
    text = (ROOT / "examples/ci/performance.yml").read_text()
    step = text.split(f"      - name: {name}\n")[1].split("\n      - ")[0]
    return textwrap.dedent(step.partition("        run: |\n")[2])


@pytest.mark.long
def test_the_commands_of_the_example_workflow_run(rpl_standin_rocprofv3, tmp_path, monkeypatch):
    """With a stand-in for the profiler: the new version is slower, so the step fails and says why."""
    for side, time in (("old", 151_000), ("new", 165_000)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "app").write_text(f"#!/bin/sh\n# {time}\n")
        (tmp_path / side / "app").chmod(0o755)
    (tmp_path / "scenario.py").write_text(SCENARIO)
    summary = tmp_path / "summary.md"
    environment = {
        **os.environ,
        "RPL_STANDIN_SCENARIO": str(tmp_path / "scenario.py"),
        "RPL_STANDIN_STATE": str(tmp_path / "state"),
        "RPL_ALLOW_SYNTHETIC_GATES": "1",
        "GITHUB_STEP_SUMMARY": str(summary),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def run(step):
        commands = _commands(step).replace(
            "--fail-above 3%", "--fail-above 3% --pairs 12"
        )  # fewer: it is a test
        words = ["bash", "-e", "-c", commands]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)

    done = run("Compare")
    assert done.returncode == 1, done.stderr
    assert "::error title=rpl compare::slower" in done.stderr
    assert summary.read_text().startswith("### rpl compare: slower")
    suite = ET.parse(tmp_path / "performance.xml").getroot()[0]
    assert int(suite.get("failures")) >= 1
    for name in ("comparison.html", "performance.svg"):
        assert (tmp_path / name).stat().st_size
    done = run("Look for hot lines")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "hot-lines.sarif").read_text())["runs"][0]["results"] == []


SCENARIO = """
import sys
from rpl_testkit.synthetic_recording.application_model import (
    Application, KernelModel, Launch, Repeat, SyncStream,
)
old = any("old/app" in word for word in sys.argv)
shape = {"grid": (65536, 1, 1), "workgroup": (256, 1, 1)}
GEMM = KernelModel(name="gemm", symbol="gemm", nominal_ns=151_000 if old else 165_000, **shape)
APPLICATION = Application(name="app", kernels=(GEMM,), streams=1,
    steps=(Repeat(5, (Launch("gemm", 1),)), SyncStream(1)))
"""
