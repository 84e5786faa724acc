"""How many damaged inputs a target gets: the same few in every test command, others and more in a long run.

``RPL_FUZZ_EXAMPLES=N`` asks for N examples per target, drawn by ``--hypothesis-seed``.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_ASKED = os.environ.get("RPL_FUZZ_EXAMPLES")

#: Decorator for every target.
fuzzed = settings(
    max_examples=int(_ASKED or 400),
    derandomize=_ASKED is None,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
