"""When a bound is safe: no launch may ever use more threads than it promises.

A kernel launched with more threads than its launch bound is an error at run time, so every doubt refuses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from rpl_launch_bounds.kernels import Kernel
    from rpl_launch_bounds.launches import Use

_BOUND_BEGINS = b"__launch_bounds__("
_BOUND = re.compile(re.escape(_BOUND_BEGINS) + rb"\d+\) ")
#: Threads per block that HIP allows at most, and the bound that the compiler assumes without a hint
#: (HIP documentation, "Launch bounds": the default is 1024).
MAX_THREADS = 1024


def only_launched(uses: tuple[Use, ...]) -> GuardVerdict:
    """The name is used in launches and nowhere else (an address could be launched from anywhere)."""
    name = "only-launched"
    if not uses:
        return GuardVerdict(name, passed=False, reason="the file launches this kernel nowhere")
    for use in uses:
        if use.block is None:
            return GuardVerdict(name, passed=False, reason="used other than in a launch", line=use.line)
    return GuardVerdict(name, passed=True, reason=f"{len(uses)} launches found")


def sizes_known(uses: tuple[Use, ...], sizes: tuple[int | None, ...]) -> GuardVerdict:
    """Every launch has a block size that the file settles."""
    name = "block-size-known"
    for use, size in zip(uses, sizes, strict=True):
        if use.block is not None and size is None:
            text = use.block.decode("utf-8", "replace")
            return GuardVerdict(
                name, passed=False, reason=f"block size {text!r} is not settled", line=use.line
            )
    return GuardVerdict(name, passed=True, reason="every launch has a constant block size")


def within_limit(threads: int) -> GuardVerdict:
    """The bound says something, and HIP allows it."""
    name = "bound-in-range"
    if threads > MAX_THREADS:
        return GuardVerdict(name, passed=False, reason=f"{threads} threads exceed HIP's {MAX_THREADS}")
    if threads == MAX_THREADS:
        return GuardVerdict(name, passed=False, reason=f"{MAX_THREADS} is what the compiler assumes anyway")
    return GuardVerdict(name, passed=True, reason=f"{threads} of at most {MAX_THREADS} threads")


def launched_here_only(kernel: Kernel, code: bytes) -> GuardVerdict:
    """No other file can launch the kernel: it is static, or this file is a whole program."""
    name = "launched-here-only"
    if kernel.internal:
        return GuardVerdict(name, passed=True, reason="the kernel is static")
    if re.search(rb"\bint\s+main\s*\(", code):
        return GuardVerdict(name, passed=True, reason="the file is a whole program")
    reason = "other files may launch it with more threads (it is not static, and the file has no main)"
    return GuardVerdict(name, passed=False, reason=reason, line=kernel.line)


def only_inserts(before: bytes, after: bytes) -> GuardVerdict:
    """The edited file is the old one with one launch bound more."""
    name = "only-a-bound-added"
    place = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
    # The inserted word may begin like what follows it, so the difference may show a few bytes later.
    for begin in range(place, max(-1, place - len(_BOUND_BEGINS) - 1), -1):
        bound = _BOUND.match(after, begin)
        if bound is not None and after[:begin] + after[bound.end() :] == before:
            return GuardVerdict(name, passed=True, reason="every other byte is as before")
    line = after.count(b"\n", 0, place) + 1
    return GuardVerdict(name, passed=False, reason="more than a launch bound changed", line=line)
