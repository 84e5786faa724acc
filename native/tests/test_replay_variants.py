"""Comparisons of captured launches decide: right rewrites are accepted, wrong ones never."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from rpl_emu.replay import EmulatedReplayer
from rpl_testkit.requirements import require
from rpl_vmreplay.capture.folder import open_capture
from rpl_vmreplay.capture.plain_memory import captured_ranges
from rpl_vmreplay.compare import judge
from rpl_vmreplay.compare.judge import ACCEPTED, Allowance, Verdict
from rpl_vmreplay.compare.pair import compare_code, subjects_of
from rpl_vmreplay.interfaces import MemoryEdit, ReplayRequest, Rounding

from .replay_variants.variants import FOLDER, SUBJECTS

pytestmark = [pytest.mark.clang, pytest.mark.timeout(1800)]

_DEVICE = ("-x", "hip", "-std=c++20", "--offload-arch=gfx942", "--offload-device-only",
           "--no-gpu-bundle-output",
           "-nogpulib", "-nogpuinc", "-w", "-mcode-object-version=5", "-O3")  # fmt: skip
_EVERY_SUBJECT = pytest.mark.parametrize("name", SUBJECTS)


@pytest.fixture
def version_of(compiled):
    """``version_of("scan", 3)``: that version's code object."""

    def build(name, version):
        require("ld.lld-22")
        subject = SUBJECTS[name]
        options = [*_DEVICE, f"-DVERSION={version}", *subject.options, FOLDER / subject.source]
        return compiled(f"variant-{name}-{version}.hsaco", [require("clang++-22"), *options])

    return build


@pytest.fixture
def captured(version_of, emulator, monkeypatch, native_build, tmp_path):
    """``captured("scan")``: a capture of version 0, and its arrays before the launch."""
    del emulator  # says what is missing
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))

    def write(name, seed=7):
        arrays = SUBJECTS[name].draw(np.random.default_rng(seed))
        return SUBJECTS[name].write_capture(tmp_path / f"{name}-{seed}", version_of(name, 0), arrays), arrays

    return write


