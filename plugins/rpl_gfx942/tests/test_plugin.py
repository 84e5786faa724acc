"""The plugin module states its API, registers both hooks, and imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys

from rpl_gfx942 import plugin


def test_the_hooks_give_models_and_detection(agent):
    assert plugin.RPL_API == 2
    assert [model.name for model in plugin.rpl_device_models()] == ["mi300x", "mi300a", "mi325x", "mi308x"]
    assert plugin.rpl_detect_device((agent(chip_id=29856, compute_units=228),)).name == "mi300a"
    assert plugin.rpl_detect_device((agent(architecture="gfx1100"),)) is None


def test_importing_the_plugin_imports_no_device_and_no_numpy():
    heavy = "[m for m in ('numpy', 'rpl_gfx942.products') if m in sys.modules]"
    code = f"import sys, rpl_gfx942.plugin; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
