"""A machine for the self-test: the profiler's stand-in, and a program that says what a GPU would have done.

The code object is real, of the program of known work by clang; its counts are the emulator's. The stand-in is
told to record those, and the program prints the times that it is told to record. So all of it is synthetic.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from rpl_selftest.bench import ON_A_GPU, TRACED, kernels, kernels_of_testbed

TIMES_NS = {"stream_copy": 150_000, "fma_short": 4_000_000, "fma_long": 8_000_000}
#: Argument list as the real one has it.
PROGRAM = """\
#!{python} -SE
import sys
if sys.argv[1] == "chain":
    sys.exit()
with open(sys.argv[4], "w") as times:
    for _ in range(int(sys.argv[3])):
        for name, time_ns in {times}.items():
            times.write(f"{{name}} {{time_ns + 6000}}\\n")
print("known_work: wrong 0 of 17")
"""
#: Counters of the stand-in that follow from a work model, by its fields.
PER_WAVE = {
    "salu_per_wave": "SQ_INSTS_SALU",
    "smem_per_wave": "SQ_INSTS_SMEM",
    "branch_per_wave": "SQ_INSTS_BRANCH",
    "vmem_read_per_wave": "SQ_INSTS_VMEM_RD",
    "vmem_write_per_wave": "SQ_INSTS_VMEM_WR",
    "lds_per_wave": "SQ_INSTS_LDS",
}
TYPED = ("FMA_F64", "ADD_F64", "MUL_F64", "FMA_F32", "ADD_F32", "MUL_F32", "INT32", "INT64", "CVT")


ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def native():
    """The build of the checkout, unless another one is named; modules behind find none in the environment."""
    from rpl_testkit.requirements import absent

    folder = Path(os.environ.get("RPL_EMU_FOLDER") or ROOT / "build")
    if not (folder / "native" / "emu" / "rpl-emu").is_file():
        absent("emulator", f"it is not built in {folder}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RPL_EMU_FOLDER", str(folder))
        patch.setenv("RPL_NATIVE_FOLDER", str(folder))
        yield folder


def launched(code, kernel, symbol):
    """The emulator's counters of one launch."""
    words = ["emu", "launch", code, "--kernel", symbol, "--grid", ",".join(map(str, kernel.grid))]
    words += ["--block", ",".join(map(str, kernel.workgroup)), "--json", "--time-limit", 300]
    words += [word for one in kernel.arguments for word in ("--arg", one)]
    start = "import sys; from rpl_core.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", start, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: one["value"] for name, one in json.loads(done.stdout)["amd_counters"].items()}


def compiled(folder, source):
    """The code object of a program by clang, and the symbols of its kernels with their registers."""
    from rpl_codeobject.reading import read_code_objects
    from rpl_testkit.hipcc_standin import HIP
    from rpl_testkit.requirements import require

    compiler = require("clang++-22")
    require("ld.lld-22")
    code = folder / f"{source.stem}.hsaco"
    words = [
        compiler,
        *HIP,
        "--offload-device-only",
        "--no-gpu-bundle-output",
        "-O3",
        "--offload-arch=gfx942",
    ]
    subprocess.run(list(map(str, [*words, source, "-o", code])), check=True)
    return code, {one.name: one for part in read_code_objects(code) for one in part.kernels}


