"""``varied-inputs``: edits that the supplied input does not show are refused, right ones are not."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from pathlib import Path

import attrs
import numpy as np
import pytest

from rpl_emu.replay import EmulatedReplayer
from rpl_optimize.interfaces.equivalence import EquivalenceVerdict
from rpl_vmreplay.capture.folder import open_capture
from rpl_vmreplay.compare.pair import subjects_of
from rpl_vmreplay.optimizer_checks import Limits, Tolerance, compare_on_varied_inputs, report

from . import blind_edits, varied_edits
from .emu_program import DEVICE
from .varied_edits import RIGHT, WRONG, Edit

pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]

FOLDER = Path(__file__).parent / "varied"
LAUNCHES = {**varied_edits.LAUNCHES, **blind_edits.LAUNCHES}
FIRST, APART = 0x4801400000, 0x100000
#: No clock decides here.
LIMITS = Limits(inputs=200, seconds=None, strict=True)
TOLERANCE = Tolerance(relative=1e-5)


def _source(kernel):
    if kernel in blind_edits.SOURCES:
        return f'#include "kernels.h"{blind_edits.SOURCES[kernel]}'
    return (FOLDER / f"{kernel}.hip").read_text()


@pytest.fixture
def code_of(compiled, programs_folder):
    """``code_of("scale")``, ``code_of("scale", edit)``: the kernel's code object."""

    def build(kernel, edit=None, source=None):
        text = own = _source(kernel)
        if source is not None:
            text = source
        name = f"varied-{kernel}"
        if edit is not None:
            assert text.count(edit.find) == 1, edit
            text = text.replace(edit.find, edit.replace)
        if text != own:
            name += f"-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        programs_folder.mkdir(parents=True, exist_ok=True)
        place = programs_folder / f"{name}.hip"
        # Another process may be compiling it: never a half-written file.
        own_place = programs_folder / f"{name}.{os.getpid()}"
        own_place.write_text(text)
        own_place.replace(place)
        return compiled(f"{name}.hsaco", ["clang++-22", *DEVICE, "-O3", f"-I{FOLDER}", place])

    return build


def _packed(launch, addresses):
    content = b""
    for name, value in launch.arguments.items():
        letter, number = ("Q", addresses[name]) if isinstance(value, np.ndarray) else value
        size = struct.calcsize(letter)
        content += bytes(-len(content) % size) + struct.pack(f"<{letter}", number)
    return content


@pytest.fixture
def capture_of(code_of, tmp_path_factory, monkeypatch, native_build, emulator):
    """``capture_of("scale")``: its launch, as the first rocm-perf-lab writes captures."""
    del emulator  # says what is missing
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))

    def write(kernel):
        from rpl_codeobject.reading import read_code_objects

        folder = tmp_path_factory.getbasetemp() / f"varied-capture-{kernel}"
        if folder.exists():
            return open_capture(folder)
        (folder / "memory").mkdir(parents=True)
        launch, code = LAUNCHES[kernel], code_of(kernel)
        buffers = {name: one for name, one in launch.arguments.items() if isinstance(one, np.ndarray)}
        addresses = {name: FIRST + APART * number for number, name in enumerate(buffers)}
        regions = []
        kinds = {"is_pool": True, "is_vmem": False, "contains_kernarg": False, "handle": 0, "access": 0}
        for name, content in buffers.items():
            base = addresses[name]
            (folder / "memory" / f"region_{base:x}.bin").write_bytes(content.tobytes())
            regions.append({"base": base, "size": content.nbytes, **kinds})
        (one,) = read_code_objects(code)
        arguments = _packed(launch, addresses)
        told = {
            "mangled_name": f"{one.kernels[0].name}.kd", "demangled_name": kernel + launch.signature,
            "agent_name": "gfx942", "isa_name": "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-",
            "wavefront_size": 64, "kernel_object": 0, "grid": [launch.groups * launch.block, 1, 1],
            "block": [launch.block, 1, 1], "group_segment_size": one.kernels[0].lds_bytes,
            "private_segment_size": 0, "kernarg_size": len(arguments) + 256, "dispatch_index": 0,
        }  # fmt: skip
        (folder / "dispatch.json").write_text(json.dumps(told))
        (folder / "memory_regions.json").write_text(json.dumps({"regions": regions}))
        (folder / "kernarg.bin").write_bytes(arguments + bytes(256))
        (folder / "kernel.hsaco").write_bytes(code.read_bytes())
        return open_capture(folder)

    return write


