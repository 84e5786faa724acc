"""The verdict: the same sentences in the text and on the page, in at most ten lines, and all of them true."""

from __future__ import annotations

import json
import re

import attrs
import pytest

from rpl_core.interfaces.section import Claim
from rpl_report.text import verdict_text
from rpl_report.verdict import Entry, Verdict

_LONG = Entry(
    "a_kernel_with_a_long_name: 61.2% of kernel time and of the critical path.",
    "In half its time the run takes 1.2 ms less (30.6%); at no cost the run would be 2.580x as fast.",
    "Why: latency bound, high confidence: dependency_wait_fraction 72.3%, hbm_utilization 12.4%.",
    step="See with a thread trace which instruction is waited for. Then put work between it and its use.",
    command="rpl profile --deep-analysis -- COMMAND",
)


def _sentences(text):
    return " ".join(text.split())


@pytest.mark.parametrize("entries", [1, 2, 3, 7])
@pytest.mark.parametrize("width", [60, 80, 140])
def test_ten_lines_hold_whole_sentences(entries, width):
    told = Verdict(
        tuple(attrs.evolve(_LONG, subject=str(i)) for i in range(entries)), "A caution.", "Basis: x."
    )
    text = verdict_text(told, width)
    lines = text.splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= min(width, 80)
    assert (lines[0], lines[-1]) == ("A caution.", "Basis: x.")
    # The first subject keeps its figures and its command; what is left out is left out in whole sentences.
    said = _sentences(text)
    assert _LONG.head in said
    assert f"Run: {_LONG.command}" in said
    known = " ".join((_LONG.head, _LONG.brings, _LONG.why, f"Next: {_LONG.step}", f"Run: {_LONG.command}"))
    for sentence in re.split(
        r"(?<=[.]) (?=[A-Z])", said.removeprefix("A caution. ").removesuffix(" Basis: x.")
    ):
        assert re.sub(r"^\d\. ", "", sentence) in known or re.match(r"\d\.$", sentence), sentence


@pytest.fixture
def verdicts(rpl_cli, tmp_path):
    """``verdicts(recording, *words)``: the beginning of the text, and that of the page as text."""

    def told(*words):
        from html.parser import HTMLParser

        class _Findings(HTMLParser):
            inside, text = 0, ""

            def handle_starttag(self, tag, attributes):
                self.inside += (tag, ("class", "findings")) == ("ol", dict(attributes) and attributes[0])

            def handle_endtag(self, tag):
                self.inside -= tag == "ol" and self.inside

            def handle_data(self, data):
                self.text += f" {data}" if self.inside else ""

        text = rpl_cli("analyze", *words, "-o", tmp_path / "run").assert_ok().stdout
        page = rpl_cli("report", "--format", "html", tmp_path / "run").assert_ok().stdout
        found = _Findings()
        found.feed(page)
        return text.split("\n\n")[0], _sentences(found.text)

    return told


def test_the_page_numbers_what_the_text_begins_with(rpl_make_rocpd, verdicts):
    rows = [("gemm", 0, 60_000), ("copy_rows", 61_000, 81_000), ("last", 82_000, 90_000)]
    text, page = verdicts(rpl_make_rocpd(rows))
    assert text.startswith("Synthetic: written by a test or a demonstration, no measurement.\n1. gemm: ")
    sentences = re.split(r"(?<=[.]) (?=[A-Z])", _sentences(text))
    for sentence in (re.sub(r"^\d\. ", "", one) for one in sentences[1:-1]):
        short = re.sub(r"[0-9.,]+ (?:ns|us|ms)", "", sentence)  # the page has a unit of its own
        assert set(short.split()) <= set(page.split()) | {"1.", "2.", "3."}, sentence


def test_an_idle_gpu_is_the_first_line_and_no_kernel_pretends(rpl_make_rocpd, verdicts):
    text, page = verdicts(rpl_make_rocpd([("a", 0, 1000), ("b", 999_000, 1_000_000)]))
    first = _sentences(text).partition("no measurement. ")[2]
    assert first.startswith("1. No kernel runs for 99.8% of the run: 0.998 ms of 1 ms. ")
    assert "no kernel alone brings 0.5%" in first
    assert "1.000x" not in text
    assert "1.001x" not in text
    assert "no kernel alone brings 0.5%" in page


