"""The report without a script: complete, self-contained, the same bytes each time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil

import pytest

from rpl_codeobject.kernel_names import source_name
from rpl_testkit.fixtures import Launch

SECTIONS = ("timeline", "path", "what-if", "kernels", "roofline", "evidence", "provenance")


def test_every_section_is_there_and_linked(demo_report, parsed):
    root = parsed(demo_report)
    links = {a.attributes["href"] for nav in root.find_all("nav") for a in nav.find_all("a")}
    for section in SECTIONS:
        assert root.by_id(section).find_all("h2"), section
        assert f"#{section}" in links


def test_links_lead_to_places_on_the_page(demo_report, parsed):
    root = parsed(demo_report)
    ids = [e.attributes["id"] for e in root.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for link in root.find_all("a"):
        href = link.attributes["href"] or ""
        assert href.startswith("#"), "a link that leaves the page"
        assert href[1:] in ids, href


def test_nothing_is_loaded_from_elsewhere(demo_report, parsed):
    root = parsed(demo_report)
    loading = [
        (element.tag, name, value)
        for element in root.all()
        for name, value in element.attributes.items()
        if name in ("src", "srcset", "action", "poster", "data", "xlink:href")
        or (name == "href" and element.tag != "a")
    ]
    assert loading == [("link", "href", "data:,")]
    style = root.find_all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style


def test_policy_allows_the_two_scripts_and_the_style_alone(demo_report, parsed):
    root = parsed(demo_report)
    policy = (
        next(m for m in root.find_all("meta") if "http-equiv" in m.attributes).attributes["content"] or ""
    )
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    code = [s.text for s in root.find_all("script") if s.attributes.get("type") != "application/json"]
    for text in (*code, root.find_all("style")[0].text):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not [e.tag for e in root.all() if "style" in e.attributes], "style attributes would be refused"
    assert not [e.tag for e in root.all() for name in e.attributes if name.startswith("on")]


def test_kernels_and_their_figures_are_in_the_markup(demo_run, demo_report, parsed):
    profile = json.loads((demo_run / "profile.json").read_text())
    rows = parsed(demo_report).by_id("kernel-table").find_all("tbody")[0].find_all("tr")
    assert len(rows) == len(profile["kernels"])
    for row, kernel in zip(rows, sorted(profile["kernels"], key=lambda k: -k["runtime_ms"]), strict=True):
        assert row.text.startswith(source_name(kernel["name"]))
        cells = [cell.attributes["data-key"] for cell in row.find_all("td")]
        assert float(cells[0] or 0) == pytest.approx(1e6 * kernel["runtime_ms"])
        assert float(cells[2] or 0) == kernel["criticality_weight"]
        assert cells[4] == kernel["bottleneck"]


def test_a_table_has_one_unit_of_time_which_its_header_tells(demo_run, demo_report, parsed):
    kernels = json.loads((demo_run / "profile.json").read_text())["kernels"]
    table = parsed(demo_report).by_id("kernel-table")
    heads = [head.text for head in table.find_all("thead")[0].find_all("th")]
    (time,) = (head for head in heads if head.startswith("Time, "))
    unit_ns = {"ms": 1e6, "µs": 1e3, "ns": 1}[time.removeprefix("Time, ")]
    of_name = {source_name(kernel["name"]): kernel for kernel in kernels}
    for row in table.find_all("tbody")[0].find_all("tr"):
        kernel = of_name[row.find_all("th")[0].text]
        cells = dict(zip(heads[1:], (cell.text for cell in row.find_all("td")), strict=True))
        for head, ns in ((time, 1e6 * kernel["runtime_ms"]), ("Median", kernel["median_ns"])):
            (cell,) = (text for title, text in cells.items() if title.startswith(head))
            assert float(cell.replace("\u202f", "")) * unit_ns == pytest.approx(ns, rel=6e-4)
    assert not _mixed_units(parsed(demo_report))


def _mixed_units(root) -> list[set[str]]:
    """Units of time in the cells of the tables that have several."""
    units = [set(re.findall(r"(?<=\d )(?:ns|µs|us|ms|s)\b", body.text)) for body in root.find_all("tbody")]
    return [found for found in units if len(found) > 1]


def test_breakdown_parts_have_the_widths_of_their_times(demo_run, demo_report, parsed):
    dag = json.loads((demo_run / "dag.json").read_text())
    (machine,) = dag["clock_domains"]
    idle = [
        machine["idle"][cause]
        for cause in ("launch_ns", "host_ns", "sync_ns", "copying_ns", "unattributed_ns")
    ]
    device = [machine["kernel_ns"], machine["copy_ns"], *idle]
    bars = parsed(demo_report).by_id("path").find_all("svg", cls="stacked")
    for bar, parts in zip(bars, (device, dag["breakdown"].values()), strict=False):
        widths = [float(rect.attributes["width"] or 0) for rect in bar.find_all("rect")]
        assert widths == pytest.approx([1000 * ns / dag["makespan_ns"] for ns in parts if ns], abs=0.01)
        assert sum(widths) == pytest.approx(1000, abs=0.05)


def test_what_if_bars_are_in_proportion_to_their_gains(demo_run, demo_report, parsed):
    dag = json.loads((demo_run / "dag.json").read_text())
    bars = parsed(demo_report).by_id("what-if").find_all("svg", cls="gain")
    most = max(s["application_gain_ns"] for f in dag["forecasts"] for s in f["speedups"])
    assert len(bars) == len(dag["forecasts"])
    for bar, forecast in zip(bars, dag["forecasts"], strict=True):
        widths = [float(rect.attributes["width"] or 0) for rect in bar.find_all("rect")]
        gains = [100 * s["application_gain_ns"] / most for s in reversed(forecast["speedups"])]
        assert widths == pytest.approx(gains, abs=0.01)


def test_evidence_shows_thresholds_and_their_sources(demo_run, demo_report, parsed):
    analysis = json.loads((demo_run / "analysis.json").read_text())
    text = parsed(demo_report).by_id("evidence").text
    for kernel in analysis["kernels"]:
        assert kernel["reason"] in text
        for rule in kernel["evidence"]:
            for condition in rule["conditions"]:
                assert condition["quantity"] in text
                assert condition["source"][:60] in text


def test_synthetic_origin_is_a_banner_at_the_top(demo_report, parsed):
    header = parsed(demo_report).find_all("header")[0]
    assert header.find_all("p", cls="origin-synthetic")[0].text.startswith("SYNTHETIC")


def test_the_same_run_gives_the_same_bytes(demo_run, demo_report, rpl_cli, tmp_path):
    again = tmp_path / "again.html"
    rpl_cli("report", demo_run, "--format", "html", "-o", again).assert_ok()
    assert again.read_bytes() == demo_report.read_bytes()


def test_documents_alone_make_a_report_that_says_what_is_missing(demo_run, rpl_cli, parsed, tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in ("profile", "roofline", "dag", "analysis"):
        (folder / f"{name}.json").write_bytes((demo_run / f"{name}.json").read_bytes())
    target = tmp_path / "report.html"
    rpl_cli("report", folder, "--format", "html", "-o", target).assert_ok()
    timeline = parsed(target).by_id("timeline")
    assert "name their recording with --recording" in timeline.text
    assert not timeline.find_all("svg")


def test_a_recording_that_is_not_the_documents_is_refused(demo_run, rpl_cli, rpl_make_rocpd, tmp_path):
    other = rpl_make_rocpd([("k", 10, 20)])
    outcome = rpl_cli("report", demo_run, "--format", "html", "--recording", other).assert_exit(65)
    assert "not in the recording" in outcome.stderr or "SHA-256" in outcome.stderr


def test_recording_without_html_is_a_usage_error(demo_run, rpl_cli):
    assert "--recording" in rpl_cli("report", demo_run, "--recording", demo_run).assert_exit(64).stderr


def test_a_timeline_of_other_documents_is_not_shown(demo_run, rpl_cli, parsed, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(demo_run, copy)
    dag = json.loads((copy / "dag.json").read_text())
    dag["critical_path_ns"] += 1
    (copy / "dag.json").write_text(json.dumps(dag))
    target = tmp_path / "report.html"
    rpl_cli("report", copy, "--format", "html", "-o", target).assert_ok()
    assert "does not give the critical path" in parsed(target).by_id("timeline").text


def test_ids_and_classes_hold_no_recorded_text(demo_report, parsed):
    for element in parsed(demo_report).all():
        for name in ("id", "class"):
            assert re.fullmatch(r"[a-zA-Z0-9_ -]*", element.attributes.get(name) or "")


def test_renderer_keeps_its_contract(demo_run, rpl_host):
    from rpl_analysis import plugin
    from rpl_analysis.documents.load import load_documents
    from rpl_core.interfaces.section import RenderRequest
    from rpl_report.html import HtmlRenderer
    from rpl_testkit.contracts import assert_renderer

    known = rpl_host("analysis", plugin).catalog.documents().contributions
    assert_renderer(HtmlRenderer(), RenderRequest(load_documents(demo_run, known).by_name()))


@pytest.mark.data
@pytest.mark.parametrize(
    "recording",
    [
        "rocpd/vllm-mi300x-8gpu-rpd/trace_0.rpd.gz",
        "rocpd/flydsl-gfx1250-v3",
        "rocpd/wave-mi350x-csv",
        "counters_gfx942/vcopy_MI300X_A1_rocpd",
        "rocpd/hipkittens-mi350x-pmc-csv/lds_conflict_counter_collection.csv",
    ],
)
def test_real_recordings_make_a_well_formed_page(recording, rpl_shared_data, rpl_cli, parsed, tmp_path):
    rpl_cli("analyze", rpl_shared_data / recording, "-o", tmp_path / "out").assert_ok()
    target = tmp_path / "report.html"
    words = ("--format", "html", "-o", target)
    dag = json.loads((tmp_path / "out" / "dag.json").read_text())
    if dag["status"] == "available":
        words = (*words, "--recording", rpl_shared_data / recording)
    rpl_cli("report", tmp_path / "out", *words).assert_ok()
    root = parsed(target)
    assert bool(root.by_id("timeline").find_all("svg")) == (dag["status"] == "available")
    assert not _mixed_units(root)
    assert target.stat().st_size < 5_000_000


@pytest.fixture
def gemm_report(report_of):
    """Two generated kernels that differ in their middle only, launched more than a thousand times."""
    names = [f"Cijk_{'a' * 60}_MT{tile}x64x32_{'b' * 60}_WGM8" for tile in (64, 128)]
    return report_of([Launch(names[i % 2], 1000 * i, 1000 * i + 900) for i in range(1, 1202)])


def test_thousands_are_apart_by_a_thin_space(gemm_report, parsed):
    (facts,) = (p for p in parsed(gemm_report).find_all("p") if p.attributes.get("class") == "facts")
    assert "1\N{NARROW NO-BREAK SPACE}201 dispatches of 2 kernels" in facts.text


def test_kernels_that_differ_in_their_middle_read_differently_everywhere(gemm_report, parsed):
    root = parsed(gemm_report)
    for table in ("kernel-table", "what-if"):
        names = [link.text for link in root.by_id(table).find_all("a")]
        assert len(names) == 2
        assert {"MT64x" in name for name in names} == {True, False}, names


def test_diagnostics_are_sentences(gemm_report, parsed):
    (listed,) = (
        ul for ul in parsed(gemm_report).find_all("ul") if ul.attributes.get("class") == "diagnostics"
    )
    for entry in listed.find_all("li"):
        for word in ("Likely cause:", "Next:"):
            before, found, _ = entry.text.partition(word)
            assert not found or before.rstrip().endswith(".")


def test_the_time_of_a_process_is_not_called_kernel_time(rpl_cli, tmp_path):
    rpl_cli("profile", "--no-rocprof", "--runs", "1", "-o", tmp_path / "run", "--", "true").assert_ok()
    page = rpl_cli("report", tmp_path / "run", "--format", "html").assert_ok().stdout
    assert "Process time" in page
    assert "Kernel time" not in page
    assert "0 dispatches" not in page


def test_kernels_come_before_the_path_and_hashes_are_folded(demo_report, parsed):
    text = demo_report.read_text(encoding="utf-8")
    order = ("kernels", "speed-of-light", "roofline", "timeline", "path")
    places = [text.index(f'<section id="{name}"') for name in order]
    assert places == sorted(places)
    folded = parsed(demo_report).by_id("provenance").find_all("details")
    assert any("hashes" in part.find_all("summary")[0].text and part.find_all("table") for part in folded)


def test_the_head_tells_two_reports_of_one_device_apart(demo_run, rpl_cli, parsed, tmp_path):
    manifest = json.loads((demo_run / "run.json").read_text())
    run = tmp_path / "run"
    shutil.copytree(demo_run, run)
    changed = {**manifest, "command": ["/opt/app <b>", "--size", "two words\x1b[31m"]}
    (run / "run.json").write_text(json.dumps(changed))
    rpl_cli("report", run, "--format", "html", "-o", tmp_path / "run.html").assert_ok()
    page = parsed(tmp_path / "run.html")
    (title,) = page.find_all("h1")
    assert title.text == "app <b> on AMD Instinct MI300X"
    facts = [fact.text for fact in page.find_all("span")[:2]]
    assert facts[0] == "command: '/opt/app <b>' --size 'two words\\x1b[31m'"
    assert facts[1] == f"recorded {manifest['created_utc']} by {manifest['collector']} on synthetic-node"
    shown = rpl_cli("report", run).assert_ok().stdout.split("\n\n")[1].splitlines()
    assert shown[0] == f"command     {facts[0].partition(': ')[2]}"
    assert (
        shown[1]
        == f"run         recorded {manifest['created_utc']} by {manifest['collector']}, on synthetic-node"
    )
    (run / "run.json").unlink()
    rpl_cli("report", run, "--format", "html", "-o", tmp_path / "alone.html").assert_ok()
    alone = parsed(tmp_path / "alone.html").find_all("h1")[0].text
    assert alone.endswith(" more on AMD Instinct MI300X")
    assert "app <b>" not in alone


def test_reports_of_several_recordings_name_their_folder(rpl_make_rocpd, rpl_cli, parsed, tmp_path):
    files = [rpl_make_rocpd([("kernel", 0, 1000)], name=f"{pid}_results.db", pid=pid) for pid in (1, 2)]
    rpl_cli("analyze", tmp_path, "-o", tmp_path / "run").assert_ok()
    for file in files:  # they name a command, which would be the title
        file.unlink()
    rpl_cli("report", tmp_path / "run", "--format", "html", "-o", tmp_path / "run.html").assert_ok()
    (title,) = parsed(tmp_path / "run.html").find_all("h1")
    assert title.text.startswith(f"2 files of {tmp_path.name} on ")


def test_each_finding_says_what_to_do_next_and_what_would_confirm_it(demo_run, demo_report, parsed):
    (overview,) = parsed(demo_report).find_all("ol", cls="findings")
    texts = [item.text for item in overview.find_all("li")]
    analysis = json.loads((demo_run / "analysis.json").read_text())
    first = analysis["next_steps"][0]["steps"][0]
    assert f"Next: {first['text']}" in texts[0]
    assert f"{first['confirm'][0]['quantity']} {first['confirm'][0]['value']:,.0f} B" in texts[0]
    copies = next(entry for entry in analysis["next_steps"] if entry["subject"] == "copies")
    (about_copies,) = [text for text in texts if text.startswith("Copies")]
    assert copies["steps"][0]["text"] in about_copies
    assert not any("Next:" in text for text in texts if text.startswith("Much time"))


def test_units_of_a_kernel_stand_beside_their_ceilings_with_their_exactness(demo_run, demo_report, parsed):
    document = json.loads((demo_run / "roofline.json").read_text())
    kernel = next(entry for entry in document["kernels"] if entry["name"].startswith("stream_triad"))
    level = next(entry for entry in kernel["levels"] if entry["level"] == "hbm")
    drawn = parsed(demo_report).by_id("speed-of-light").find_all("details")[0]
    (memory,) = drawn.find_all("div", cls="box-hbm")
    share = level["achieved_gbps"]["value"] / level["spec_gbps"]
    assert f"{100 * share:.1f} %" in memory.text
    assert float(memory.find_all("rect")[0].attributes["width"] or 0) == pytest.approx(100 * share, abs=0.01)
    assert "exact" in memory.text
    (cache,) = drawn.find_all("div", cls="box-vl1d")
    assert "≈ 66.7 %" in cache.text
    assert "estimate" in cache.text
    (lds,) = drawn.find_all("div", cls="box-lds")
    assert "not used" in lds.text


def test_a_kernel_without_operations_stands_on_an_axis_of_bandwidth(demo_report, parsed):
    plots = parsed(demo_report).by_id("roofline").find_all("svg", cls="plot")
    names = [[link.attributes["aria-label"] or "" for link in plot.find_all("a")] for plot in plots]
    assert [any(name.startswith("list_rank") for name in each) for each in names] == [False, True]
    assert all(name.startswith("list_rank") for name in names[1])


@pytest.mark.data
def test_what_was_not_recorded_is_unknown_with_its_reason(rpl_shared_data, rpl_cli, parsed, tmp_path):
    folder = rpl_shared_data / "counters_gfx942" / "ipblocks_TCC_MI300A_A1"
    rpl_cli("analyze", folder, "-o", tmp_path / "out").assert_ok()
    rpl_cli("report", tmp_path / "out", "--format", "html", "-o", tmp_path / "page.html").assert_ok()
    picture = parsed(tmp_path / "page.html").by_id("speed-of-light")
    (lds,) = picture.find_all("div", cls="box-lds")
    assert "unknown" in lds.text
    assert "SQ_" in lds.text


@pytest.mark.data
def test_without_a_critical_path_kernels_have_their_next_step_by_time(
    rpl_shared_data, rpl_cli, parsed, tmp_path
):
    folder = rpl_shared_data / "counters_gfx942" / "vcopy_MI300X_A1_rocpd"
    text = rpl_cli("analyze", folder, "-o", tmp_path / "out").assert_ok().stdout
    step = "See with a thread trace which instruction is waited for"
    first = " ".join(text.split("\n\n")[0].split())
    assert first.startswith(
        "1. vecCopy: 100.0% of kernel time. What a faster one brings the run is unknown: only "
    )
    assert "Why: latency bound, medium confidence: dependency_wait_fraction 69.5%" in first
    assert f"Next: {step}" in first
    rpl_cli("report", tmp_path / "out", "--format", "html", "-o", tmp_path / "page.html").assert_ok()
    (found,) = parsed(tmp_path / "page.html").find_all("ol", cls="findings")
    assert step in found.text
    assert "rpl profile --deep-analysis" in found.text


def test_a_device_whose_name_is_its_architecture_is_called_by_its_product(demo_run, rpl_cli, tmp_path):
    """As the emulated one is; an architecture of several products has no product to name."""
    run = shutil.copytree(demo_run, tmp_path / "run")
    profile = json.loads((run / "profile.json").read_text())
    for product, called in (
        ("A PRODUCT (emulated)", "A PRODUCT (emulated)"),
        ("one of a, b", "a gfx942 GPU"),
    ):
        profile["gpu"] |= {"product": product, "architecture": "gfx942"}
        profile["provenance"]["device"] = "gfx942"
        (run / "profile.json").write_text(json.dumps(profile))
        rpl_cli("report", run, "--format", "html", "-o", tmp_path / "page.html").assert_ok()
        assert f"on {called} - rpl report</title>" in (tmp_path / "page.html").read_text()
