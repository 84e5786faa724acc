"""The simulated job of benchmarks/: machines of eight ranks, a slow rank, a slow host, skewed clocks."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


@pytest.fixture(scope="module")
def simulated_job():
    """The class ``SimulatedJob``."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("simulated_job").SimulatedJob
    finally:
        sys.path.remove(str(BENCHMARKS))
