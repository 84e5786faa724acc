"""The example plugin for ceilings passes its own tests, uninstalled and without any change to the core."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "rpl-measured-ceilings"


@pytest.mark.data
def test_the_example_passes_its_own_tests(rpl_shared_data):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE)]
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout
