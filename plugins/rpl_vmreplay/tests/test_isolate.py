"""``rpl isolate`` around a program that writes what the native tool would: outcomes, folders, environment.

The tool itself is run in native/tests.
"""

from __future__ import annotations

import json
import runpy
import shutil
import sys

import pytest

#: Plays a program with the tool in it: copies a capture to where it belongs, reports a state, exits.
PROGRAM = """
import json, os, shutil, sys
state, code, source = sys.argv[1], int(sys.argv[2]), sys.argv[3]
output, status = os.environ["RPL_ISOLATE_OUTPUT"], os.environ["RPL_ISOLATE_STATUS"]
print("hello")
if state == "captured":
    shutil.copytree(source, output, dirs_exist_ok=True)
elif state == "capturing":
    os.makedirs(output)
if state != "none":
    names = {"_Z5scalePfi": "scale(float*, int)", "_Z7softmaxIfEvPT_": "void ns::softmax<float>(float*)"}
    with open(f"{status}/{os.getpid()}.kernels", "w") as stream:
        stream.writelines(f"{mangled}\\t{name}\\n" for mangled, name in names.items())
    matches = int(os.environ.get("MATCHES", "0"))
    report = {"schema_version": "1.0", "pid": os.getpid(), "state": state, "reason": "told", "output": output,
              "matches": matches, "launches": 7}
    with open(f"{status}/{os.getpid()}.json", "w") as stream:
        json.dump(report, stream)
with open(os.environ["SEEN"], "w") as stream:
    json.dump({**os.environ, "leader": os.getsid(0) == os.getpid()}, stream)
sys.exit(code)
"""