def modelled(kernel, code, kernels_of_code, **model):
    """What the stand-in is told of a kernel: the emulator's exact counts, per wave."""
    symbol = next(filter(kernel.is_symbol, kernels_of_code))
    counts = launched(code, kernel, symbol)
    waves = counts["SQ_WAVES"]
    assert all(value % waves == 0 for value in counts.values())
    typed = {ending: counts.get(f"SQ_INSTS_VALU_{ending}", 0) // waves for ending in TYPED}
    other = counts["SQ_INSTS_VALU"] // waves - sum(typed.values())
    moved = (kernel.bytes_moved or 0) // 2
    work = {field: counts[counter] // waves for field, counter in PER_WAVE.items()}
    work |= {"valu_per_wave": {**typed, "OTHER": other}, "read_bytes": moved, "write_bytes": moved}
    # As few as there are: the stand-in takes no more than 2000 samples of a launch.
    work |= {"busy_cus": min(waves, 304), "waves_per_busy_cu": 1.0}
    shape = {
        name: [*sizes, 1, 1][:3] for name, sizes in (("grid", kernel.grid), ("workgroup", kernel.workgroup))
    }
    registers = -(-kernels_of_code[symbol].vgprs // 8) * 8
    own = {"name": kernel.name, "symbol": symbol, "arch_vgpr": registers, "work": work}
    return {**own, **shape, "lds_bytes": kernels_of_code[symbol].lds_bytes, **model}


@pytest.fixture(scope="module")
def built(tmp_path_factory, native):
    """The real code object, and what the stand-in is told of its kernels."""
    from importlib.resources import files

    source = files("rpl_selftest").joinpath("programs/known_work.hip")
    code, symbols = compiled(tmp_path_factory.mktemp("known-work"), source)
    timed = [kernel for kernel in kernels(ON_A_GPU) if kernel.name in TIMES_NS]
    return code, [  # waves of the others do different things, which the stand-in's models can't say
        modelled(kernel, code, symbols, nominal_ns=TIMES_NS[kernel.name], launches=ON_A_GPU.repeats)
        for kernel in timed
    ]


@pytest.fixture(scope="module")
def built_gemm(tmp_path_factory, native):
    """The same of the testbed's gemm."""
    code, symbols = compiled(tmp_path_factory.mktemp("gemm"), ROOT / "examples" / "testbed" / "gemm.hip")
    return code, [modelled(one, code, symbols, nominal_ns=20_000) for one in kernels_of_testbed()["gemm"]]


@attrs.define
class Machine:
    """``plant`` changes what the stand-in records; ``selftest`` runs the command and gives its document."""

    folder: Path
    programs: Path
    models: list
    monkeypatch: pytest.MonkeyPatch
    rpl: object

    def plant(self, change=lambda model: None, *, delay=1.05):
        """``delay``: what the base of candidates with a gain takes more; the program can't say it itself."""
        models = json.loads(json.dumps(self.models))
        for model in models:
            change(model)
        declared = self.folder / "model.json"
        more = f"chain {ON_A_GPU.iterations * 105 // 100} "
        speed = [{"command_matches": more, "factor": delay}]
        declared.write_text(json.dumps({"kernels": models, "cv": 0.0, "speed": speed}))
        self.monkeypatch.setenv("RPL_STANDIN_TIMING_MODEL", str(declared))

    def add_testbed(self, gemm, change=lambda model: None):
        """The testbed's gemm among the programs; the stand-in records its kernels whatever it runs."""
        code, models = gemm
        (self.programs / "gemm.hsaco").symlink_to(code)
        (self.programs / "gemm").write_text("#!/bin/sh\n")
        (self.programs / "gemm").chmod(0o755)
        for model in map(copy.deepcopy, models):
            change(model)
            self.models.append(model)
        self.plant()

    def serve_trace(self, fmas=TRACED.iterations, vector_cycles=4):
        """What the stand-in serves as the thread trace of fma_long: one wave that executes so many FMAs."""
        folder = self.folder / "traces" / "ui_output_agent_7_dispatch_4"
        folder.mkdir(parents=True)
        rows = [
            ("s_load_dwordx4 s[0:3], s[4:5], 0x0", 1, 300),
            ("v_fma_f64 v[0:1], v[0:1], s[0:1], s[2:3]", 6, vector_cycles),
        ]
        rows += [("s_cbranch_scc1 65533", 7, 4), ("s_endpgm", 11, 4)]
        order = [0, *([1, 2] * fmas), 3]
        clock, instructions, totals = 1000, [], [[0, 0] for _ in rows]
        for row in order:
            _, category, cycles = rows[row]
            instructions.append([clock, category, 0, cycles, row])
            totals[row][0] += 1
            totals[row][1] += cycles
            clock += cycles
        header = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
        code = [[isa, 0, n, "", 1, 256 + 8 * n, *totals[n], 0, 0] for n, (isa, _, _) in enumerate(rows)]
        wave = {
            "cu": 1,
            "id": 0,
            "simd": 0,
            "slot": 0,
            "begin": 1000,
            "end": clock,
            "instructions": instructions,
        }
        wave |= {"timeline": [[2, clock - 1000]], "waitcnt": None}
        name = "se0_sm0_sl0_wv0.json"
        index = {"gfxip": 9, "gfxv": "vega", "version": "3.0.0", "counter_names": []}
        index["wave_filenames"] = {"0": {"0": {"0": {"0": [name, 1000, clock]}}}}
        events = {"0": [[1000, 1, 0, 0, 1, 1], [clock, 1, 0, 0, 0, 1]], "dispatches": {"1": "fma_long"}}
        for file, content in {
            "code.json": {"code": code, "version": "3.0.0", "header": header},
            name: {"name": "SE0", "duration": clock - 1000, "wave": wave},
            "filenames.json": index,
            "occupancy.json": {**events, "version": "3.0.0"},
        }.items():
            (folder / file).write_text(json.dumps(content))
        (self.folder / "librocprof-trace-decoder.so").touch()
        self.monkeypatch.setenv("RPL_ATT_LIBRARY_PATH", str(self.folder))
        self.monkeypatch.setenv("RPL_STANDIN_ATT", str(folder))

    def selftest(self, *words, exit_code):
        out = self.folder / "out"
        ran = self.rpl("selftest", "--programs", self.programs, "-o", out, "--json", *words)
        ran.assert_exit(exit_code)
        document = ran.json()
        assert document == json.loads((out / "selftest.json").read_text())
        return {line["check"]: line for line in document["lines"]}, document


@pytest.fixture
def machine(tmp_path, monkeypatch, rpl_cli, rpl_standin_rocprofv3, built):
    code, models = built
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "known_work.hsaco").symlink_to(code)
    program = programs / "known_work"
    program.write_text(PROGRAM.format(python=sys.executable, times=TIMES_NS))
    program.chmod(0o755)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("RPL_STANDIN_STATE", str(tmp_path / "state"))
    made = Machine(tmp_path, programs, list(models), monkeypatch, rpl_cli)
    made.plant()
    return made
