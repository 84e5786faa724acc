"""The plugin is installed, keeps rpl's contracts, and changes what it says and nothing else."""

from __future__ import annotations

import pytest
from rpl_optimize.hookspecs import TRANSFORMATIONS
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_testkit.contracts import assert_transformation

from {{ cookiecutter.__module }}.unroll_hint import UnrollHint

NAME = "{{ cookiecutter.plugin_name }}"
SOURCE = b"""void f()
{
    for (int i = 0; i < 4; ++i) g(i);
    for (int i = 0; i < 99; ++i) g(i);
    #pragma unroll
    for (int i = 0; i < 2; ++i) g(i);
}
"""


def test_the_plugin_loads_and_offers_its_transformation(rpl_host):
    assert NAME in rpl_host(NAME).catalog.of(TRANSFORMATIONS).names


def test_the_transformation_keeps_the_contract():
    assert_transformation(UnrollHint(), KernelSource("f.hip", SOURCE))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "f.hip"
    path.write_bytes(SOURCE)
    return path


def test_short_loops_are_allowed_and_hinted_ones_left_alone(rpl_cli, file):
    candidates = rpl_cli("transform", file, "--json").assert_ok().json()["candidates"]
    own = [c for c in candidates if c["id"].startswith(f"{NAME}:")]
    assert [(c["line"], c["allowed"]) for c in own] == [(3, True), (4, False)]


def test_applied_it_adds_one_line(rpl_cli, file):
    changed = rpl_cli("transform", file, "--apply", f"{NAME}:line-3").assert_ok().stdout
    assert changed.replace("    #pragma unroll\n", "", 1) == SOURCE.decode()