@pytest.fixture
def asked(capture_of, code_of, tmp_path):
    """``asked(edit)``: the report on it."""

    def ask(edit, limits=LIMITS, sources=None, **options):
        capture = capture_of(edit.kernel)
        codes = (
            (code_of(edit.kernel), code_of(edit.kernel, edit))
            if sources is None
            else [code_of(edit.kernel, source=one) for one in sources]
        )
        subjects = subjects_of(capture, *codes, tmp_path)
        return report(
            compare_on_varied_inputs(capture, EmulatedReplayer(), subjects, limits, TOLERANCE, **options),
            limits,
        )

    return ask


@pytest.fixture
def results_of(code_of, emulator):
    """``results_of(edit, given)``: what the kernel and the edited one leave, by the emulator alone."""

    def run(edit, given):
        launch = LAUNCHES[edit.kernel]
        groups, block = given.get("groups", launch.groups), given.get("block", launch.block)
        words, count = [], 0
        for number, (name, value) in enumerate(launch.arguments.items()):
            if isinstance(value, np.ndarray):
                content = given[name](value) if name in given else value
                word = emulator.file(f"{number}.bin", content.astype(value.dtype))
                if name == launch.out:
                    word, count = f"{word},out={emulator.output('out.bin')}", content.nbytes
                words.append(word)
            else:
                letter = {"i": "i32", "I": "u32", "q": "i64", "f": "f32"}[value[0]]
                words.append(f"{letter}:{given.get(name, value[1])}")
        sides = []
        for code in (code_of(edit.kernel), code_of(edit.kernel, edit)):
            from .emu_program import kernels_of

            done = emulator.launch(
                code, kernels_of(code)[0], *words, grid=str(groups * block), block=str(block)
            )
            assert done.status in (0, 4), done.stderr
            content = emulator.output("out.bin").read_bytes()[:count] if done.status == 0 else b"fault"
            sides.append(content)
        return sides

    return run


def _same(edit, left, right):
    dtype = LAUNCHES[edit.kernel].arguments[LAUNCHES[edit.kernel].out].dtype
    if left == right:
        return True
    if b"fault" in (left, right) or dtype != np.float32:
        return False
    return np.allclose(np.frombuffer(left, dtype), np.frombuffer(right, dtype), rtol=1e-5, atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("edit", [*WRONG[::4], *blind_edits.WRONG[::8]], ids=lambda edit: edit.name)
def test_a_wrong_edit_is_one_that_the_supplied_input_does_not_show(results_of, edit):
    assert _same(edit, *results_of(edit, {}))
    assert not _same(edit, *results_of(edit, edit.witness))


@pytest.mark.long
@pytest.mark.parametrize("kernel", sorted(LAUNCHES))
def test_wrong_edits_are_refused_and_right_ones_are_not(asked, kernel):
    """The figure for all of them: docs/optimize-equivalence.md."""
    missed = []
    for edit in (*WRONG, *RIGHT, *blind_edits.WRONG, *blind_edits.RIGHT):
        if edit.kernel != kernel:
            continue
        answer = asked(edit)
        expected = EquivalenceVerdict.EQUAL if edit.witness is None else EquivalenceVerdict.DIFFERENT
        if answer.verdict is not expected:
            missed.append((edit.name, answer.verdict.value, answer.evidence))
    assert [one for one in missed if one[0] not in KNOWN_TO_PASS] == []


#: Wrong edits that 200 inputs do not show. They need three things at once.
KNOWN_TO_PASS = {"limits: v = short(v) * 2"}


def test_the_corpus_is_as_large_as_it_is_said_to_be():
    assert (len(WRONG) >= 60, len(RIGHT) >= 60) == (True, True)
    assert len({one.kernel for one in (*WRONG, *RIGHT)}) == len(varied_edits.LAUNCHES)
    assert len(KNOWN_TO_PASS) <= len(WRONG) // 12


def _one(edits, kernel, part):
    (found,) = [one for one in edits if one.kernel == kernel and part in one.replace]
    return found


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_one(WRONG, "scale", "n > 100000"), "argument at 20 = 100001"),
        (_one(WRONG, "scale", "mode & 1"), "argument at 24 = "),
        (_one(WRONG, "scale", "in[i] == 42.0f"), "dictionary contents"),
        (_one(WRONG, "sums", "i += 1024"), "workgroups"),
    ],
)
def test_an_edit_that_is_wrong_for_other_inputs_only_is_refused(asked, edit, said):
    answer = asked(edit)
    assert answer.verdict is EquivalenceVerdict.DIFFERENT, answer.evidence
    assert said in answer.evidence


