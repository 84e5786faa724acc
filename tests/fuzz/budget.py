"""How many damaged inputs a target gets: the same few in `make test`, more on request, others in a
long run.

Targets that read a whole database or folder per example get half of the examples. ``RPL_FUZZ_EXAMPLES=N``
asks for N examples per target; with ``--hypothesis-profile=random`` they are drawn by ``--hypothesis-seed``.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_ASKED = os.environ.get("RPL_FUZZ_EXAMPLES")


def _budget(examples: int) -> settings:
    return settings(max_examples=int(_ASKED or examples), suppress_health_check=list(HealthCheck))


#: Decorators for targets: one for cheap examples, one for costly ones, one where each is counted and traced.
fuzzed = _budget(80)
fuzzed_less = _budget(40)
fuzzed_least = _budget(10)
