"""The parts of comparisons that need no replay: sets of bytes, types and distances, blindness."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rpl_core.errors import MissingError
from rpl_core.interfaces.options import Options
from rpl_core.model.metric import Origin
from rpl_vmreplay.capture.plain_memory import common, size_of, union, without
from rpl_vmreplay.compare import judge
from rpl_vmreplay.compare.experiment import (
    Baseline,
    Experiment,
    LoggedAccesses,
    NoBaselineError,
    WriteSet,
    differing,
)
from rpl_vmreplay.compare.judge import (
    Control,
    ControlOutcome,
    Judgement,
    Measure,
    Subjects,
    Verdict,
    Yardstick,
    blindness,
)
from rpl_vmreplay.compare.mutants import can_be_changed
from rpl_vmreplay.compare.outputs import (
    NOT_A_NUMBER,
    DataType,
    Element,
    Output,
    as_set,
    bound,
    computes_in_halves,
    distances,
    parameter_types,
)
from rpl_vmreplay.compare.pair import TurnsRequest, drawn_order, take_turns
from rpl_vmreplay.interfaces import AgainstResult, Failure, MemoryRange, ReplayError, ReplayResult


def _bytes(ranges):
    return {address for one in ranges for address in range(one.address, one.address + one.size)}


def test_sets_of_bytes_are_those_of_plain_sets():
    draw = np.random.default_rng(5)
    for _ in range(50):
        left, right = (
            union(MemoryRange(int(a), int(n)) for a, n in draw.integers(1, 40, (draw.integers(0, 6), 2)))
            for _ in "ab"
        )
        assert _bytes(without(left, right)) == _bytes(left) - _bytes(right)
        assert _bytes(common(left, right)) == _bytes(left) & _bytes(right)
        assert size_of(left) == len(_bytes(left))


def test_differences_of_memory_stay_in_their_regions():
    regions = (MemoryRange(100, 4), MemoryRange(104, 2))
    found = differing(regions, (b"abcd", b"ef"), (b"aXcY", b"Zf"))
    assert found == (MemoryRange(101, 1), MemoryRange(103, 1), MemoryRange(104, 1))


def test_without_a_log_more_than_a_gibibyte_is_not_compared():
    """And it says how much there is and what else can be done."""
    regions = (SimpleNamespace(base=0x1000000000, size=1 << 30), SimpleNamespace(base=0x2000000000, size=8))
    capture = SimpleNamespace(folder=Path("capture"), regions=regions)
    replayer = SimpleNamespace(
        name="hsa",
        replay=lambda request: ReplayResult("hsa", Origin.MEASURED),
    )
    with pytest.raises(NoBaselineError, match=r"the 1073741832 captured bytes .* in the emulator .* shrink"):
        Experiment(capture, replayer).baseline(Path("a.hsaco"))


@pytest.mark.parametrize(
    ("name", "types"),
    [
        (
            "sums(float const*, double*, unsigned int*, Count)",
            (DataType.F32, DataType.F64, DataType.BYTES, None),
        ),
        ("void f<float, 4>(HIP_vector_type<float, 4u>*, __half*, int)", (DataType.F32, DataType.F16, None)),
        ("f(void (*)(int), std::pair<int, float>*) [clone .kd]", (None, DataType.BYTES)),
        ("plain_c", ()),
    ],
)
def test_the_name_tells_what_pointers_lead_to(name, types):
    assert parameter_types(name) == types


def test_distances_count_the_numbers_between():
    one = struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", 1.0))[0] + 3))[0]
    left = np.array([1.0, -0.0, np.nan, 1.0, 1e-45], np.float32)
    right = np.array([one, 0.0, np.nan, np.nan, -1e-45], np.float32)
    found = distances(DataType.F32, left.tobytes(), right.tobytes())
    assert found.tolist() == [3, 0, 0, NOT_A_NUMBER, 2]
    assert distances(DataType.F64, struct.pack("<d", -1.0), struct.pack("<d", 1.0))[0] > 1 << 62
    assert distances(DataType.BF16, b"\x80\x3f", b"\x81\x3f").tolist() == [1]
    assert distances(DataType.BYTES, b"ab", b"ac").tolist() == [0, NOT_A_NUMBER]


def _controls(empty, *outcomes):
    return [Control("empty", empty), *(Control(str(number), one) for number, one in enumerate(outcomes))]


@pytest.mark.parametrize(
    ("controls", "words"),
    [
        (
            _controls(
                ControlOutcome.BY_RESULTS, *[ControlOutcome.BY_RESULTS] * 6, *[ControlOutcome.SURVIVED] * 2
            ),
            None,
        ),
        (_controls(ControlOutcome.SURVIVED, *[ControlOutcome.BY_RESULTS] * 8), "a kernel that does nothing"),
        (
            _controls(
                ControlOutcome.BY_RESULTS, *[ControlOutcome.BY_RESULTS] * 9, *[ControlOutcome.SURVIVED] * 3
            ),
            "3 of 12 wrong kernels",
        ),
        (
            _controls(ControlOutcome.BY_RESULTS, *[ControlOutcome.BY_RESULTS] * 7, ControlOutcome.REFUSED),
            "only 7 wrong kernels",
        ),
        (_controls(ControlOutcome.BY_RESULTS, *[ControlOutcome.CRASHED] * 8), "every wrong kernel crashed"),
        ((), "no wrong kernels are known"),
    ],
)
def test_a_comparison_that_misses_wrong_kernels_is_blind(controls, words):
    found = blindness(controls)
    assert found is words if words is None else words in found


@pytest.mark.parametrize(("architecture", "known"), [("gfx942", True), ("gfx1100", False)])
def test_wrong_kernels_are_made_only_of_words_that_are_known(architecture, known):
    """No instruction of gfx11 is edited as if it were encoded as on gfx9."""
    code = SimpleNamespace(architecture=architecture)
    assert can_be_changed(code) is known
    if not known:
        assert list(judge._controls(None, Subjects(None, None, code, "kernel"), None, None, ())) == []


PLACE = MemoryRange(4096, 8)


class Turning:
    """Gives one result, and remembers what it was asked."""

    name = "turning"

    def __init__(self, result) -> None:
        self.result = result

    def replay(self, request):
        self.asked = request
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def _turned(a: bytes, b: bytes) -> ReplayResult:
    against = AgainstResult((90, 91), (b,))
    return ReplayResult("turning", Origin.SYNTHETIC, times_ns=(100, 101), kept=(a,), against=against)


@pytest.mark.parametrize(
    ("result", "pairs", "problem", "different"),
    [
        (_turned(b"12345678", b"12345678"), ((100, 90), (101, 91)), None, False),
        (_turned(b"12345678", b"12345670"), (), "behind the timed launches it gives other", True),
        (_turned(b"12345670", b"12345670"), (), "the baseline itself gives other results", False),
        (ReplayResult("turning", Origin.MODELLED, against=AgainstResult()), (), "knows no times", False),
        (MissingError("no rpl-replay"), (), "no rpl-replay", False),
        (
            ReplayResult("turning", Origin.MEASURED, failure=Failure(ReplayError.NO_DEVICE, "no GPU")),
            (),
            "turning: no GPU",
            False,
        ),
    ],
)
def test_results_are_compared_once_more_behind_the_timed_launches(
    write_capture, tmp_path, result, pairs, problem, different
):
    from rpl_vmreplay.capture.folder import open_capture

    writes = WriteSet((PLACE,), (PLACE,), ())
    baseline = Baseline(writes, LoggedAccesses(), ((b"12345678",),), 1.0)
    yardstick = Yardstick(baseline, (Measure(Output("a", 4096, DataType.BYTES, (PLACE,)), (0,), 0, 0),))
    subjects = Subjects(tmp_path / "a", tmp_path / "b", None, "k")
    replayer = Turning(result)
    request = TurnsRequest(open_capture(write_capture()), subjects, yardstick, (True, False))
    found = take_turns(request, replayer, Options())
    assert (found.pairs, found.different) == (pairs, different)
    assert found.problem is problem if problem is None else problem in found.problem
    assert (replayer.asked.edits[0].data, replayer.asked.keep) == (b"\xff" * 8, (PLACE,))


def test_either_kernel_is_first_as_often_as_the_other():
    order = drawn_order(30)
    assert (sum(order), order) == (15, drawn_order(30))
    assert order != tuple(number % 2 == 1 for number in range(30))


def _output(name, kind, element):
    return Output(name, 4096, kind, (MemoryRange(4096, 8),), element)


def test_records_without_an_order_stay_together():
    """Values and their places in two arrays: pairs may change their order, not their partners."""
    values = _output("kept", DataType.F32, Element(DataType.F32, 4))
    places = _output("places", DataType.BYTES, Element(DataType.BYTES, 4, signed=False))
    usual = as_set([(values, b"aaaabbbb"), (places, b"11112222")])
    assert as_set([(values, b"bbbbaaaa"), (places, b"22221111")]) == usual
    assert as_set([(values, b"bbbbaaaa"), (places, b"11112222")]) != usual


def test_what_rounding_never_moves_has_no_bound():
    """Exact results; and a small number beside large ones, if it is of no term that was rounded."""
    usual = np.array([1.0, 1024.0], np.float32).tobytes()
    still, moved = np.zeros(2), np.array([0.0, 1e-4])
    assert bound(DataType.F32, usual, still, moved, moved, rounded=True).tolist() == [0, 0]
    assert bound(DataType.F32, usual, moved, moved, still, rounded=False).tolist() == [0, 0]
    first, second = bound(DataType.F32, usual, moved, still, still, rounded=True)
    assert first == 0
    assert second == pytest.approx(2e-4 + 4 * 1024 * 2.0**-23)


def test_arithmetic_of_fewer_bits_is_no_rounding():
    """However far the candidate's own results move, and one place for what is only stored as a half."""
    usual, moved = np.ones(1, np.float32).tobytes(), np.array([1e-7])
    assert bound(DataType.F32, usual, moved, np.array([1e-3]), np.zeros(1), rounded=True)[0] < 1e-5
    half = np.ones(1, np.float16).tobytes()
    assert bound(DataType.F16, half, np.zeros(1), np.array([1e-1]), np.ones(1), rounded=True)[0] == 2.0**-10


