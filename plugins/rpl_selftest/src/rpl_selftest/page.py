"""The self-test as a page for a browser: one file, no script, nothing from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpl_selftest.contract import SelftestDocument


def html_page(document: SelftestDocument) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rpl_selftest", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("page.html.j2")
    return template.render(document=document, summary=summary(document), label=document.label)


def summary(document: SelftestDocument) -> str:
    """One line; what the outcomes are about stands in it."""
    return (
        f"{document.confirmed} confirmed, {document.refuted} refuted, {document.not_possible} not possible "
        f"({document.about})"
    )
