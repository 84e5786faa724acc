"""A stand-in for rocprofv3: a separate program that behaves like it where no AMD GPU is at hand.

It runs the application for real, invents what a GPU would have done (`scenario`), and writes the files,
names, messages and exit states of the profiler. Everything it writes is stamped synthetic. Environment:
`RPL_STANDIN_ROCM` (emulated release), `RPL_STANDIN_SCENARIO` (JSON or Python file), `RPL_STANDIN_SEED`,
`RPL_STANDIN_STATE` (counter file), `RPL_STANDIN_MISBEHAVE` (see `behaviour`), `RPL_STANDIN_TIMING_MODEL`
(JSON file with declared times, noise and drift, see `timing_model`). `ready` keeps it started for tests that
need many runs.
"""

from __future__ import annotations

from rpl_testkit.rocprofv3_standin.install import install_standin

__all__ = ["install_standin"]
