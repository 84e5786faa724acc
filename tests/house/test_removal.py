"""Each distribution taken away in turn: the rest starts, says what is missing and analyses what it can."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(folder.name for folder in (ROOT / "plugins").glob("rpl_*"))
REMOVABLE = [*PLUGINS, "rocm_perf_lab"]

#: Runs commands in one process that finds neither the modules nor the metadata of what is "not installed".
WITHOUT = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import metadata

absent, commands = json.loads(sys.argv[1])


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


present = metadata.MetadataPathFinder.find_distributions


def installed(*arguments, **options):
    for found in present(*arguments, **options):
        if found.metadata["Name"].replace("-", "_") not in absent:
            yield found


sys.meta_path.insert(0, Absent())
metadata.MetadataPathFinder.find_distributions = installed
from rpl_core.cli.main import run

outcomes = []
for words in commands:
    out, err = io.TextIOWrapper(io.BytesIO(), newline=""), io.TextIOWrapper(io.BytesIO(), newline="")
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode())
    outcomes.append((code, *said))
print(json.dumps(outcomes))
"""
PACKAGES = json.loads((ROOT / "plugins/rpl_amdgpu/src/rpl_amdgpu/packages.json").read_text())

#: What ``rpl analyze`` says without a distribution: exit code, words, whether documents and text are there.
ANALYZE = {
    "rpl_rocprofv3": (69, "pip install rpl-rocprofv3", False, False),
    "rpl_analysis": (0, "pip install rpl-analysis", False, False),
    "rpl_codeobject": (0, "pip install rpl-codeobject", True, False),
    "rpl_report": (0, "pip install rpl-report", True, False),
    "rpl_gfx942": (0, "pip install rpl-gfx942", True, True),
}


def without(absent, *commands):
    words = json.dumps([sorted(absent), [[str(word) for word in command] for command in commands]])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    for (code, out, err), command in zip(outcomes, commands, strict=True):
        assert code != 70, (command, err)
        assert "Traceback" not in out + err, command
    return outcomes


def _of(absent, recording):
    """Command lines that only the distribution can carry out: its commands, options and some devices."""

    def owned(what):
        brought = ((name, owner.partition("[")[0]) for name, owner in PACKAGES[what].items())
        return [name for name, owner in brought if owner == absent.replace("_", "-")]

    words = [[name] for name in owned("commands")]
    words += [["profile", option, "--", "true"] for option in owned("options")]
    words += [["analyze", "--device", device, recording] for device in owned("devices")[:2]]
    return words if absent in PLUGINS else []


def _cases():
    """Those without which something shows; the others with ``make test-long``."""
    return [
        pytest.param(name, marks=() if name in ANALYZE else pytest.mark.long, id=name) for name in REMOVABLE
    ]


@pytest.mark.parametrize("absent", _cases())
def test_the_rest_starts_and_analyses_what_it_can(absent, rpl_make_rocpd, tmp_path):
    recording, out = rpl_make_rocpd([("kernel_b", 0, 1000)]), tmp_path / "out"
    own = _of(absent, recording)
    shown, doctor, listed, analysed, *refused = without(
        {absent}, ["--help"], ["doctor"], ["plugins", "list"], ["analyze", recording, "-o", out], *own
    )
    assert shown[0] == 0
    assert "analyze" in shown[1]
    assert doctor[0] in (0, 69)
    assert "runs-directory" in doctor[1]
    assert listed[0] == 0
    assert f" {absent} " not in listed[1].replace("-", "_")

    code, says, documents, text = ANALYZE.get(absent, (0, "", True, True))
    assert analysed[0] == code, analysed
    assert says in analysed[1] + analysed[2]
    assert (out / "profile.json").exists() is documents
    assert ("kernel_b" in analysed[1]) is text

    for command, (status, _, err) in zip(own, refused, strict=True):
        assert status == 69, (command, err)
        assert f"pip install {absent.replace('_', '-')}" in err, command


def test_the_core_alone_keeps_what_it_records_and_names_what_makes_documents(rpl_make_rocpd, tmp_path):
    run, recording = tmp_path / "run", rpl_make_rocpd([("kernel_b", 0, 1000)])
    profile = ["profile", "--collector", "timing-only", "--runs", "1", "-o", run, "--", "true"]
    recorded, again, analysed, recording_default = without(
        PLUGINS,
        profile,
        ["analyze", run],
        ["analyze", recording],
        ["profile", "--", "true"],
    )
    assert recorded[0] == 0, recorded
    assert json.loads((run / "run.json").read_text())["state"] == "complete"
    for said in (recorded, again):
        assert said[0] == 0
        assert "pip install rpl-analysis" in said[2]
        assert f"run directory: {run}" in said[2]
        assert "documents: " not in said[2]  # there are none
        assert said[2].count("no kernel was observed") == 1
    assert analysed[0] == 69
    assert "pip install rpl-rocprofv3" in analysed[2]
    assert recording_default[0] == 69
    assert "pip install rpl-rocprofv3" in recording_default[2]


#: What replay and emulator do without: who changes, compares or shows, and the plugin of the real GPU.
NOT_FOR_REPLAY = {
    *("rpl_optimize", "rpl_transforms", "rpl_llm_unroll", "rpl_measure", "rpl_compare", "rpl_autotune"),
    *("rpl_analysis", "rpl_report", "rpl_rocprofv3", "rpl_amdgpu", "rpl_gfx942"),
}


def test_replay_and_emulator_work_without_optimizer_compare_and_report():
    capture = ROOT / "examples" / "captures" / "attention_values"
    absent = set(PLUGINS) - {"rpl_vmreplay", "rpl_emu", "rpl_codeobject"}
    assert absent >= NOT_FOR_REPLAY
    listed, info, verified, *helps = without(
        absent,
        ["plugins", "list", "--json"],
        ["capture", "info", capture, "--json"],
        ["capture", "verify", capture],
        *([*words, "--help"] for words in (["isolate"], ["replay", "compare"], ["emu", "run"])),
    )
    statuses = {plugin["name"]: plugin["status"] for plugin in json.loads(listed[1])["plugins"]}
    assert {"vmreplay", "vmreplay-optimizer", "emu", "emu-optimizer"} <= statuses.keys()
    assert set(statuses.values()) == {"loaded"}
    assert [info[0], verified[0]] == [0, 0]
    assert all(status == 0 for status, _, _ in helps)


@pytest.mark.parametrize("package", ["rpl-vmreplay", "rpl-emu"])
def test_replay_and_emulator_install_without_optimizer_compare_and_report(package):
    needed, waiting = set(), [package]
    while waiting:
        name = waiting.pop()
        folder = "native" if name == "rpl-native" else f"plugins/{name.replace('-', '_')}"
        text = (ROOT / folder / "pyproject.toml").read_text()
        listed = text.split("\ndependencies = [", 1)[1].split("]", 1)[0]
        found = set(re.findall(r'"(rpl-[a-z0-9-]+)==', listed)) - {"rpl-core"} - needed
        needed |= found
        waiting += found
    assert "rpl-codeobject" in needed
    assert not {name.replace("-", "_") for name in needed} & NOT_FOR_REPLAY
