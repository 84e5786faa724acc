"""The plugins that these tests are about."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def these_plugins_only(monkeypatch):
    """Whatever else is installed beside the checkout must not change what the tests see."""
    monkeypatch.setenv(
        "RPL_LOAD_PLUGINS",
        "rpl-core,rpl-analysis,rpl-codeobject,rpl-compare,rpl-optimize,rpl-report,rpl-rocprofv3,rpl-gfx942",
    )
