"""On which side of the ridge a kernel lies: what all values that its intensity may have agree on."""

from __future__ import annotations

from itertools import product

import pytest

from rpl_analysis.contracts.roofline import Bound
from rpl_analysis.roofline.kernel import _side
from rpl_core.model.metric import Exactness, Metric

RIDGE = 10.0
PLACES = (0.0, 9.99, 10.0, 10.01, 500.0)


@pytest.mark.parametrize(("exactness", "partial"), list(product(Exactness, (False, True))))
def test_a_side_is_known_where_all_possible_values_are_on_it(exactness, partial):
    for low, upper in product(PLACES, PLACES):
        interval = exactness is Exactness.INTERVAL
        if interval and upper < low:
            continue
        intensity = Metric(low, "FLOP/B", exactness, upper=upper if interval else None, partial=partial)
        may_be = [low]
        if partial or exactness is Exactness.LOWER_BOUND:
            may_be.append(1e9)
        elif interval:
            may_be.append(upper)
        sides = {Bound.MEMORY if value < RIDGE else Bound.COMPUTE for value in may_be}
        assert _side(intensity, RIDGE) == (sides.pop() if len(sides) == 1 else None), (low, upper)
