"""The HTML report: one file that needs no network and no script, and is better with its script."""

from __future__ import annotations

from rpl_core.interfaces.section import Renderer, RenderRequest


class HtmlRenderer(Renderer):
    name = "html"
    summary = "one self-contained page with roofline, timeline and what-if, for a browser"
    suffix = ".html"
    wants_timeline = True

    def render(self, request: RenderRequest) -> str:
        # A small analysis asks for text: importing what makes the page took it some 20 ms.
        from rpl_report.html.page import page_environment, page_of

        return page_environment().get_template("page.html.j2").render(page=page_of(request))
