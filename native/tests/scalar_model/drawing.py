"""Random values: edges more often than not."""

from __future__ import annotations

import random

import attrs

from .machine import LANES
from .number_formats import BF16, F16, F32, F64, Format, pack
from .operations import FLOATS, WIDTHS
from .vector_float import from_python

_INTEGERS = (0, 1, 2, 3, 4, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFF)
_INTEGERS += (0x800000, 0xFFFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF)
_POWERS = (0, 1, -1, 24, -24, 126, 127, 128, -126, -149, -150, 1023, -1074, 15, -25, 0x7FFFFFFF, -(1 << 31))


def edges(f: Format) -> tuple[int, ...]:
    one, inf = f.bias << f.fraction, f.infinity
    positive = (0, 1, 2, (1 << f.fraction) - 1, 1 << f.fraction, (1 << f.fraction) + 1, one - 1, one, one + 1)
    positive += (
        one + (1 << f.fraction),
        one - (1 << f.fraction),
        one + (1 << f.fraction - 1),
        f.largest,
        f.largest - 1,
    )
    positive += (inf, inf | f.quiet_bit, inf | 1, inf | f.quiet_bit | 5)
    # Where integers of 8, 16 and 32 bits end, a number and a half, 256 turns, the largest half.
    for value in (0.25, 0.75, 1.5, 2.5, 255.5, 256.0, 32767.5, 65504.0, 65520.0, 2147483648.0, 4294967040.0):
        positive += (from_python(f, value),)
    return tuple(x | s for x in positive for s in (0, f.sign_bit))


_EDGES = {f: edges(f) for f in (F16, F32, F64, BF16)}


@attrs.define
class Draw:
    random: random.Random

    # ---- values ----------------------------------------------------------------------
    def integer(self, bits: int) -> int:
        r = self.random
        how = r.random()
        if bits == 64:
            return self.integer(32) << 32 | self.integer(32) if how < 0.8 else r.getrandbits(64)
        if how < 0.55:
            value = r.choice(_INTEGERS)
        elif how < 0.7:
            value = r.choice(_INTEGERS) << 16 | r.choice(_INTEGERS) & 0xFFFF
        elif how < 0.85:
            value = r.getrandbits(r.randint(1, 32))
        else:
            value = -r.getrandbits(r.randint(1, 16))
        return value & ((1 << bits) - 1)

    def number(self, f: Format) -> int:
        r = self.random
        how = r.random()
        if how < 0.45:
            return r.choice(_EDGES[f])
        if how < 0.6:
            return r.getrandbits(f.width)
        if how < 0.75:  # about one
            return (
                r.getrandbits(1) << (f.width - 1)
                | (f.bias + r.randint(-3, 3)) << f.fraction
                | r.getrandbits(f.fraction)
            )
        if how < 0.85:  # an integer
            return pack(f, r.getrandbits(1), r.getrandbits(r.randint(1, 33)), r.randint(-2, 0))
        if how < 0.93:  # a denormal
            return r.getrandbits(1) << (f.width - 1) | r.getrandbits(f.fraction)
        low = r.getrandbits(f.fraction) >> r.randint(0, f.fraction) << r.randint(0, f.fraction)
        biased = r.randint(0, f.highest_exponent - 1)
        return r.getrandbits(1) << (f.width - 1) | biased << f.fraction | low & ((1 << f.fraction) - 1)

    def finite(self, f: Format) -> int:
        """Below two, so that sums stay finite; no zero, of which a minimum may give either."""
        return self.number(f) & ~(1 << (f.width - 2)) | 1

    def value(self, letter: str) -> int:
        f = FLOATS.get(letter)
        if (letter in "qm" and self.random.random() < 0.9) or letter == "q":
            return self.number(F16) | self.number(F16) << 16
        if letter == "P":
            return self.number(F32) | self.number(F32) << 32
        if f is not None and letter in "hHz":
            return self.number(f) | self.random.getrandbits(16) << 16
        if f is not None:
            return self.number(f)
        return self.number(F32) if letter == "m" else self.integer(64 if WIDTHS.get(letter) == 64 else 32)

    def mask(self) -> int:
        r = self.random
        return r.choice(
            (
                lambda: (1 << LANES) - 1,
                lambda: (1 << LANES) - 1,
                lambda: r.getrandbits(64),
                lambda: r.getrandbits(64),
                lambda: r.getrandbits(64) & r.getrandbits(64) & r.getrandbits(64),
                lambda: 1 << r.randrange(64),
                lambda: (1 << r.randrange(64)) - 1,
            )
        )()

    def row(self, letter: str, hint: str) -> list[int]:
        return [self._hinted(letter, hint, lane) for lane in range(LANES)]

    def _hinted(self, letter: str, hint: str, lane: int) -> int:
        r = self.random
        if hint == "power":
            return (r.choice(_POWERS) if r.random() < 0.6 else r.randint(-40, 40)) & 0xFFFFFFFF
        if hint == "address":
            return 16 * r.randrange(32)
        if hint == "own address":
            return 16 * lane
        if hint == "lane address":
            return r.getrandbits(9) if r.random() < 0.9 else r.getrandbits(32)
        if hint == "bit field":
            return r.choice(_INTEGERS) & 63 | r.choice((0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 127)) << 16
        return self.value("q" if hint == "halves" else letter)