@pytest.fixture
def isolate(rpl_cli, write_rpl_capture, tmp_path, monkeypatch):
    """``isolate("captured", "--kernel", "scale", code=0)``: run the program; what it saw is kept."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "librpl_isolate.so").write_bytes(b"")
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.chdir(tmp_path)
    source = write_rpl_capture("source")

    def run(state, *options, code=0):
        program = [sys.executable, "-S", str(tmp_path / "program.py"), state, str(code), str(source)]
        return rpl_cli("isolate", "--native-folder", "build", *options, "--", *program)

    return run


def test_a_capture_is_told_and_verifies(isolate, rpl_cli, tmp_path):
    ran = isolate("captured")
    folder = tmp_path / "isolate_capture"
    assert ran.exit_code == 0
    assert ran.stdout == f"captured scale(float*, int) to {folder}: 2 regions, 3145892 bytes\n"
    assert "hello" in ran.stderr
    assert rpl_cli("capture", "verify", str(folder)).exit_code == 0


def test_the_tool_is_told_what_was_asked_for(isolate, tmp_path, monkeypatch):
    monkeypatch.setenv("HSA_TOOLS_LIB", "other.so")
    monkeypatch.setenv("RPL_ISOLATE_HASH", "stale")
    isolate("captured", "--kernel", "so(ft|t)max", "--dispatch", "3", "-o", "deep/er", "--compress",
            "--regions", "referenced", "--after", "bytes", "--drain-timeout", "2.5")  # fmt: skip
    seen = json.loads((tmp_path / "seen").read_text())
    expected = {
        "HSA_TOOLS_LIB": f"{tmp_path / 'build' / 'librpl_isolate.so'} other.so",
        "HSA_TOOLS_ROCPROFILER_V1_TOOLS": "1",
        "HSA_RESERVE_SVM": "1",
        "RPL_ISOLATE_OUTPUT": str(tmp_path / "deep" / "er"),
        "RPL_ISOLATE_PID": "session",
        "RPL_ISOLATE_KERNEL": "so(ft|t)max",
        "RPL_ISOLATE_DISPATCH": "3",
        "RPL_ISOLATE_REGIONS": "referenced",
        "RPL_ISOLATE_POST": "bytes",
        "RPL_ISOLATE_HASH": "xxh3",
        "RPL_ISOLATE_COMPRESS": "zstd",
        "RPL_ISOLATE_DRAIN_TIMEOUT_S": "2.5",
        "leader": True,
    }
    assert {name: seen[name] for name in expected} == expected
    assert "RPL_ISOLATE_KERNEL_TIMEOUT_S" not in seen
    isolate("captured", "--no-low-addresses", "--no-hash", "-o", "other")
    seen = json.loads((tmp_path / "seen").read_text())
    assert "HSA_RESERVE_SVM" not in seen
    assert seen["RPL_ISOLATE_HASH"] == "none"


@pytest.mark.parametrize(
    ("state", "code", "exit_code", "said"),
    [
        ("ended", 0, 1, "none of 2 kernels has a name like 'soft_max'; the nearest are void ns::softmax"),
        ("not_drained", 0, 75, "work in flight did not end in time. Likely cause: told"),
        ("not_finished", 0, 75, "the captured launch did not end in time"),
        ("capturing", 0, 75, "ended while its memory was being captured"),
        ("failed", 0, 70, "the capture tool failed. Likely cause: told"),
        ("refused", 0, 69, "does not know this ROCr runtime"),
        ("none", 0, 69, "never loaded the capture tool"),
        ("captured", 3, 76, "exited with status 3 (the capture is whole and kept)"),
        ("ended", 3, 76, "exited with status 3 (nothing was captured"),
        ("none", 134, 76, "exited with status 134 (as after SIGABRT (it aborted)) (nothing was captured"),
    ],
)
def test_every_outcome_has_its_exit_code_and_one_line(isolate, state, code, exit_code, said):
    ran = isolate(state, "--kernel", "soft_max", code=code)
    assert ran.exit_code == exit_code
    assert said in ran.stdout + ran.stderr.replace("hello\n", "")
    assert ran.stderr.replace("hello\n", "").count("\n") <= 1


def test_one_document_tells_the_outcome_whatever_it_is(isolate, monkeypatch, tmp_path):
    monkeypatch.setenv("MATCHES", "2")
    told = isolate("ended", "--kernel", "scale", "--dispatch", "2", "--json").json()
    assert (told["state"], told["matches"], told["launches"]) == ("no_match", 2, 7)
    assert "there were 2 launches of a kernel like 'scale', numbered from 0" in told["fact"]
    failed = isolate("captured", "--json", code=1)
    assert failed.exit_code == 76
    assert failed.json()["state"] == "captured"
    assert failed.json()["folder"] == str(tmp_path / "isolate_capture")


def test_an_older_capture_is_only_given_up_for_a_whole_one(isolate, tmp_path):
    folder = tmp_path / "isolate_capture"
    assert isolate("captured").exit_code == 0
    (folder / "mine").write_text("kept")
    refused = isolate("captured")
    assert (refused.exit_code, "not empty" in refused.stderr) == (64, True)
    assert isolate("capturing", "--replace").exit_code == 75
    assert (folder / "mine").read_text() == "kept"
    assert (tmp_path / "isolate_capture.incomplete").is_dir()
    assert isolate("captured", "--replace").exit_code == 0
    assert not (folder / "mine").exists()
    assert sorted(path.name for path in tmp_path.glob("isolate_capture*")) == [
        "isolate_capture",
        "isolate_capture.incomplete",
    ]


def test_what_is_no_capture_is_never_replaced(isolate, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine").write_text("kept")
    (tmp_path / "linked").symlink_to("notes")
    for place in ("notes", "linked", "program.py"):
        assert isolate("captured", "--replace", "-o", place).exit_code == 64
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["mine"]


def test_an_expression_that_is_none_is_refused_before_the_program_runs(isolate, tmp_path):
    ran = isolate("captured", "--kernel", "scale(")
    assert ran.exit_code == 64
    assert "no extended regular expression" in ran.stderr
    assert not (tmp_path / "seen").exists()


def test_without_the_tool_the_remedy_is_told(rpl_cli, tmp_path, monkeypatch):
    ran = rpl_cli("isolate", "--native-folder", str(tmp_path), "--", "true")
    assert ran.exit_code == 69
    assert "pip install rpl-native" in ran.stderr
    monkeypatch.setitem(sys.modules, "rpl_native", None)
    ran = rpl_cli("isolate", "--", "true")
    assert ran.exit_code == 69
    assert "cmake --build build" in ran.stderr


@pytest.mark.parametrize("is_checkout", [True, False])
def test_a_checkout_finds_the_parts_that_were_built_in_it(tmp_path, is_checkout) -> None:
    import rpl_native

    module = tmp_path / "native" / "python" / "rpl_native" / "__init__.py"
    built = tmp_path / "build" / "native" / "emu" / "rpl-emu"
    for file in (module, built):
        file.parent.mkdir(parents=True)
    built.touch()
    shutil.copy(rpl_native.__file__, module)
    if is_checkout:
        (tmp_path / "native" / "CMakeLists.txt").touch()
    path_of = runpy.run_path(str(module))["path_of"]
    assert path_of("rpl-emu") == (built if is_checkout else module.parent / "lib" / "rpl-emu")
    assert path_of("rpl-replay") == module.parent / "lib" / "rpl-replay"


@pytest.mark.parametrize("by", ["environment", "file"])
def test_doctor_sees_the_build_folder_that_the_commands_see(rpl_cli, tmp_path, monkeypatch, by) -> None:
    folder = tmp_path / "build"
    for part in ("isolate/librpl_isolate.so", "replay/rpl-replay"):
        (folder / "native" / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / "native" / part).touch()
    monkeypatch.delenv("RPL_NATIVE_FOLDER", raising=False)
    if by == "environment":
        monkeypatch.setenv("RPL_NATIVE_FOLDER", str(folder))
    else:
        (tmp_path / "rpl.toml").write_text(f'native-folder = "{folder}"\n')
    found = rpl_cli("doctor", "--json", cwd=tmp_path).json()
    for check in ("capture-tool", "replayer"):
        assert found[check]["status"] == "ok", found[check]
        assert str(folder) in found[check]["found"]