def test_a_right_edit_is_equal_and_the_verdict_lists_what_was_compared(asked):
    few = attrs.evolve(LIMITS, inputs=60)
    answer = asked(_one(RIGHT, "rows", "unroll 4"), few)
    assert answer.verdict is EquivalenceVerdict.EQUAL, answer.evidence
    assert "of 61 inputs compared" in answer.evidence
    assert "dropped because the baseline faults or leaves its memory" in answer.evidence
    answer = asked(_one(RIGHT, "histogram", "unroll 4"), few)
    assert answer.verdict is EquivalenceVerdict.EQUAL, answer.evidence
    assert "watched for races" in answer.evidence
    assert "for the order of barriers and atomics" in answer.evidence


#: On the captured input alone.
ALONE = attrs.evolve(LIMITS, inputs=0)
COOPERATION = (
    # No barrier; one moved over a load, over a store; one more; the same in other turns.
    (Edit("sums", "part[T] = sum;\n  SYNC();", "part[T] = sum;"), "race"),
    (Edit("softmax", "top = part[0];\n  SYNC();\n  float sum = 0.0f;", "SYNC();\n  top = part[0];\n  float sum = 0.0f;"), "race"),  # noqa: E501
    (Edit("scan", "part[0][T] = i < n ? in[i] : 0;\n  SYNC();", "SYNC();\n  part[0][T] = i < n ? in[i] : 0;"), "race"),  # noqa: E501
    (Edit("sums", "part[T] = sum;\n  SYNC();", "part[T] = sum;\n  SYNC();\n  SYNC();"), "passes 10 barriers, the baseline 9"),  # noqa: E501
    (Edit("blur", "SYNC();\n  const float left = tile[T]", "const float left = tile[T]"), "race"),
    (Edit("histogram", "k < 256; k += D) local[k] = 0;\n  SYNC();", "k < 256; k += D) local[k] = 0;"), "another sequence of barriers|passes 2 barriers|race"),  # noqa: E501
    (Edit("histogram", "if (value < bins) ADD(&local[value], 1u);", "if (value < bins) local[value] += 1u;"), "race|another sequence"),  # noqa: E501
)  # fmt: skip


@pytest.mark.parametrize(("edit", "said"), COOPERATION, ids=lambda one: getattr(one, "name", None))
def test_waves_that_work_together_otherwise_are_refused_on_the_captured_input(asked, edit, said):
    answer = asked(edit, ALONE)
    assert answer.verdict is EquivalenceVerdict.DIFFERENT, answer.evidence
    assert re.search(said, answer.evidence), answer.evidence


def _sources(edit, *more):
    """Of the kernel as it is, and with edits in the place of its own ones."""
    text = edited = _source(edit.kernel)
    for find, replace in ((edit.find, edit.replace), *more):
        assert edited.count(find) == 1, find
        edited = edited.replace(find, replace)
    return text, edited


