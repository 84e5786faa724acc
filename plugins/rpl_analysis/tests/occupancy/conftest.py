"""The architectures that this project's plugins describe."""

from __future__ import annotations

import pytest

from rpl_amdgpu.architectures import ARCHITECTURES
from rpl_core.model.architecture import Architecture
from rpl_gfx942.architecture import FACTS

KNOWN = {architecture.name: architecture for architecture in (*ARCHITECTURES, FACTS)}


@pytest.fixture(params=sorted(KNOWN))
def architecture(request: pytest.FixtureRequest) -> Architecture:
    """Each architecture in turn."""
    return KNOWN[request.param]


@pytest.fixture(scope="session")
def architectures() -> dict[str, Architecture]:
    """All of them, by name."""
    return KNOWN
