"""Registers, LDS, waves and occupancy of code objects change what the model predicts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import product

import attrs
import numpy as np
import pytest

from rpl_autotune.interfaces import Evaluated, SearchSpace
from rpl_autotune.regression import TimeModel, training_of
from rpl_autotune.space import parse_expression
from rpl_autotune.templates import CodeRequest, code_features
from rpl_core.pipeline import architectures

pytestmark = pytest.mark.clang

#: LDS of each variant in floats; their names say nothing of it.
TILES = {"a": 256, "b": 8192, "c": 4096, "d": 256, "e": 8192}
SPACE = json.dumps({"parameters": {"KIND": list(TILES), "BLOCK": [64, 128]}})
SOURCE = """
extern "C" __attribute__((global)) void kernel(float* out) {
  __attribute__((shared)) float tile[TILE];
  tile[__builtin_amdgcn_workitem_id_x()] = out[0];
  __builtin_amdgcn_s_barrier();
  out[__builtin_amdgcn_workitem_id_x()] = tile[0];
}
"""
FLAGS = ("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-O1")


def compiler():
    found = shutil.which("clang++-22")
    if found is None or shutil.which("ld.lld-22") is None:
        pytest.skip("clang++-22 and ld.lld-22 are not installed")
    return found


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """Files ``k_a.hsaco`` to ``k_e.hsaco``, of which two pairs are alike."""
    folder = tmp_path_factory.mktemp("codes")
    (folder / "k.hip").write_text(SOURCE)
    for size in set(TILES.values()):
        command = [
            compiler(),
            *FLAGS,
            "--offload-arch=gfx942",
            f"-DTILE={size}",
            folder / "k.hip",
            "-o",
            folder / f"{size}",
        ]
        subprocess.run(command, check=True, capture_output=True)
    for name, size in TILES.items():
        shutil.copy(folder / f"{size}", folder / f"k_{name}.hsaco")
    return folder


@pytest.fixture
def space():
    return SearchSpace(("KIND", "BLOCK"), tuple(product(TILES, (64, 128, 256))), 0)


@pytest.fixture
def occupancy(rpl_host):
    return architectures(None, rpl_host("gfx942"))


def by_configuration(space, column):
    return dict(zip(space.configurations, column, strict=True))


def request(space, codes, **more):
    files = [codes / f"k_{kind}.hsaco" for kind, _ in space.configurations]
    size = parse_expression("BLOCK", frozenset(space.parameters))
    return CodeRequest(files, workgroup_size=size, **more)


def test_the_numbers_are_those_of_the_code(space, codes, occupancy):
    found = code_features(space, request(space, codes), occupancy)
    assert (found.unknown, found.problems) == (0, ())
    rows = {name: by_configuration(space, column) for name, column in found.columns.items()}
    assert rows["lds_bytes"]["a", 64] == 1024
    assert rows["lds_bytes"]["b", 64] == 32768
    assert rows["waves per workgroup"]["a", 256] == 4
    # By hand: 64 KiB of LDS hold two workgroups of 32 KiB, so 2 waves of one, 8 of four over 4 SIMDs.
    assert rows["waves per SIMD"]["b", 256] == 2
    assert rows["waves per SIMD"]["b", 64] == 1
    assert rows["waves per SIMD"]["a", 256] == 8
    lds = parse_expression("31744 if BLOCK == 256 else 0", frozenset(space.parameters))
    more = code_features(space, request(space, codes, dynamic_lds=lds), occupancy)
    assert by_configuration(space, more.columns["waves per SIMD"])["a", 256] == 2


def test_code_that_is_not_at_hand_is_said(space, codes):
    asked, rows = request(space, codes), space.configurations
    files = [None if kind == "c" else path for (kind, _), path in zip(rows, asked.files, strict=True)]
    found = code_features(space, attrs.evolve(asked, files=files), lambda _: None)
    assert found.unknown == 3
    assert sum(found.columns["code unknown"]) == 3
    assert "waves per SIMD" not in found.columns
    assert "no occupancy limits for architecture" in found.problems[0]
    (codes / "broken").write_bytes(b"\x7fELF")
    broken = code_features(space, attrs.evolve(asked, files=[codes / "broken"] * 15), lambda _: None)
    assert (broken.columns, broken.unknown, len(broken.problems)) == ({}, 15, 1)


def test_they_change_what_is_predicted(space, codes, occupancy):
    """Variants d and e were never measured; only their code tells that d is like a, and e like b."""
    found = code_features(space, request(space, codes), occupancy)
    waves = by_configuration(space, found.columns["waves per SIMD"])
    times = [8.0 / waves[row] for row in space.configurations]
    history = [Evaluated(n, times[n]) for n, (kind, _) in enumerate(space.configurations) if kind < "d"]

    def predicted(features):
        model = TimeModel(features, 0)
        model.fit(training_of(history))
        mean = model.predict(np.arange(len(space))).mean
        return {row: float(mean[n]) for n, row in enumerate(space.configurations)}

    blind = predicted(space.features)
    seeing = predicted(attrs.evolve(space, given_features=found.columns).features)
    for block in (64, 128, 256):
        assert abs(blind["d", block] - blind["e", block]) < 0.2
        assert seeing["d", block] < seeing["e", block] - 0.5


def test_a_search_learns_from_them(rpl_cli, codes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = (
        f"{sys.executable} -ISc \"print('took', dict(a=1,b=4,c=2,d=1,e=4)['{{KIND}}'] + {{BLOCK}}, 'ms')\""
    )
    (tmp_path / "space.json").write_text(SPACE)
    usual = ("autotune", "--space", "space.json", "--cmd-template", program, "--time-regex", "took (.*) ms")
    more = ("--runs", "1", "--confirm-rounds", "0", "--budget", "3", "--no-cache", "--json")
    code = ("--code-object", f"{codes}/k_{{KIND}}.hsaco", "--workgroup-size", "BLOCK")
    found = rpl_cli(*usual, *more, *code).assert_ok().json()
    assert {"lds_bytes", "waves per SIMD"} <= set(found["model"]["features"])
    assert rpl_cli(*usual, *more, *code[2:]).assert_exit(64).stderr.count("--code-object") == 1
    wrong = rpl_cli(*usual, *more, *code[:2], "--workgroup-size", "BLOCK / 3").assert_exit(64)
    assert "--workgroup-size" in wrong.stderr


def test_builds_are_read_before_the_search(rpl_cli, codes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.json").write_text(SPACE)
    build = ("--build", f"cp {codes}/k_{{KIND}}.hsaco {{output}}", "--build-all", "-o", "out")
    command = ("--cmd-template", f"{sys.executable} -ISc \"print('took', {{BLOCK}}, 'ms')\" {{program}}")
    usual = ("--space", "space.json", "--time-regex", "took (.*) ms", "--runs", "1", "--confirm-rounds", "0")
    found = rpl_cli("autotune", *usual, *build, *command, "--budget", "2", "--json").assert_ok().json()
    assert {"lds_bytes", "vgprs"} & set(found["model"]["features"])
    assert len(list((tmp_path / "out" / "builds").iterdir())) == 5
