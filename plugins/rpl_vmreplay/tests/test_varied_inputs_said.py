"""What is said of inputs in the captured one's place, and which numbers of two kernels are tried.

Verdicts by a table of what may be believed: equal only where some results were compared, nothing broke and
none differed. Numbers by listing every literal of drawn instructions.
"""

from __future__ import annotations

import random
import re
import struct
from itertools import product

import pytest

from rpl_codeobject.disassembly import Instruction
from rpl_optimize.interfaces.equivalence import EquivalenceVerdict
from rpl_vmreplay.inputs.arguments import around, constants_of
from rpl_vmreplay.optimizer_checks import Compared, Dropped, Limits, Tally, report

EQUAL, DIFFERENT, NOT_RUN = EquivalenceVerdict.EQUAL, EquivalenceVerdict.DIFFERENT, EquivalenceVerdict.NOT_RUN


@pytest.mark.parametrize("different", [None, "the first value differs"])
@pytest.mark.parametrize("failure", [None, "time", "rpl-emu ended"])
def test_nothing_is_called_equal_without_results(different: str | None, failure: str | None) -> None:
    for broke, compared, empty, dropped in product((False, True), (0, 1, 5), (0, 1), (0, 2)):
        if empty > compared or (broke and failure is None):
            continue
        tally = Tally(compared=compared, without_results=empty, different=different)
        tally.dropped[Dropped.RACES] = dropped
        found = report(Compared(tally, 9, failure=failure, broke=broke), Limits(9, 2.5))
        if different is not None:
            expected = DIFFERENT
        elif failure is not None and (broke or compared == 0):
            expected = NOT_RUN
        else:
            expected = EQUAL if compared > empty else NOT_RUN
        case = (failure, broke, compared, empty, dropped)
        assert found.verdict is expected, case
        if expected is EQUAL:
            assert f"{compared} of 9 inputs compared" in found.evidence
            assert (f"on {empty} nothing is written" in found.evidence) == bool(empty)
            left = 9 - compared - dropped
            assert f"{left} not compared: {failure or 'time'} (limit: 2.5 s)" in found.evidence
        if expected is NOT_RUN and broke and compared:
            assert f"({compared} of 9 inputs compared until then)" in found.evidence
        if expected is DIFFERENT:
            assert found.evidence.startswith(different or "")
            assert "not compared" not in found.evidence, "it ended there"


def test_all_that_limits_an_answer_is_told() -> None:
    tally = Tally(compared=6, watched=4, synchronised=3, not_watched=2, not_numbers=1, without_results=1)
    for number, why in enumerate(Dropped, start=1):
        tally.dropped[why] = number
    wanted = 6 + sum(range(1, len(Dropped) + 1))
    whole = Compared(tally, wanted, unreached=3, instructions=40, cooperates=True)
    told = report(whole, Limits(wanted, None)).evidence.split("; ")
    assert told == [
        f"6 of {wanted} inputs compared",
        *(
            f"{number} dropped because the baseline {why.value}"
            for number, why in enumerate(Dropped, start=1)
        ),
        "on 1 nothing is written",
        "4 watched for races, 3 for the order of barriers and atomics",
        "on 2 of them how waves work together could not be compared",
        "on 1 only NaN, infinities or denormals differ",
        "whether the build allows that is unknown",
        "3 of 40 instructions of the candidate ran on no input",
    ]
    known = report(whole, Limits(wanted, None, strict=False)).evidence
    assert "whether the build allows" not in known
    crashed = report(Compared(Tally(different="x", crashed=True), 1), Limits(1, None))
    assert crashed.crashed


