"""Comparing two files: bytes, numbers in text, arrays. Every tolerance is abs + rel * |baseline|."""

from __future__ import annotations

import numpy as np
import pytest

from rpl_core.errors import UsageError
from rpl_optimize.equivalence import outputs
from rpl_optimize.equivalence.checks import compare_bytes, compare_outputs
from rpl_optimize.equivalence.outputs import Tolerance, read_output


@pytest.fixture
def compare(tmp_path):
    def run(old: bytes, new: bytes, name: str = "out.txt", relative: float = 0.0, absolute: float = 0.0):
        left, right = tmp_path / "left", tmp_path / "right"
        left.write_bytes(old)
        right.write_bytes(new)
        return compare_outputs(read_output(name), left, right, Tolerance(relative, absolute))

    return run


@pytest.mark.parametrize("place", [0, 1, 4999, 5000, 5001, 9998, 9999])
def test_the_first_different_byte_is_found(tmp_path, monkeypatch, place: int) -> None:
    monkeypatch.setattr(outputs, "BLOCK_BYTES", 1000)
    text = bytearray(b"line.....\n" * 1000)
    (tmp_path / "a").write_bytes(text)
    text[place] ^= 1
    (tmp_path / "b").write_bytes(text)
    found = compare_bytes(tmp_path / "a", tmp_path / "b")
    assert found.equal is False
    assert f"at byte {place} (line {place // 10 + 1})" in found.detail


def test_a_shorter_file_differs_at_its_end(compare) -> None:
    assert "3 bytes became 2; the first difference is at byte 2" in compare(b"abc", b"ab").detail


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        ("x = 1.00, y = 2", "x = 1.01, y = 2", True),
        ("x = 1.00, y = 2", "x = 1.02, y = 2", False),
        ("x=[1.0,2.0]", "x=[1.005,2.0]", True),
        ("1 2 3", "1  2\n3", True),  # blanks only separate
        ("1 2 3", "1 2", False),
        ("1 2", "1 2 3", False),
        ("x 1", "y 1", False),
        ("v2 1.0", "v3 1.0", False),
        ("0x10", "0x11", False),
        ("0x1000", "0x1001", False),
        ("1000ms", "1001ms", False),
        ("nan 1", "nan 1.001", True),
        ("nan", "1", False),
        ("1", "nan", False),
        ("inf", "1e300", False),
        ("inf", "-inf", False),
        ("1e300", "inf", False),
        ("Infinity 1", "inf 1", True),
        ("-1e-3", "-1.005E-03", True),
        ("100", "101", True),
        ("100", "word", False),
        ("12345678901234567890", "12345678901234567890", True),
        ("10-5", "10-5.01", True),
    ],
)
def test_numbers_in_text(compare, old: str, new: str, equal: bool) -> None:
    assert compare(old.encode(), new.encode(), relative=0.011).equal is equal


def test_a_tolerance_of_0_asks_for_equal_bytes(compare) -> None:
    assert compare(b"1.0", b"1.00").equal is False
    assert compare(b"1.0", b"1.00", absolute=1e-300).equal is True


def test_text_is_read_alike_however_its_lines_are_cut(compare, monkeypatch) -> None:
    monkeypatch.setattr(outputs, "BLOCK_BYTES", 7)
    numbers = ",".join(f"{n}.25" for n in range(500)).encode()
    assert compare(numbers, numbers.replace(b".25", b".250"), absolute=1e-9).equal is True
    words = b",".join(b"a,b,%d.5" % n for n in range(100))
    assert compare(words, words.replace(b".5", b".500"), absolute=1e-9).equal is True
    found = compare(numbers, numbers.replace(b",321.25,", b",321.5,"), absolute=0.1)
    assert (found.equal, "1 of 500 numbers" in found.detail, "'321.25' became '321.5'" in found.detail) == (
        False,
        True,
        True,
    )


def test_a_word_without_end_is_not_compared(compare) -> None:
    found = compare(b"1 " + b"x" * 200_000, b"1.0 " + b"x" * 200_000, absolute=1)
    assert found.equal is None


def test_bytes_of_unknown_meaning_need_a_type_for_a_tolerance(compare) -> None:
    found = compare(b"\0\1\2\3", b"\0\1\2\4", name="o.bin", absolute=1)
    assert found.equal is None
    assert "o.bin:f32" in found.detail
    assert compare(b"\0\1", b"\0\1", name="o.bin", absolute=1).equal is True


