"""Random instructions against a model of single lanes that was written from the ISA document alone.

``scalar_model`` never saw the emulator's functions: exact integers and one rounding, a lane at a time. Where
the public documents leave something open (docs/EMULATOR.md) it takes what they allow.
"""

from __future__ import annotations

import random

import pytest

from .scalar_model.comparing import Compared, compare_steps, compare_stream
from .scalar_model.drawing import Draw
from .scalar_model.operations import OPERATIONS
from .scalar_model.random_instructions import step_of, stream

#: Refused, which is allowed: what they say is compared, too.
_REFUSALS = ("DPP and SDWA are not offered", "packed floats with flushed denormals are not offered")


def _opcodes(emulator, seed: int, each: int, *options: str) -> Compared:
    draw = Draw(random.Random(seed))
    steps = [step_of(draw, name) for name in sorted(OPERATIONS) for _ in range(each)]
    return compare_steps(emulator, steps, options)


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
    compared = _opcodes(emulator, seed=21, each=2)
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
    compared = _opcodes(emulator, 100 + len(cpu), 25, "--cpu", cpu)
    assert compared.wrong == []
    assert set(compared.ran) == set(OPERATIONS)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_many_streams_of_instructions_do_what_the_model_does(emulator):
    assert _streams(emulator, seed=5, count=120, length=30) == []
