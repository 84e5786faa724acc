"""The contract of a renderer: the same documents give the same text, without raw terminal escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from rpl_core.interfaces.renderer import Renderer, RenderRequest


def assert_renderer(renderer: Renderer, request: RenderRequest) -> None:
    """Check the output for ``request``; put hostile kernel names into its documents."""
    subject = demand_kind("rpl_renderers", renderer)
    demand(renderer.suffix.startswith("."), subject, "suffix begins with a dot")
    text = renderer.render(request)
    demand(isinstance(text, str), subject, "render() returns text")
    demand(bool(text.strip()), subject, "the output is empty")
    demand("\x1b" not in text, subject, "a name in the documents reached the output as a terminal escape")
    demand(renderer.render(request) == text, subject, "the same documents give two different outputs")