#: What is in memory in the end is the same, and nothing races.
MAY_DIFFER = (
    ("prefix", "if (T >= step) part[T] += other;"),  # stores that change nothing left out
    ("prefix", "next[256]"),  # other arrays, with fewer barriers
    ("turn", "tile[tx * 16 + ty] = in"),  # the same words elsewhere
    ("bins", "part[T] != 0) ADD"),  # atomics that add nothing left out
    ("exchange", "up ? least(a, b)"),  # what was there is stored again
    ("gather", "amdgpu_flat_work_group_size"),  # a limit that this launch keeps
)


@pytest.mark.parametrize(("kernel", "part"), MAY_DIFFER)
def test_waves_may_do_otherwise_what_nobody_can_see(asked, kernel, part):
    answer = asked(_one(blind_edits.RIGHT, kernel, part), ALONE)
    assert answer.verdict is EquivalenceVerdict.EQUAL, answer.evidence


_KEPT = '#include "kernels.h"\nKERNEL exchange(int* data, int n, int j, int k, int descending) {\n  const int last = data[n - 1];\n  if (I < n - 1) data[I] += last;\n'  # noqa: E501
MAY_NOT = (
    # Two arrays without the one barrier that each turn has; more LDS with one barrier less.
    _sources(_one(blind_edits.RIGHT, "prefix", "next[256]"), ("SYNC();\n    unsigned*", "unsigned*")),
    _sources(Edit("sums", "part[256]", "part[256 + 8]"), ("part[T] = sum;\n  SYNC();", "part[T] = sum;")),
    # What was there is stored again by one workgroup, while the other one reads it.
    (_KEPT + "}", _KEPT + '  asm volatile("" ::: "memory");\n  if (T == 0) data[n - 1] = last;\n}'),
)  # fmt: skip


@pytest.mark.parametrize(("kernel", "sources"), [*zip(("prefix", "sums", "exchange"), MAY_NOT, strict=True)])
def test_that_freedom_lets_nothing_pass_that_races(asked, kernel, sources):
    answer = asked(Edit(kernel, "", ""), ALONE, sources=sources)
    assert answer.verdict is EquivalenceVerdict.DIFFERENT, answer.evidence
    assert "race" in answer.evidence


def test_a_moved_barrier_is_found_where_neither_results_nor_races_tell(asked):
    """Every wave reads the word in another version, and the versions hold the same."""
    kernel = (FOLDER / "sums.hip").read_text()
    last = "if (T == 0) out[B] = part[0];"
    ones = "SYNC();\n  part[T] = 1.0f;\n  SYNC();\n  "
    edited = kernel.replace(last, ones + "if (T == 128) out[B] = part[0];\n  " + ones)
    moved = kernel.replace(last, ones + ones + "if (T == 128) out[B] = part[0];\n  ")
    assert edited not in (kernel, moved)
    answer = asked(Edit("sums", "", ""), ALONE, sources=(edited, moved))
    assert answer.verdict is EquivalenceVerdict.DIFFERENT, answer.evidence
    assert "reads version" in answer.evidence


def test_a_workgroup_of_one_wave_may_lose_its_barriers(asked):
    kernel = (FOLDER / "product.hip").read_text()
    fence = '__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "wavefront")'
    answer = asked(Edit("product", "", ""), ALONE, sources=(kernel, kernel.replace("SYNC()", fence)))
    assert answer.verdict is EquivalenceVerdict.EQUAL, answer.evidence


def test_differences_in_no_numbers_count_where_the_build_keeps_them(asked):
    edit = Edit("scale", "out[i] = v;", "out[i] = v != v ? 0.0f : v;")
    strict = asked(edit)
    assert strict.verdict is EquivalenceVerdict.DIFFERENT, strict.evidence
    for known in (False, None):
        answer = asked(edit, attrs.evolve(LIMITS, inputs=120, strict=known))
        assert answer.verdict is EquivalenceVerdict.EQUAL
        assert "only NaN, infinities or denormals differ" in answer.evidence
        assert ("unknown" in answer.evidence) is (known is None)