#: Instructions with one literal: whether it may be a number of the data, and whether it is that of a bit.
FORMS = (
    ("s_cmp_lt_i32", "s4, {}", True, False),
    ("v_cmp_gt_u32_e32", "vcc, {}, v0", True, False),
    ("v_add_u32_e32", "v0, {}, v1", True, False),
    ("s_mul_i32", "s2, s3, {}", True, False),
    ("s_bitcmp1_b32", "s0, {}", True, True),
    ("v_lshlrev_b32_e32", "v1, {}, v2", True, True),
    ("s_waitcnt", "vmcnt({})", False, False),
    ("global_load_dword", "v1, v[2:3], off offset:{}", False, False),
    ("s_cbranch_scc1", "{}", False, False),
    ("s_add_u32", "s0, s1, {}", False, False),
)


def _drawn(rng: random.Random) -> tuple[list[Instruction], dict[int, bool]]:
    """Instructions, and each number that they may be about, with whether something is compared with it."""
    code, numbers = [], {}
    for address in range(rng.randint(5, 20)):
        mnemonic, operands, counts, is_bit = rng.choice(FORMS)
        number = rng.choice((rng.randint(0, 30), rng.randint(31, 5_000), 2**31 + rng.randint(0, 9)))
        number = rng.randint(0, 40) if is_bit else number
        text = hex(number) if rng.random() < 0.5 else str(number)
        code.append(Instruction(8 * address, mnemonic, operands.format(text)))
        if counts:
            signed = number - 2**32 if number >= 2**31 else number
            for one in [signed, *([1 << number] if is_bit and number < 31 else [])]:
                numbers[one] = numbers.get(one, False) or "cmp" in mnemonic
    return code, numbers


@pytest.mark.parametrize("seed", range(25))
def test_numbers_of_one_kernel_alone_come_first(seed: int) -> None:
    rng = random.Random(seed)
    (a, of_a), (b, of_b) = _drawn(rng), _drawn(rng)
    found = constants_of(a, b)
    alone = of_a.keys() ^ of_b.keys()
    assert set(found.fresh) == alone
    assert set(found.shared) == of_a.keys() & of_b.keys()
    assert len(found.fresh) + len(found.shared) == len(of_a.keys() | of_b.keys())
    for listed in (found.fresh, found.shared):
        keys = [(not (of_a.get(n, False) or of_b.get(n, False)), abs(n), n) for n in listed]
        assert keys == sorted(keys), "what is compared first, then the small ones"
    assert found.largest == max((abs(one) for one in (*found.fresh, *found.shared)), default=0)
    large = [n for n in alone if abs(n) > 8]
    meant = {n << s for n in large for s in (1, 2, 3, 4, 6, 8)} | {
        n >> s for n in large for s in (1, 2, 3, 4, 6, 8)
    }
    assert set(found.scaled) == {n for n in meant if 1 < abs(n) < 2**40}
    assert len(set(found.scaled)) == len(found.scaled)
    floats = [struct.unpack("<f", struct.pack("<i", n))[0] for n in (*found.fresh, *found.shared)]
    assert set(found.floats) == {x for x in floats if 1e-10 < abs(x) < 1e15}


def test_floats_and_negative_numbers_are_read_as_the_assembler_writes_them() -> None:
    code = [
        Instruction(0, "v_cmp_lt_f32_e32", "vcc, 0.5, v0"),
        Instruction(8, "v_mul_f32_e32", "v0, -2.0, v1"),
        Instruction(16, "s_cmp_eq_i32", "s0, -7"),
        Instruction(24, "v_and_b32_e32", "v0, 0xffffffff, v1"),
        Instruction(32, "s_mov_b64", "s[12:13], s[14:15]"),
    ]
    found = constants_of(code, [])
    bits = {struct.unpack("<i", struct.pack("<f", x))[0] for x in (0.5, -2.0)}
    assert set(found.fresh) == {*bits, -7, -1}
    assert set(found.floats) == {0.5, -2.0}
    assert constants_of(code, code).fresh == ()


def test_neighbours_once_and_in_order() -> None:
    assert around([5, 7]) == [6, 5, 4, 8, 7]
    assert around([]) == []
    numbers = re.findall(r"-?\d+", str(around([0, -1])))
    assert [int(one) for one in numbers] == [1, 0, -1, -2]
