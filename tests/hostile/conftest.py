"""``rpl`` under limits that the system holds: whatever hangs or hoards is ended by it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CPU_S = 20
#: Most of it are libraries and their threads.
MEMORY_BYTES = 3 << 30

sys.path.insert(0, str(BENCHMARKS))
try:
    hostile = importlib.import_module("hostile_inputs")
finally:
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="session")
def limited():
    """``limited("analyze", ...)``: how ``rpl`` ended under limits of processor time and address space."""

    def run(*words, **options):
        return hostile.run_limited([*words], **{"cpu_s": CPU_S, "memory": MEMORY_BYTES, **options})

    return run
