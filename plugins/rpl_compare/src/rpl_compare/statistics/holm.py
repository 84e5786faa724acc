"""Many tests at once: Holm's step-down correction (Scand. J. Statist. 6, 1979), valid under dependence."""

from __future__ import annotations

from collections.abc import Sequence


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the given order: reject those up to alpha, and all errors together stay below it.

    The k-th smallest of K (k = 0, 1, ...) is multiplied by K - k; the result never falls and never exceeds 1.
    """
    order = sorted(range(len(p_values)), key=lambda i: (p_values[i], i))
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for position, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - position)))
        adjusted[index] = highest
    return tuple(adjusted)
