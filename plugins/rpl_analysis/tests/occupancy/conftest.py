"""The architectures that this project's plugins describe."""

from __future__ import annotations

import pytest

import rpl_gfx90a.plugin
import rpl_gfx942.plugin
import rpl_gfx950.plugin
import rpl_gfx1030.plugin
import rpl_gfx1100.plugin
from rpl_core.model.device import Architecture

_PLUGINS = (
    rpl_gfx90a.plugin,
    rpl_gfx942.plugin,
    rpl_gfx950.plugin,
    rpl_gfx1030.plugin,
    rpl_gfx1100.plugin,
)
KNOWN = {
    model.architecture: model.architecture_facts
    for plugin in _PLUGINS
    for model in plugin.rpl_device_models()
}


@pytest.fixture(params=sorted(KNOWN))
def architecture(request: pytest.FixtureRequest) -> Architecture:
    """Each architecture in turn."""
    return KNOWN[request.param]


@pytest.fixture(scope="session")
def architectures() -> dict[str, Architecture]:
    """All of them, by name."""
    return KNOWN