def test_a_gpu_is_called_idle_only_where_copies_would_be_known(rpl_cli, tmp_path):
    """A recording with copies tells that none ran; one without any does not."""
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.documents import dag_document
    from rpl_analysis.execution_graph.build import execution_graph
    from rpl_report.verdict import _idle
    from rpl_testkit.programs import RecordedProgram

    def said(*, copies):
        program = RecordedProgram()
        program.launch("a", 0, 10, stream=1)
        if copies:
            program.copy("MEMORY_COPY_HOST_TO_DEVICE", 10, 12, stream=1)
        program.launch("b", 90, 100, stream=1)
        document = dag_document(execution_graph(program.trace(), 0, include_copies=True))
        return _idle(DagDocument.model_validate(document))[1].head

    assert said(copies=True) == "The GPU is idle for 78.0% of the run: 78 us of 100 us."
    assert said(copies=False) == "No kernel runs for 80.0% of the run: 80 us of 100 us."


def test_unrecorded_work_is_no_idle_gpu(rpl_cli, tmp_path):
    """Work that starts 493 ms after its launch had returned waited for what began before the recording."""
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.documents import dag_document
    from rpl_analysis.execution_graph.build import execution_graph
    from rpl_report.verdict import _idle
    from rpl_testkit.programs import RecordedProgram

    program = RecordedProgram()
    program.launch("a", 0, 10, stream=1)
    program.launch("b", 493_000, 493_100, stream=1, at_us=50)
    program.copy("MEMORY_COPY_HOST_TO_DEVICE", 493_100, 493_102, stream=1)
    document = dag_document(execution_graph(program.trace(), 0, include_copies=True))
    entry = _idle(DagDocument.model_validate(document))[1]
    assert entry.head.startswith("No recorded work runs for 100.0% of the run: ")
    assert "cause not recorded 100.0%" in entry.why
    assert "launch latency" not in entry.why


def test_a_collective_of_one_rank_asks_for_the_others_and_an_outlier_is_named(rpl_make_rocpd, verdicts):
    rows = [("ncclDevKernel_Generic", 0, 1000), ("ncclDevKernel_Generic", 1000, 2000)]
    text, page = verdicts(rpl_make_rocpd([*rows, ("ncclDevKernel_Generic", 2000, 9000), ("k", 9000, 9100)]))
    assert "Next: Record the other ranks, too" in _sentences(text)
    assert "Run: rpl analyze --ranks RECORDING RECORDING" in _sentences(text)
    assert "One launch takes 7 us, 7.0 times the median." in _sentences(text)
    assert "One launch takes 7 us, 7.0 times the median." in page


def test_a_thread_trace_that_gives_nothing_says_why(rpl_cli, tmp_path):
    (tmp_path / "att").mkdir()
    (tmp_path / "att" / "a_kernel.txt").write_text("a kernel\n")
    (tmp_path / "att" / "a_v0_se0.att").write_bytes(b"\0" * 64)
    said = _sentences(rpl_cli("analyze", tmp_path / "att").assert_ok().stdout.split("\n\n")[0])
    assert said.startswith("1. No kernel is timed, so no gain is known. The thread trace gives nothing: ")


def test_a_label_of_a_plugin_says_whose_it_is():
    from rpl_report.verdict import _words

    assert _words("transforms:lds_bank_conflicts") == "lds bank conflicts (by transforms)"
    assert _words("latency_bound") == "latency bound"


