"""The plugin is installed, keeps rpl's contracts and reads what its format holds."""

from __future__ import annotations

import pytest
from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet
from rpl_testkit.contracts import assert_reader

from {{ cookiecutter.__module }}.launches_file import LaunchesReader

NAME = "{{ cookiecutter.plugin_name }}"


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "app.launches"
    path.write_text("copy 100 300 0\ngemm 400 1400 1\ncopy 1500 1700 0\n")
    return path


def test_the_plugin_loads_and_offers_its_reader(rpl_host):
    assert NAME in rpl_host(NAME).catalog.readers().names


def test_the_reader_keeps_the_contract(recording, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert_reader(LaunchesReader(), recording, scratch)


def test_launches_become_dispatches(recording):
    (trace,) = LaunchesReader().read(InputSet(NAME, "launches", (recording,)))
    assert trace.dispatches.duration_ns().tolist() == [200, 1000, 200]
    assert [kernel.name for kernel in trace.kernels] == ["copy", "gemm"]


@pytest.mark.parametrize("text", ["", "copy 1\n", "copy 5 3 0\n", "copy a b c\n"])
def test_what_is_no_launch_is_refused(text, tmp_path):
    path = tmp_path / "bad.launches"
    path.write_text(text)
    with pytest.raises(BadDataError, match="launch|impossible"):
        LaunchesReader().read(InputSet(NAME, "launches", (path,)))


def test_rpl_analyses_it(recording, rpl_cli):
    document = rpl_cli("analyze", recording, "--json").assert_ok().json()
    assert document["runtime_ms"] == pytest.approx(1400e-6)
