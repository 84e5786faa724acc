"""Code at hand: found by symbol or name, refused where it would mislead, and hostile pointers to it."""

from __future__ import annotations

import json
import os

import attrs
import pytest

from rpl_analysis.instruction_mix import KernelMix, NoMix, mix_of
from rpl_codeobject import at_hand
from rpl_codeobject.at_hand import code_at_hand
from rpl_codeobject.kernel_code import KernelCode, PackedMix
from rpl_codeobject.reading import MAX_RECORDED_BYTES, code_beside, read_uri
from rpl_core.errors import MissingError, RplError
from rpl_core.model.recording import Recording
from rpl_core.model.trace import TraceRole, TraceSource
from rpl_testkit.traces import make_trace

#: A kernel of the demo, by its very symbol, whose arithmetic is all packed here.
NBODY = "_Z12nbody_forcesPK15HIP_vector_typeIfLj4EEPS0_if"
SOURCE = f"""
typedef float pair __attribute__((ext_vector_type(2)));
extern "C" __global__ void {NBODY}(pair* a, pair b, pair c) {{
  pair x = a[LANE];
  for (int i = 0; i < 16; i++) x = __builtin_elementwise_fma(x, b, c);
  a[LANE] = x;
}}
template <class T> __global__ void scale(T* a, T b) {{ a[LANE] = a[LANE] * b + b; }}
template __global__ void scale<float>(float*, float);
__attribute__((noinline, device)) float twice(float x) {{ return x * x + x; }}
__global__ void caller(float* a) {{ a[LANE] = twice(a[LANE]); }}
"""
ALL_PACKED = {"F32": PackedMix(32, 32)}


@pytest.fixture
def packed_code(compile_hip, rpl_require):
    rpl_require("llvm-objdump-22")
    return compile_hip(SOURCE, name="app.hsaco")


def recording(*names, uri=None, role=None, path=None):
    trace = make_trace([(name, 10 * i, 10 * i + 5) for i, name in enumerate(names)], role=role)
    kernels = tuple(attrs.evolve(kernel, code_object=uri) for kernel in trace.kernels)
    source = TraceSource("test", "test", () if path is None else (str(path),))
    return Recording((attrs.evolve(trace, kernels=kernels, source=source),))


def test_kernels_are_found_by_symbol_and_by_demangled_name(packed_code):
    found = code_at_hand(
        (packed_code,), recorded=False, recording=recording(NBODY, "void scale<float>(float*, float)")
    )
    mixes = {code.symbol: code.packed for code in found.kernels}
    assert mixes == {NBODY: ALL_PACKED, "_Z5scaleIfEvPT_S0_": {"F32": PackedMix(0, 2)}}
    assert {code.source for code in found.kernels} == {"app.hsaco"}
    assert found.diagnostics == ()


def test_a_kernel_that_calls_functions_is_refused(packed_code):
    (code,) = code_at_hand((packed_code,), recorded=False, recording=recording("caller(float*)")).kernels
    mix = mix_of("caller(float*)", (), {"gfx942"}, [code])
    assert isinstance(mix, NoMix)
    assert "not inlined" in mix.reason


def _code(**changes):
    return attrs.evolve(KernelCode("_Z1kv", "k()", "gfx942", "app", ALL_PACKED), **changes)


def test_blanks_in_names_do_not_matter_but_arguments_do():
    assert isinstance(mix_of("f<a<b> >(int)", (), (), [_code(demangled="f<a<b>>(int)")]), KernelMix)
    assert isinstance(mix_of("k(int)", (), (), [_code()]), NoMix)


def test_code_of_another_gpu_or_of_another_build_is_refused():
    assert "gfx90a only" in mix_of("k()", (), {"gfx942"}, [_code(architecture="gfx90a")]).reason
    other = _code(source="old", packed={})
    assert "differ in this kernel (app, old)" in mix_of("k()", (), {"gfx942"}, [_code(), other]).reason
    assert mix_of("k()", (), {"gfx942"}, [_code(), _code(source="copy")]) == KernelMix(ALL_PACKED, "app")


def test_without_a_disassembler_it_says_what_to_install(packed_code, monkeypatch):
    def absent():
        raise MissingError("no llvm-objdump found", next_step="install LLVM's tools")

    monkeypatch.setattr(at_hand, "find_disassembler", absent)
    found = code_at_hand((packed_code,), recorded=False, recording=recording(NBODY))
    (problem,) = found.diagnostics
    assert (found.kernels, problem.code, problem.remedy) == (
        (),
        "code.no_disassembler",
        "install LLVM's tools",
    )


def test_an_unreadable_file_costs_itself_only(packed_code, tmp_path):
    (tmp_path / "text.txt").write_text("no code")
    found = code_at_hand((tmp_path / "text.txt", packed_code), recorded=False, recording=recording(NBODY))
    assert [code.symbol for code in found.kernels] == [NBODY]
    assert [(d.code, "text.txt" in d.fact) for d in found.diagnostics] == [("code.unreadable", True)]