def test_ranks_say_which_collective_who_waits_and_who_comes_last(rpl_cli, tmp_path):
    """Two ranks, three all-reduces: rank 1 arrives last in two of three, rank 0 waits longest."""
    columns = "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id"
    head = f"{columns},Start_Timestamp,End_Timestamp"
    begins = {0: (1000, 5000, 9900), 1: (2000, 6000, 9000)}
    for rank, starts in begins.items():
        rows = [head]
        for number, start in enumerate(starts, 1):
            place = (
                f"KERNEL_DISPATCH,Agent {rank + 1},1,1,1,{number},1,ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            )
            rows.append(f"{place},{number},{start},{max(b[number - 1] for b in begins.values()) + 500}")
            own = f"KERNEL_DISPATCH,Agent {rank + 1},1,1,1,{number + 9},2,work,{number + 9}"
            rows.append(f"{own},{start - 900},{start}")
        (tmp_path / f"{rank + 1}_kernel_trace.csv").write_text("\n".join(rows) + "\n")
    files = sorted(tmp_path.glob("*_kernel_trace.csv"))
    text = rpl_cli("analyze", "--ranks", *files, "-o", tmp_path / "run").assert_ok().stdout
    said = _sentences(text.split("\n\n")[0])
    ranks = json.loads((tmp_path / "run" / "profile.json").read_text())["ranks"]
    last = {rank["rank"]: rank["last_arrivals"] for rank in ranks["ranks"]}
    waits = {rank["rank"]: rank["wait_ns"] for rank in ranks["ranks"]}
    total, spent = (sum(rank[key] for rank in ranks["ranks"]) for key in ("kernel_ns", "collective_ns"))
    assert f"2 ranks: collectives take {spent / total:.1%} of their kernel time" in said
    assert max(last.values()) > min(last.values())
    often = max(last, key=lambda rank: last[rank])
    assert f"rank {often} comes last most often ({last[often]} of 3 times)" in said
    assert f"Rank {max(waits, key=lambda rank: waits[rank])} waits longest" in said


def test_a_modelled_run_says_so_first(rpl_make_rocpd, rpl_cli, rpl_host, tmp_path):
    from rpl_analysis.documents.load import load_documents
    from rpl_core.interfaces.section import RenderRequest
    from rpl_report.text import TextRenderer

    rpl_cli("analyze", rpl_make_rocpd([("a", 0, 1000)]), "-o", tmp_path / "run").assert_ok()
    documents = load_documents(tmp_path / "run", rpl_host("analysis").catalog.documents().contributions)
    held = dict(documents.by_name())
    provenance = held["profile"].provenance.model_copy(update={"origin": "modelled"})
    held["profile"] = held["profile"].model_copy(update={"provenance": provenance})
    text = TextRenderer().render(RenderRequest(held))
    first = text.split("\n\n")[0].splitlines()
    assert _sentences(" ".join(first[:2])).startswith(
        "Modelled: computed by an emulator or a formula, not measured"
    )
    held["profile"] = held["profile"].model_copy(
        update={"provenance": provenance.model_copy(update={"origin": "measured"})}
    )
    assert TextRenderer().render(RenderRequest(held)).startswith("1. a: ")


def test_without_a_kernel_nothing_is_promised(rpl_cli, tmp_path):
    words = ("profile", "--no-rocprof", "--runs", "1", "-o", tmp_path / "run", "--", "true")
    said = _sentences(rpl_cli(*words).assert_ok().stdout.split("\n\n")[0])
    assert said.startswith("1. No critical path: ")
    assert "The process took" in said
    assert "as fast" not in said
    assert "Run: rpl profile -- COMMAND" in said


PLUGIN = """
from rpl_core import hookimpl
from rpl_core.interfaces.section import Claim, Place, ReportSection

RPL_API = 2

class Traced(ReportSection):
    name, summary, title = "traced", "a claim", "Traced"
    def blocks(self, request):
        return ()
    def claims(self, request):
        place = Place("src/a <b>#?%20.hip", 7, "91.0% of wave time\\x1b[31m")
        rest = Claim("Another kernel waits.", "It waits.", "Stop it.")
        why = "Why: it waits for line 7."
        return (Claim("Head", why, "Ask earlier.", "rpl att show RUN", "gemm", (place,)), rest)

class Breaks(Traced):
    name = "breaks"
    def claims(self, request):
        raise ZeroDivisionError

@hookimpl
def rpl_report_sections():
    return (Traced(), Breaks())
"""


def test_what_a_plugin_found_stands_in_the_kernels_entry_and_in_sarif(
    rpl_make_rocpd, rpl_cli, tmp_path, monkeypatch
):
    (tmp_path / "claims_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin = ("-p", "claims_plugin")
    recording = rpl_make_rocpd([("gemm", 0, 9000), ("tail", 9000, 10_000)])
    text = rpl_cli(*plugin, "analyze", recording, "-o", tmp_path / "run").assert_ok().stdout
    said = _sentences(text.split("\n\n")[0])
    assert "Why: it waits for line 7. Next: Ask earlier. Run: rpl att show RUN" in said
    shown = rpl_cli(*plugin, "report", "--format", "sarif", tmp_path / "run").assert_ok().json()
    (run,) = shown["runs"]
    assert (shown["version"], run["properties"]["origin"]) == ("2.1.0", "synthetic")
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "src/a%20%3Cb%3E%23%3F%2520.hip"
    assert place["region"] == {"startLine": 7}
    assert result["message"]["text"] == "91.0% of wave time\\x1b[31m"
    assert result["ruleId"] == run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]


def test_claims_need_no_kernel():
    claim = Claim("head", "text", "step")
    assert (claim.command, claim.kernel, claim.places) == ("", None, ())
