"""What looking at a source takes grows with the source, not with its square, and macros are not unfolded."""

from __future__ import annotations

import sys

from rpl_optimize.interfaces.transformation import KernelSource
from rpl_transforms.unroll import Unroll

_LOOP = "  for (int i = 0; i < n; ++i) p[i] += i;\n"


def _calls(text: str) -> int:
    """Python's calls while candidates are made: the same on every machine."""
    count = 0

    def seen(_frame: object, event: str, _value: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(seen)
    try:
        found = Unroll().propose(KernelSource("loops.hip", text.encode()))
    finally:
        sys.setprofile(None)
    assert found
    return count


def _loops(number: int) -> str:
    return f"__global__ void k(int* p, int n) {{\n{_LOOP * number}}}\n"


def test_four_times_the_loops_take_four_times_the_work():
    _calls(_loops(1))  # what is read once
    assert _calls(_loops(80)) < 6 * _calls(_loops(20))


def test_macros_that_name_each_other_cost_no_more_than_those_that_do_not():
    def kernel(number: int) -> str:
        names = [f"M{i}" for i in range(number)]
        words = (" + ".join(f"{other}(x)" for other in names if other != name) for name in names)
        defines = "".join(f"#define {name}(x) ({text})\n" for name, text in zip(names, words, strict=True))
        return f"{defines}__global__ void k(int* p, int n) {{\n{_LOOP.replace('+= i', '+= M0(i)')}}}\n"

    _calls(kernel(1))
    assert _calls(kernel(14)) < 14 * _calls(kernel(7))