def test_a_uri_is_read_on_request_only(packed_code):
    size = packed_code.stat().st_size
    embedded = packed_code.with_name("my app")
    embedded.write_bytes(b"#" * 100 + packed_code.read_bytes() + b"#" * 50)
    uri = f"file://{packed_code.parent}/my%20app#offset=0x64&size={size}"
    asked = code_at_hand((), recorded=True, recording=recording(NBODY, uri=uri))
    assert [(code.source, code.packed) for code in asked.kernels] == [("my app", ALL_PACKED)]
    assert code_at_hand((), recorded=False, recording=recording(NBODY, uri=uri)).kernels == ()


def test_code_beside_a_thread_trace_is_at_hand_without_asking(packed_code):
    folder = packed_code.parent / "ui_output_agent_1_dispatch_2"
    folder.mkdir()
    packed_code.rename(packed_code.parent / "12_gfx942_code_object_id_3.out")
    traced = recording(NBODY, role=TraceRole.THREAD_TRACE, path=folder / "code.json")
    assert len(code_at_hand((), recorded=False, recording=traced).kernels) == 1
    plain = recording(NBODY, path=packed_code.parent / "trace.db")
    assert code_at_hand((), recorded=False, recording=plain).kernels == ()
    assert len(code_at_hand((), recorded=True, recording=plain).kernels) == 1


@pytest.mark.parametrize(
    "uri",
    [
        *("memory://1#offset=0x10&size=20", "http://host/app", "file://host/app", "", "file:", "//[", "app"),
        *("file:///dev/zero", "file:///", "file:///usr", "file:///no/such", "file:///a%00b"),
        *("file://{folder}/pipe", "file://{folder}/small#offset=-1", "file://{folder}/small#size=99"),
        *("file://{folder}/small#offset=3&size=1", "file://{folder}/small#offset=0x", "file://{folder}/huge"),
        *("file://{folder}/huge#size=99999999999", "file://{folder}/small#offset=9999999999999999999"),
        "file:///" + "x" * 10_000,
    ],
)
def test_hostile_uris_are_refused_with_one_reason(uri, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "small").write_bytes(b"abc")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_RECORDED_BYTES + 1)
    with pytest.raises(RplError):
        read_uri(uri.format(folder=tmp_path))


def test_links_and_other_files_beside_a_recording_are_left_alone(tmp_path):
    for name in ("a.hsaco", "code_object_id_1.out", "b.db"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link.co").symlink_to(tmp_path / "a.hsaco")
    (tmp_path / "folder.co").mkdir()
    names = [path.name for path in code_beside((tmp_path, tmp_path, tmp_path / "none"))]
    assert names == ["a.hsaco", "code_object_id_1.out"]


def test_packed_arithmetic_of_a_run_is_estimated_beside_the_count(packed_code, rpl_cli, tmp_path):
    rpl_cli("demo", "--recorded", "--runs", "1", "-o", tmp_path / "run").assert_ok()
    before = _nbody(tmp_path / "run")
    rpl_cli("analyze", tmp_path / "run", "--code-object", packed_code).assert_ok()
    after = _nbody(tmp_path / "run")

    assert "--code-object" in before["corrections"]["packed"]["reason"]
    packed = after["corrections"].pop("packed")
    assert (packed["exactness"], packed["source"]) == ("estimate", "instructions of app.hsaco")
    assert packed["value"] == pytest.approx(_with_packed_doubled(after))
    before["corrections"].pop("packed")
    assert after == before  # measured figures stay
    explained = rpl_cli("explain", "nbody", "--run", tmp_path / "run").assert_ok().stdout
    assert "FLOPs, packed" in explained
    assert "[instructions of app.hsaco]" in explained
    report = rpl_cli("report", tmp_path / "run").assert_ok().stdout
    assert "FLOPs per launch" not in report  # no label hangs on it: `explain` is where to ask


def _nbody(run):
    kernels = json.loads((run / "roofline.json").read_text())["kernels"]
    return next(kernel for kernel in kernels if kernel["name"].startswith("nbody"))


def _with_packed_doubled(kernel):
    flops = {work["data_type"]: work["operations"]["value"] for work in kernel["types"]}
    return kernel["flops"]["value"] + flops["F32"]


def test_code_of_other_kernels_and_absent_files_are_told(packed_code, rpl_cli, tmp_path, compile_hip):
    rpl_cli("demo", "--recorded", "--runs", "1", "-o", tmp_path / "run").assert_ok()
    other = compile_hip("__global__ void other(int* a) { a[LANE] = 1; }", name="other.hsaco")
    told = rpl_cli("analyze", tmp_path / "run", "--code-object", other).assert_ok().stderr
    assert "have none of the recorded kernels" in told
    absent = rpl_cli("analyze", tmp_path / "run", "--code-object", tmp_path / "none").assert_exit(69)
    assert "no code object at" in absent.stderr