def test_another_order_of_sums_differs_by_rounding_only(captured, version_of, rpl_cli):
    folder, _ = captured("reduction")
    words = [str(folder), str(version_of("reduction", 0)), str(version_of("reduction", 1))]
    ran = rpl_cli("replay", "compare", *words, "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    found = json.loads(ran.stdout)
    assert found["verdict"] == "differs by rounding only"
    assert "where rounding alone may move them by" in found["reason"]
    (output,) = found["outputs"]
    assert 0 < output["rounding"]["largest_difference"] <= output["rounding"]["bound_there"]
    assert "and 10 others in its place" in found["covers"]
    outcomes = {one["name"]: one["outcome"] for one in found["inputs"]}
    # All sums of these are exact, in whatever order.
    assert outcomes["small integers"] == outcomes["integers"] == "equal"
    assert outcomes["around 0"] == "differs by rounding only"
    # What changes nothing with this input is drawn again.
    outcomes = [one["outcome"] for one in found["controls"]]
    assert outcomes.count("noticed") + outcomes.count("crashed") >= 9
    assert 0.75 <= found["found_share"] <= 1


def test_what_hides_below_rounding_shows_with_other_numbers(captured, version_of, tmp_path):
    """Terms so small that the captured sums hardly know them are left out."""
    folder, _ = captured("reduction")
    capture = open_capture(folder)
    subjects = subjects_of(capture, version_of("reduction", 0), version_of("reduction", 108), tmp_path)
    found = compare_code(capture, EmulatedReplayer(), subjects)
    assert found.verdict is Verdict.DIFFERENT
    capture_of_one_large = _with_one_large(capture)
    alone = compare_code(
        capture_of_one_large, EmulatedReplayer(), subjects, allowance=Allowance(other_inputs=False)
    )
    assert alone.verdict is Verdict.UNDECIDED, alone
    found = compare_code(capture_of_one_large, EmulatedReplayer(), subjects)
    assert found.verdict is Verdict.DIFFERENT
    assert "but with small integers" in found.reason


def _with_one_large(capture):
    """The sums of the first wave hide those of the third, which version 108 leaves out."""
    region = capture.regions[0]
    path = capture.path_of(region)
    values = np.frombuffer(path.read_bytes(), np.float32).copy()
    values[::256] = 3e9 + 1
    values[128:192] = values[384:448] = values[640:704] = values[896:960] = 0.5
    path.write_bytes(values.tobytes())
    return capture


def test_what_the_baseline_leaves_in_any_order_is_compared_as_a_set(captured, version_of, tmp_path):
    folder, _ = captured("compaction")
    capture = open_capture(folder)

    def against(version):
        subjects = subjects_of(
            capture, version_of("compaction", 0), version_of("compaction", version), tmp_path
        )
        return compare_code(capture, EmulatedReplayer(), subjects)

    right = against(3)
    assert right.verdict is Verdict.EQUAL, right.reason
    assert [one.any_order for one in right.outputs] == [True, True, False]
    assert against(107).verdict is Verdict.DIFFERENT  # a value beside the place of its neighbour


def test_of_a_kernel_that_writes_by_atomics_only_wrong_versions_end(version_of):
    """Without them all would crash, and every comparison were blind."""
    from rpl_codeobject.reading import read_code_objects
    from rpl_vmreplay.compare.mutants import mutants

    (code,) = read_code_objects(version_of("histogram", 0))
    edits = [one.edit for one in mutants(code, SUBJECTS["histogram"].symbol)]
    assert any(re.match(r"global_atomic_add at 0x[0-9a-f]+: left out", one) for one in edits), edits


def test_hidden_arguments_that_the_baseline_lacks_come_from_the_launch(captured, version_of, rpl_cli):
    """The candidate strides by ``gridDim``, which the baseline never reads."""
    folder, _ = captured("histogram")
    code = version_of("histogram", 2)
    ran = rpl_cli("replay", "compare", str(folder), str(version_of("histogram", 0)), str(code), "--json")
    assert (ran.exit_code, ran.json()["verdict"]) == (0, "equal"), ran.stdout + ran.stderr
    ran = rpl_cli("replay", "full-vm", str(folder), "--hsaco", str(code), "--device", "gfx942-emu", "--json")
    assert ran.exit_code == 0, ran.stderr


@pytest.mark.long
def test_hidden_arguments_come_from_the_launch_on_real_rocr_too(captured, version_of, replayed_by_api):
    folder, _ = captured("histogram")
    keep = captured_ranges(open_capture(folder))
    own, other = (
        replayed_by_api(folder, "emu", code_object=version_of("histogram", version), keep=keep)
        for version in (0, 2)
    )
    assert (own.failure, other.failure) == (None, None)
    assert own.kept == other.kept


def test_rounding_takes_the_direction_that_is_asked_for(captured, version_of):
    """Sums of positive numbers: rounded up they are not smaller, and exact ones do not move."""
    folder, arrays = captured("reduction")
    capture = open_capture(folder)
    keep = (captured_ranges(capture)[1],)
    place = SUBJECTS["reduction"].place(arrays, "values")

    def sums(rounding, values):
        request = ReplayRequest(
            folder, edits=(MemoryEdit(place, values.tobytes()),), keep=keep, rounding=rounding
        )
        result = EmulatedReplayer().replay(request)
        return np.frombuffer(result.kept[0], np.float32), result.rounded

    values = np.abs(arrays["values"])
    (nearest, rounded), (up, _), (down, _) = (
        sums(one, values) for one in (Rounding.NEAREST, Rounding.UP, Rounding.DOWN)
    )
    assert rounded is True
    assert (down <= nearest).all()
    assert (nearest <= up).all()
    assert (down < up).all()
    whole = np.arange(1000, dtype=np.float32)
    assert (sums(Rounding.UP, whole)[0] == sums(Rounding.DOWN, whole)[0]).all()


def test_halves_are_rounded_in_that_direction_but_where_they_are_to_be_kept(captured):
    folder, arrays = captured("reduction_sums16")
    keep = (captured_ranges(open_capture(folder))[1],)
    values = np.abs(arrays["values"])
    place = SUBJECTS["reduction_sums16"].place(arrays, "values")

    def sums(rounding, keep_halves=False):
        edits = (MemoryEdit(place, values.tobytes()),)
        request = ReplayRequest(folder, edits=edits, keep=keep, rounding=rounding, keep_halves=keep_halves)
        result = EmulatedReplayer().replay(request)
        return np.frombuffer(result.kept[0], np.float32), result.rounded

    nearest, rounded = sums(Rounding.NEAREST)
    up, down = (sums(one)[0] for one in (Rounding.UP, Rounding.DOWN))
    assert rounded is True
    assert (down < nearest).all()
    assert (nearest < up).all()
    parts = [values[at : at + 256].astype(np.float64) for at in range(0, 1000, 256)]
    assert (down <= [part.sum() for part in parts]).all()
    assert (up >= [part.sum() for part in parts]).all()
    # Of the kernel's arithmetic nothing but halves is inexact.
    assert (sums(Rounding.UP, keep_halves=True)[0] == nearest).all()


@pytest.mark.long
def test_other_constants_are_no_rounding(captured, version_of, tmp_path):
    """Coefficients of double precision: with numbers on which the baseline rounds nothing they show."""
    folder, _ = captured("stencil")
    capture = open_capture(folder)
    subjects = subjects_of(capture, version_of("stencil", 0), version_of("stencil", 6), tmp_path)
    found = compare_code(capture, EmulatedReplayer(), subjects)
    assert found.verdict is Verdict.DIFFERENT
    assert "the baseline rounds nothing there" in found.reason or "0 may be rounding" in found.reason


@pytest.mark.long
@_EVERY_SUBJECT
def test_right_versions_are_accepted_and_wrong_ones_never(captured, version_of, tmp_path, monkeypatch, name):
    monkeypatch.setattr(judge, "MUTANTS", judge.LEAST_MUTANTS)
    folder, _ = captured(name)
    capture, subject = open_capture(folder), SUBJECTS[name]

    def against(version):
        subjects = subjects_of(capture, version_of(name, 0), version_of(name, version), tmp_path)
        return compare_code(capture, EmulatedReplayer(), subjects)

    found = {version: against(version) for version in (*subject.right_versions, *subject.wrong_versions)}
    passed = {version for version, one in found.items() if one.verdict in ACCEPTED}
    told = {version: (one.verdict.value, one.reason) for version, one in found.items()}
    assert passed == set(subject.right_versions), told


@pytest.mark.long
@_EVERY_SUBJECT
def test_right_versions_are_right_and_wrong_ones_wrong(captured, version_of, name):
    """By numpy in double precision: on every input, or on some, or they race."""
    subject = SUBJECTS[name]
    folder, arrays = captured(name)
    inputs = [arrays, *(subject.draw(np.random.default_rng(seed)) for seed in (8, 9)), *_special(arrays)]
    if name.endswith("sums16"):  # sums of few whole numbers are exact in halves: nothing hides in rounding
        inputs.append(_whole(arrays))

    def fails(version, before, **settings):
        edits = tuple(
            MemoryEdit(subject.place(arrays, key), value.tobytes()) for key, value in before.items()
        )
        keep = captured_ranges(open_capture(folder))
        code = version_of(name, version)
        request = ReplayRequest(folder, code_object=code, edits=edits, keep=keep, time_limit_s=60, **settings)
        result = EmulatedReplayer().replay(request)
        if result.failure is not None:  # nothing is kept then
            return True
        after = {
            key: np.frombuffer(content, value.dtype)
            for (key, value), content in zip(before.items(), result.kept, strict=True)
        }
        return bool(result.findings) or subject.wrong(before, after)

    for version in (0, *subject.right_versions):
        assert not any(fails(version, before) for before in inputs), version
        assert not fails(version, arrays, sanitize=True), version
    for version in subject.wrong_versions:
        wrong = any(fails(version, before, variation=k) for k in (0, 1) for before in inputs)
        assert wrong or fails(version, arrays, sanitize=True), version


def _whole(arrays):
    """Small whole numbers where an input has halves."""
    rng = np.random.default_rng(10)
    return {
        key: rng.integers(-2, 3, value.size).astype(value.dtype) if value.any() else value
        for key, value in arrays.items()
    }


def _special(arrays):
    """The first array as large negative numbers, as few values that are often there, or as zeros and
    small numbers: next to them no term is too small to show."""
    name, first = next(iter(arrays.items()))
    draw = np.random.default_rng(3)
    if first.dtype.kind == "f":
        return [
            {**arrays, name: (-draw.uniform(120, 160, len(first))).astype(first.dtype)},
            {**arrays, name: draw.integers(-2, 3, len(first)).astype(first.dtype)},
            {**arrays, name: np.zeros_like(first)},
            *(
                [{**arrays, name: draw.uniform(0, 9e-4, len(first)).astype(first.dtype)}]
                * (first.itemsize == 4)
            ),
        ]
    if first.dtype.kind == "u":
        return [{**arrays, name: draw.integers(250, 256, len(first)).astype(first.dtype)}]
    ends = np.iinfo(first.dtype)
    return [{**arrays, name: draw.integers(ends.min, ends.max, len(first), first.dtype)}]