TYPES = {"f16": "<f2", "f32": "<f4", "f64": "<f8", "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}
TYPES |= {"u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8"}


@pytest.mark.parametrize("number_type", TYPES)
def test_raw_numbers_of_every_type(compare, number_type: str) -> None:
    old = np.arange(100, dtype=TYPES[number_type])
    new = old.copy()
    new[50] = 52
    name = f"o.bin:{number_type}"
    found = compare(old.tobytes(), new.tobytes(), name=name, absolute=1)
    assert found.equal is False
    assert "1 of 100 numbers" in found.detail
    assert "largest difference 2, element 50" in found.detail
    assert compare(old.tobytes(), new.tobytes(), name=name, absolute=2).equal is True
    assert compare(old.tobytes(), new.tobytes(), name=name, relative=0.0399).equal is False
    assert compare(old.tobytes(), new.tobytes(), name=name, relative=0.0401).equal is True


def test_bf16_is_the_upper_half_of_a_float(compare) -> None:
    old = np.array([1.0, 2.0, -3.0], dtype="<f4").view("<u4") >> 16
    new = np.array([1.0, 2.5, -3.0], dtype="<f4").view("<u4") >> 16
    sides = [side.astype("<u2").tobytes() for side in (old, new)]
    assert "element 1: 2.0 became 2.5" in compare(*sides, name="o:bf16", absolute=0.4).detail
    assert compare(*sides, name="o:bf16", absolute=0.5).equal is True


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        ([np.nan, 1], [np.nan, 1.001], True),
        ([np.nan, 1], [1, np.nan], False),
        ([np.inf, 1], [np.inf, 1.001], True),
        ([np.inf, 1], [1e30, 1], False),
        ([1e30, 1], [np.inf, 1], False),
        ([np.inf], [-np.inf], False),
        ([0.0], [-0.0], True),
    ],
)
def test_nan_and_infinity_equal_only_themselves(compare, old, new, equal: bool) -> None:
    sides = [np.array(side, dtype="<f4").tobytes() for side in (old, new)]
    assert compare(*sides, name="o:f32", relative=0.5).equal is equal


def test_64_bit_integers_far_apart_do_not_wrap(compare) -> None:
    sides = [np.array([side], dtype="<i8").tobytes() for side in (-(2**63), 2**63 - 1)]
    assert compare(*sides, name="o:i64", absolute=10).equal is False
    close = [np.array([side], dtype="<u8").tobytes() for side in (2**64 - 1, 2**64 - 3)]
    assert compare(*close, name="o:u64", absolute=2).equal is True
    assert compare(*close, name="o:u64", absolute=1).equal is False


def test_the_worst_element_of_all_blocks_is_reported(compare, monkeypatch) -> None:
    monkeypatch.setattr("rpl_optimize.equivalence.outputs.BLOCK_BYTES", 64)
    old = np.zeros(1000, dtype="<f4")
    new = old.copy()
    new[[3, 500, 900]] = [0.5, 4.0, 2.0]
    found = compare(old.tobytes(), new.tobytes(), name="o:f32", absolute=1)
    assert "2 of 1000 numbers" in found.detail
    assert "largest difference 4, element 500" in found.detail


def test_raw_files_of_other_sizes_are_different_or_senseless(compare) -> None:
    assert compare(bytes(8), bytes(12), name="o:f32", absolute=1).equal is False
    assert compare(b"\1" * 7, b"\2" * 7, name="o:f32", absolute=1).equal is None


def npy(array, **options) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        (np.ones((3, 4)), np.ones((3, 4)) + 1e-4, True),
        (np.ones((3, 4)), np.ones((3, 4)) + 1e-2, False),
        (np.ones((3, 4)), np.ones((4, 3)), False),
        (np.ones(3, "f4"), np.ones(3, "f8"), False),
        (np.asfortranarray(np.ones((3, 4))), np.asfortranarray(np.ones((3, 4)) + 1e-4), True),
        (np.asfortranarray(np.arange(12.0).reshape(3, 4)), np.arange(12.0).reshape(3, 4), False),
        # The same numbers in the same order on disk, but not in the same places of the array.
        (np.arange(12.0).reshape(4, 3).T, np.arange(12.0).reshape(3, 4), False),
        (np.ones(3, ">f4"), np.full(3, 1.0001, ">f4"), True),
        (np.ones(3) + 1j, np.ones(3) + 1.0001j, True),
        (np.ones(3) + 1j, np.ones(3) + 2j, False),
        (np.array(["a", "b"]), np.array(["a", "c"]), False),
        (np.array([True, False]), np.array([True, True]), False),
    ],
)
def test_npy_files(compare, old, new, equal: bool) -> None:
    assert compare(npy(old), npy(new), name="o.npy", absolute=1e-3).equal is equal


def test_a_hostile_npy_file_is_not_equal_and_runs_nothing(compare) -> None:
    good = npy(np.ones(3))
    pickled = npy(np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert compare(good, pickled, name="o.npy", absolute=1).equal is False
    assert compare(pickled, good, name="o.npy", absolute=1).equal is None
    assert compare(good, good[:-3], name="o.npy", absolute=1).equal is False
    assert (
        compare(good, good.replace(b"(3,)", b"(9" + b"9" * 1 + b",)"), name="o.npy", absolute=1).equal
        is False
    )
    assert compare(good, b"\x93NUMPY\x01\x00\xff\xff{", name="o.npy", absolute=1).equal is False


@pytest.mark.parametrize(
    ("text", "name", "number_type"),
    [
        ("a.bin:f32", "a.bin", "f32"),
        ("a:b", "a:b", None),
        ("-", "-", None),
        ("-:f32", "-", "f32"),
        (":f32", ":f32", None),
    ],
)
def test_a_type_is_the_part_behind_the_last_colon(text: str, name: str, number_type) -> None:
    found = read_output(text)
    assert (found.name, found.number_type) == (name, number_type)


@pytest.mark.parametrize("text", ["o:f99", "o:float32", "o:double", "-:u7", "a:b:int"])
def test_a_slip_of_the_type_is_no_file_name(text: str) -> None:
    with pytest.raises(UsageError, match="is no type of numbers"):
        read_output(text)


@pytest.mark.parametrize("text", ["/etc/x", "../x", "a/../../x", "", ".", "a\0b"])
def test_outputs_stay_below_the_working_directory(text: str) -> None:
    with pytest.raises(UsageError):
        read_output(text)
