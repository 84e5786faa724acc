"""How many traced waves were in each state over time: the content of ``wstates<k>.json``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_STATES = (1, 2, 3, 4)  # idle, exec, wait, stall (att.md, 1.4); empty waves are not counted


class StateChanges:
    """Collects the states of waves; clocks of shader engines are merged as they are (att.md, 1.6)."""

    def __init__(self) -> None:
        self._begins: dict[int, list[NDArray[np.int64]]] = {state: [] for state in _STATES}
        self._ends: dict[int, list[NDArray[np.int64]]] = {state: [] for state in _STATES}

    def add(self, begin: int, states: NDArray[np.int32], durations: NDArray[np.int32]) -> None:
        """One wave: contiguous ``states`` from clock ``begin`` on, ``durations`` in cycles."""
        ends = begin + np.cumsum(durations, dtype=np.int64)
        for state in _STATES:
            chosen = (states == state) & (durations > 0)
            self._begins[state].append(ends[chosen] - durations[chosen])
            self._ends[state].append(ends[chosen])

    def tables(self) -> dict[str, dict[str, Any]]:
        """File name -> content, for each state that occurred."""
        found = {}
        for state in _STATES:
            if not sum(map(len, self._begins[state])):
                continue
            clocks, counts = self._steps(state)
            name = f"wstates{state}.json"
            found[name] = {"name": name, "time": clocks.tolist(), "state": counts.tolist()}
        return found

    def _steps(self, state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        begins, ends = np.concatenate(self._begins[state]), np.concatenate(self._ends[state])
        clocks, place = np.unique(np.concatenate((begins, ends)), return_inverse=True)
        steps = np.zeros(len(clocks), np.int64)
        np.add.at(steps, place.reshape(-1), np.repeat((1, -1), (len(begins), len(ends))))
        return clocks, np.cumsum(steps)
