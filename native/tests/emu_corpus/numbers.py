"""Inputs of the corpus: one argument for all kernels, laid out as struct In and struct Out of kernels.h."""

from __future__ import annotations

import numpy as np

COUNT = 1024


def inputs() -> bytes:
    r = np.random.default_rng(7)
    u = r.integers(0, 2**32, COUNT, dtype=np.uint32)
    u[:8] = [0, 1, 2**31, 2**31 - 1, 2**32 - 1, 0x7F800000, 0x7FC00000, 0xFF800001]
    f = r.uniform(-1000, 1000, COUNT).astype(np.float32)
    d = r.uniform(-1000, 1000, COUNT)
    for x in (f, d):
        x[::17] = 0
        x[::13] = np.round(x[::13]) + 0.5
    words = r.integers(0, 2**64, COUNT, dtype=np.uint64)
    words[:4] = [0, 1, 2**63, 2**64 - 1]
    h = r.uniform(-8, 8, COUNT).astype(np.float16)
    small = r.integers(0, 64, COUNT, dtype=np.uint32)
    return b"".join(x.tobytes() for x in (u, f, d, words, h, small))


def start_of_output() -> bytes:
    return bytes(8 * COUNT) + (np.arange(COUNT, dtype=np.uint32) + 1000).tobytes()