def test_a_baseline_that_computes_in_halves_is_told_by_what_moves_with_them():
    """The last rounding of what is stored as a half moves it by one place at most, sums in halves by more."""
    usual, stored = (np.array(values, np.float16).tobytes() for values in ([1.0, 2.0], [1.0 + 2**-10, 2.0]))
    summed = np.array([1.0 + 6 * 2**-10, 2.0 + 5 * 2**-9], np.float16).tobytes()
    assert not computes_in_halves(DataType.F16, usual, stored, usual)
    assert computes_in_halves(DataType.F16, usual, summed, usual)
    assert not computes_in_halves(DataType.F16, usual, summed, summed)  # single precision moves it as far


def test_sums_in_halves_are_allowed_what_the_baselines_own_move_by():
    half = np.array([1.0, 1.0], np.float16).tobytes()
    ours, theirs, terms = np.array([4e-3, 0.0]), np.array([1.0, 1e-2]), np.array([1e-3, 2e-3])
    allowed = bound(DataType.F16, half, ours, theirs, terms, rounded=True, halves=True)
    # The median of ours by terms is 2: the second element is worth 4e-3 though it happens not to move.
    assert allowed == pytest.approx([2 * 4e-3 + 64 * 4e-3, 2 * 4e-3 + 1e-2])
    assert bound(DataType.F16, half, ours, theirs, terms, rounded=True) == pytest.approx([4e-3, 2.0**-10])


def test_the_share_of_wrong_kernels_that_are_noticed_leaves_out_those_without_effect():
    outcomes = [ControlOutcome.BY_RESULTS] * 6 + [ControlOutcome.NO_EFFECT] * 5 + [ControlOutcome.SURVIVED]
    judgement = Judgement(Verdict.EQUAL, "", controls=tuple(_controls(ControlOutcome.CRASHED, *outcomes)))
    assert judgement.found_share == 7 / 8
    assert "only 7 wrong kernels that matter" in (
        blindness(_controls(ControlOutcome.BY_RESULTS, *outcomes)) or ""
    )
