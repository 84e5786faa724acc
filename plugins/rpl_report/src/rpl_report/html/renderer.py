"""The renderer ``html``: documents and timeline in, one self-contained page out."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rpl_core.interfaces.renderer import Renderer, RenderRequest

if TYPE_CHECKING:
    from jinja2 import Environment


class HtmlRenderer(Renderer):
    name = "html"
    summary = "one self-contained page with roofline, timeline and what-if, for a browser"
    suffix = ".html"
    wants_timeline = True

    def render(self, request: RenderRequest) -> str:
        from rpl_report.html.page import page_of

        return page_environment().get_template("page.html.j2").render(page=page_of(request))


@cache
def page_environment(package: str | None = None) -> Environment:
    """Templates of ``package`` and those of this page, which they may include.

    Every value is escaped; a name that a template misspells is an error.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    from rpl_core.text.safety import readable
    from rpl_report.html import figures
    from rpl_report.html.kernel_identity import label_text
    from rpl_report.html.path_view import dependency_name

    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader(each, "templates") for each in (package, "rpl_report.html") if each]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({name: getattr(figures, name) for name in figures.__all__})
    environment.filters |= {"readable": readable, "label": label_text, "dependency": dependency_name}
    environment.filters["px"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
    return environment
