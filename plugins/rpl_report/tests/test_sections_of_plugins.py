"""Sections of a stranger's plugin in the text report, the HTML report and ``rpl explain``."""

from __future__ import annotations

import pytest

PLUGIN = """
from rpl_core import hookimpl
from rpl_core.interfaces.section import Paragraph, ReportSection, Table

RPL_API = 2

class Caches(ReportSection):
    name, summary, title = "caches", "What caches did.", "Caches of <all> kernels"
    def blocks(self, request):
        kernels = request.documents["profile"].kernels
        rows = tuple((kernel.name, f"{kernel.launches:g}") for kernel in kernels)
        text = "Evil \\x1b[31m <b>text</b>, " + "long " * 40
        return (Paragraph(text), Table(("kernel", "n"), rows, ("n",)))
    def explain(self, request, kernel):
        return (Paragraph(f"{kernel} likes caches."),)

class Own(Caches):
    name, title = "own", "Never shown"
    def text(self, request):
        return f"drawn by hand, {request.width} wide"
    def html(self, request):
        return f"<section id='own'>{sorted(request.anchors.items())[0][1]}</section>"

class Silent(Caches):
    name, title = "silent", "Silent"
    def blocks(self, request):
        return ()
    def explain(self, request, kernel):
        return ()

class Raises(Caches):
    name, title = "raises", "Raises"
    def blocks(self, request):
        raise ZeroDivisionError("bad luck")
    def explain(self, request, kernel):
        raise ZeroDivisionError("bad luck")

class Wrong(Caches):
    name, title = "wrong", "Wrong"
    def blocks(self, request):
        return (Table(("a", "b"), (("only one",),)),)
    def explain(self, request, kernel):
        return "text"

@hookimpl
def rpl_report_sections():
    return (Caches(), Own(), Silent(), Raises(), Wrong())
"""

FAILURES = ("plugin 'sections_plugin' failed in the section 'raises': ZeroDivisionError: bad luck", "'wrong'")


@pytest.fixture
def told(tmp_path, monkeypatch, rpl_make_rocpd, rpl_cli):
    """``told("report", ...)``: what a command prints about a recording with the plugin there."""
    (tmp_path / "sections_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    run = tmp_path / "out"
    rpl_cli("analyze", rpl_make_rocpd([("copy<int>", 1000, 3000)]), "-o", run).assert_ok()

    def tell(command, *words):
        place = ("--run", run) if command == "explain" else (run,)
        return rpl_cli("-p", "sections_plugin", command, *place, *words).assert_ok().stdout

    return tell


def test_text_shows_blocks_own_lines_and_what_failed(told):
    text = told("report")
    table, section = text.index("bottleneck"), text.index("Caches of <all> kernels")
    assert table < section
    assert "Evil \\x1b[31m <b>text</b>, long" in text
    assert "kernel     n\ncopy<int>  1\n" in text
    assert "\n\ndrawn by hand, 100 wide\n\n" in text
    assert "Never shown" not in text
    assert "Silent" not in text
    assert "Wrong: not shown:" in text
    assert all(line in " ".join(text.split()) for line in FAILURES)
    assert max(map(len, text.splitlines())) <= 100


def test_html_escapes_blocks_and_inserts_what_a_plugin_draws(told):
    page = told("report", "--format", "html")
    assert '<h2 id="section-caches-title">Caches of &lt;all&gt; kernels</h2>' in page
    assert "Evil \\x1b[31m &lt;b&gt;text&lt;/b&gt;, long" in page
    assert '<td class="">copy&lt;int&gt;</td><td class="n">1</td>' in page
    assert "<section id='own'>kernel-1</section>" in page
    assert "section-silent" not in page
    assert "ZeroDivisionError: bad luck" in page


def test_explain_shows_what_sections_say_of_the_kernel(told):
    text = told("explain")
    assert "\n\nCaches of <all> kernels\ncopy<int> likes caches.\n" in text
    assert "Silent" not in text
    assert all(line in " ".join(text.split()) for line in FAILURES)


def test_labels_of_plugins_stay_as_they_are():
    from rpl_report.html.figures import label_text

    assert label_text("memory_bandwidth_bound") == "memory bandwidth bound"
    assert label_text("my_plugin:too_many_<b>") == "my_plugin:too_many_<b>"


def test_reports_without_some_documents_say_which(rpl_make_rocpd, rpl_cli, tmp_path):
    from rpl_core.errors import MissingError
    from rpl_core.interfaces.section import RenderRequest
    from rpl_report.html import HtmlRenderer
    from rpl_report.text import TextRenderer

    rpl_cli("analyze", rpl_make_rocpd([("copy", 1000, 3000)]), "-o", tmp_path / "out").assert_ok()
    from rpl_analysis.contracts.profile import ProfileDocument

    profile = ProfileDocument.model_validate_json((tmp_path / "out" / "profile.json").read_bytes())
    text = TextRenderer().render(RenderRequest({"profile": profile}))
    assert "critical path  unknown: there is no dag.json" in text
    assert "there is no roofline.json" in text
    assert "run is unknown: there is no dag.json." in HtmlRenderer().render(
        RenderRequest({"profile": profile})
    )
    with pytest.raises(MissingError, match=r"there is no profile\.json"):
        TextRenderer().render(RenderRequest({}))
