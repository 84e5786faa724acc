"""The section on thread traces in the reports."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from rpl_att.report import ThreadTraceSection
from rpl_core.interfaces.section import Paragraph, SectionRequest, Table


@pytest.fixture
def report(rpl_cli, tmp_path):
    def render(folder) -> str:
        rpl_cli("analyze", folder, "-o", tmp_path / "out").assert_ok()
        return rpl_cli("report", tmp_path / "out", "--format", "html").assert_ok().stdout

    return render


def test_instructions_states_occupancy_and_split_are_shown(report, att_folder):
    page = report(att_folder("wave_gemm"))
    section = page.split('<section id="thread-traces"')[1].split("</section>")[0]
    assert "gemm_prefetch" in section
    assert "memory wait <b>24.1" in section
    for title in (
        "Waves of the traced CU by state, stacked",
        "waves at most",
        "Waves of a shader engine",
        "Hottest instructions",
    ):
        assert title in section
    assert "line 135 buffer_load_dword v13" in section
    assert {"occupancy SE0", "occupancy SE22"} == set(re.findall(r"occupancy SE\d+", section))


def test_a_trace_alone_names_its_kernel_and_shows_no_empty_sections(report, att_folder):
    page = report(att_folder("wave_gemm"))
    assert "<title>Thread trace of gemm_prefetch on a gfx950 GPU" in page
    assert not re.search(r'id="(timeline|path|what-if|kernels|roofline)"', page)
    anchors = re.findall(r'href="#([^"]+)"', page)
    assert "thread-traces" in anchors
    for anchor in anchors:
        assert f'id="{anchor}"' in page
    # 16 waves were traced: the states of a moment add up to no more.
    assert "16 waves at most" in page


@pytest.mark.data
def test_a_traced_kernel_has_its_short_name_and_the_family_of_several_products(
    rpl_shared_data, rpl_cli, tmp_path
):
    folder = rpl_shared_data / "att" / "gfx942_flashmla_rocprofv2"
    ran = rpl_cli("analyze", folder, "--device", "gfx942", "-o", tmp_path).assert_ok()
    assert "thread trace  flash_fwd_splitkv_mla_kernel" in ran.stdout
    page = rpl_cli("report", tmp_path, "--format", "html").assert_ok().stdout
    assert re.search("<title>Thread trace of flash_fwd_splitkv_mla_kernel[^ ]* on a gfx942 GPU ", page)
    assert "_Z28flash" not in page.split("</h4>")[0]


def test_states_have_axes_and_the_colours_of_their_legend(report, att_folder):
    section = report(att_folder("wave_gemm")).split('<section id="thread-traces"')[1]
    chart = section.split("by state, stacked, over time</h4>")[1].split("<h4>")[0]
    drawing, legend = chart.split("</svg>")
    drawn = re.findall(r'<path class="(w\d)".*?<title>(waves \w+),', drawing)
    assert drawn == re.findall(r'<span class="swatch (w\d)"></span>(waves \w+)', legend)
    assert len({colour for colour, _ in drawn}) == len(drawn) == 4
    ticks = re.findall(r'<text class="y"[^>]*y="([\d.]+)">(\d+)<', drawing)
    assert [label for _, label in ticks] == ["0", "4", "8", "12", "16"]
    # 16 waves at most: the stack reaches the highest tick and goes no further.
    heights = [float(y) for y in re.findall(r"V([\d.]+)", drawing.split("</g>")[1])]
    assert min(heights) == pytest.approx(float(ticks[-1][0]) - 4, abs=0.1)
    assert "shader clocks" in drawing


def test_the_parts_of_the_bar_add_up_to_the_whole(report, att_folder):
    section = report(att_folder("aiter")).split('<section id="thread-traces"')[1].split("</section>")[0]
    bar = section.split('aria-label="Where wave time went"')[1].split("</svg>")[0]
    widths = [float(width) for width in re.findall(r'width="([\d.]+)"', bar)]
    assert sum(widths) == pytest.approx(1000, abs=0.5)


def test_an_empty_trace_shows_its_reason_and_no_figures(report, att_folder):
    section = report(att_folder("empty")).split('<section id="thread-traces"')[1].split("</section>")[0]
    assert "no instruction was traced" in section
    assert "Where wave time went" not in section


def test_names_from_a_trace_are_escaped(report, trace_folder):
    row = ("v_nop <script>alert(1)</script>", 0, 1, 4, 0, 0, "<img src=x>:1")
    trace_folder.code(("; <b>k</b>", 0, 0, 0, 0, 0), row).wave([[0, 6, 0, 4, 1]], 0, 4)
    section = report(trace_folder.path).split('<section id="thread-traces"')[1].split("</section>")[0]
    assert "<script>alert" not in section
    assert "<img" not in section
    assert "&lt;b&gt;k" in section


def test_one_kernel_is_explained_with_its_places_and_waits(att_of):
    part = att_of("wave_gemm").model_copy(update={"kernel": "gemm"})
    profile = SimpleNamespace(kernels=(), untimed_thread_traces=(part.model_dump(mode="json"),))
    section, request = ThreadTraceSection(), SectionRequest({"profile": profile})
    blocks = section.explain(request, "gemm")
    told = " ".join(block.text for block in blocks if isinstance(block, Paragraph))
    tables = {block.columns[1]: block.rows for block in blocks if isinstance(block, Table)}
    for text in ("issue 18.4%", "vmcnt 16.7%", "718 cycles per load", "(measured)", "no line tables"):
        assert text in told
    assert tables["wait"][0] == (
        "9.7%",
        "s_waitcnt vmcnt(0)",
        "line 135: buffer_load_dword v13, s[4:7], 0 offen lds",
    )
    assert tables["wait"][1][:2] == ("", "")
    assert len(tables["instruction"]) == 12
    assert tables["instruction"][1] == ("7.4%", "s_barrier", "-")
    assert section.explain(request, "another") == ()


def test_source_stands_beside_its_instructions_with_the_step_on_the_hottest(report, trace_folder):
    """Two lines of source, one with its text: each has its own instructions, the hotter first."""
    trace_folder.file("snapshots.json", {"/": {"src": {"a.cpp": "source_0_a.cpp"}}})
    (trace_folder.path / "source_0_a.cpp").write_text("first\nfloat x = data[i];  // <b>load</b>\n")
    rows = (
        ("global_load_dword v1, v[2:3], off", 0, 1, 4, 0, 0, "/src/a.cpp:2"),
        ("s_waitcnt vmcnt(0)", 0, 2, 80, 0, 0, "/src/a.cpp:2"),
        ("v_add_f32 v1, v1, v1", 0, 3, 4, 0, 0, "/src/b.cpp:9"),
    )
    trace_folder.code(("; k", 0, 0, 0, 0, 0), *rows).wave(
        [[0, 1, 0, 4, 1], [4, 5, 76, 80, 2], [84, 2, 0, 4, 3]], 0, 90
    )
    section = report(trace_folder.path).split('<section id="thread-traces"')[1].split("</section>")[0]
    beside = section.split("Source beside instructions</h4>")[1].split("<h4>")[0]
    first, second = beside.split('<div class="beside">')[1:]
    assert "/src/a.cpp:2" in first
    assert "float x = data[i];  // &lt;b&gt;load&lt;/b&gt;" in first
    assert first.index("s_waitcnt") < first.index("global_load_dword")
    assert "Next: " in first.partition("global_load_dword v1")[0]
    assert "/src/b.cpp:9" in second
    assert "<pre>" not in second  # no copy of that file was kept
    assert "s_waitcnt" not in second


def test_without_line_tables_the_page_says_why_there_is_no_source(report, att_folder):
    section = report(att_folder("wave_gemm")).split('<section id="thread-traces"')[1].split("</section>")[0]
    assert "Source beside instructions" not in section
    assert "the program has no line tables. Build it with -g" in section
    heats = [float(width) for width in re.findall(r'<svg class="heat"[^>]*><rect width="([\d.]+)"', section)]
    assert max(heats) == 100
    assert min(heats) > 0
    steps = re.findall(r"Next: ([^<]+)<", section)
    assert len(steps) == len(set(steps)) >= 2
