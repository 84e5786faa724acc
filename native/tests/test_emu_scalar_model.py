"""Random instructions against a model of single lanes that was written from the ISA document alone.

``scalar_model`` never saw the emulator's functions: exact integers and one rounding, a lane at a time. Where
the public documents leave something open (docs/EMULATOR.md) it takes what they allow.
"""

from __future__ import annotations

import random

import pytest

from .scalar_model.comparing import compare_steps, compare_stream
from .scalar_model.drawing import Draw
from .scalar_model.operations import OPERATIONS
from .scalar_model.random_instructions import every_opcode, stream

#: Refused, which is allowed: what they say is compared, too.
_REFUSALS = ("SDWA is not offered", "a dot product or a mixed sum of halves rounded otherwise")


def _streams(emulator, seed: int, count: int, length: int) -> list[str]:
    draw = Draw(random.Random(seed))
    wrong = []
    for k in range(count):
        first, steps = stream(draw, length, fresh=k % 2 == 0)
        compared = compare_stream(emulator, first, steps)
        assert all(why.startswith(_REFUSALS) for why in compared.refused.values()), compared.refused
        wrong += compared.wrong
    return wrong


def test_every_modelled_opcode_does_what_the_model_does(emulator):
    compared = compare_steps(emulator, every_opcode())
    assert compared.wrong == []
    assert set(compared.ran) == set(OPERATIONS)
    assert all(why.startswith(_REFUSALS) for why in compared.refused.values()), compared.refused
    assert len(OPERATIONS) > 700


def test_streams_of_instructions_do_what_the_model_does(emulator):
    assert _streams(emulator, seed=3, count=8, length=24) == []


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("cpu", ["avx512", "avx2", "baseline"])
def test_many_instructions_do_what_the_model_does(emulator, cpu):
    for seed in range(8):
        steps = every_opcode(100 * len(cpu) + seed, 3)
        assert compare_steps(emulator, steps, ("--cpu", cpu)).wrong == []


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_many_streams_of_instructions_do_what_the_model_does(emulator):
    assert _streams(emulator, seed=5, count=120, length=30) == []
