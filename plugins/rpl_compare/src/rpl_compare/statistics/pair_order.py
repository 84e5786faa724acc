"""Which side of a pair runs first: at random from a seed, and balanced in blocks.

A fixed order such as base new, new base lets a disturbance that keeps time with it look like a gain. With a
random order the sign of each difference is a coin's, whatever disturbs the runs: that is all that the
signed-rank test needs (R. A. Fisher, The Design of Experiments, 1935, section 21). Blocks keep either order
from being drawn far more often than the other, which would cost power where the second run of a pair is
slower.
"""

from __future__ import annotations

import hashlib

#: Pairs of a block, half of them with the new version first (chosen: smaller blocks tie the coins to each
#: other, and a disturbance in step with the block then counts twice).
BLOCK_PAIRS = 10


def new_first(seed: int, pairs: int) -> tuple[bool, ...]:
    """For each pair whether the new version runs before the base. Equal on every machine."""
    order: list[bool] = []
    for block in range(-(-pairs // BLOCK_PAIRS)):
        places = sorted(range(BLOCK_PAIRS), key=lambda place: _draw(seed, block, place))
        chosen = frozenset(places[: BLOCK_PAIRS // 2])
        order += [place in chosen for place in range(BLOCK_PAIRS)]
    return tuple(order[:pairs])


def _draw(seed: int, block: int, place: int) -> bytes:
    return hashlib.sha256(f"{seed}:{block}:{place}".encode()).digest()