def test_what_could_not_be_run_is_not_compared(asked):
    edit = _one(RIGHT, "scale", "v += 1.0f")
    late = asked(edit, attrs.evolve(LIMITS, seconds=1e-9))
    assert late.verdict is EquivalenceVerdict.NOT_RUN
    assert "not compared" in late.evidence
    unknown = Edit("scale", "out[i] = v;", 'asm volatile("s_sendmsg sendmsg(MSG_INTERRUPT)"); out[i] = v;')
    answer = asked(unknown)
    assert answer.verdict is EquivalenceVerdict.NOT_RUN
    assert "s_sendmsg" in answer.evidence


def test_an_emulator_that_breaks_off_is_neither_time_nor_equal(asked, monkeypatch):
    """It answers the captured input, then some of the next ones, and is killed."""
    from rpl_emu import software_gpu

    real = software_gpu.command_of

    def broken(words):
        script = 'out=$("$@"); echo "$out" | head -n 5; [ $(echo "$out" | wc -l) -lt 6 ] || kill -SEGV $$'
        return ["bash", "-c", script, "-", *real(words)]

    monkeypatch.setattr(software_gpu, "command_of", broken)
    answer = asked(_one(RIGHT, "scale", "v += 1.0f"), attrs.evolve(LIMITS, inputs=10))
    assert answer.verdict is EquivalenceVerdict.NOT_RUN, answer.evidence
    assert "the emulator ended with signal 11, at this input: " in answer.evidence
    assert "6 of 11 inputs compared until then" in answer.evidence
    assert "time" not in answer.evidence


@pytest.mark.parametrize("element", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"])
@pytest.mark.parametrize("captured", [0, 255])
def test_whole_numbers_of_any_width_are_varied(element, captured):
    from rpl_vmreplay.inputs.arguments import Content, _integers

    for ascending in (False, True):
        content = Content(
            element=element, captured=bytes([captured] * 64), ascending=ascending, holds_addresses=False
        )
        for kind in (
            "zero",
            "one",
            "any",
            "negative",
            "huge",
            "tiny",
            "dictionary",
            "special",
            "lowest",
            "ramp",
            "falling",
            "ties",
            "text",
            "near",
            "drawn",
        ):
            made = _integers(content, kind, [0, 3, -1], np.random.default_rng(1), 8, [7, -2.5])
            assert len(made) % int(element[1]) == 0


_STEPS = "  for (int step = 128; step > 0; step /= 2) {"
_LANES = """  for (int step = 128; step > 32; step /= 2) {
    if (T < step) part[T] += part[T + step];
    SYNC();
  }
  if (T < 64) {
    float own = part[T];
    for (int by = 32; by > 0; by /= 2) {
      int other = __builtin_amdgcn_ds_bpermute((T + by) * 4, __builtin_bit_cast(int, own));
      if (T < by) own += __builtin_bit_cast(float, other);
    }
    if (T < 32) part[T] = own;
  }
  SYNC();
  for (int step = 0; step > 0; step /= 2) {"""


def test_fewer_barriers_pass_where_they_are_declared_and_results_count_as_ever(asked):
    limits = attrs.evolve(LIMITS, inputs=24)
    edit = Edit("sums", _STEPS, _LANES)
    undeclared = asked(edit, limits)
    assert (undeclared.verdict, "barriers" in undeclared.evidence) == (EquivalenceVerdict.DIFFERENT, True)
    declared = asked(edit, limits, same_barriers=False)
    assert declared.verdict is EquivalenceVerdict.EQUAL, declared.evidence
    assert "how waves work together could not be compared" in declared.evidence
    for old, new in (("by = 32", "by = 16"), ("    SYNC();\n", "")):
        wrong = asked(Edit("sums", _STEPS, _LANES.replace(old, new)), limits, same_barriers=False)
        assert wrong.verdict is EquivalenceVerdict.DIFFERENT, new
