"""Values and origins of settings: flag > environment > file > default."""

from __future__ import annotations

import os

import pytest

from rpl_core.config import load_configuration
from rpl_core.errors import UsageError


@pytest.fixture
def write(tmp_path):
    def do(text, name="rpl.toml"):
        (tmp_path / name).write_text(text)
        return load_configuration(start=tmp_path)

    return do


def test_default_when_nothing_is_set(tmp_path):
    resolved = load_configuration(start=tmp_path).resolve("runs")

    assert (resolved.value, resolved.origin) == (3, "default")


def test_file_beats_default_and_is_named(write, tmp_path):
    resolved = write("runs = 7").resolve("runs")

    assert (resolved.value, resolved.origin) == (7, f"file {tmp_path / 'rpl.toml'}")


def test_environment_beats_file(write, monkeypatch):
    monkeypatch.setenv("RPL_RUNS", "9")

    resolved = write("runs = 7").resolve("runs")

    assert (resolved.value, resolved.origin) == (9, "environment RPL_RUNS")


def test_flag_beats_everything(write, monkeypatch):
    monkeypatch.setenv("RPL_RUNS", "9")

    assert write("runs = 7").resolve("runs", 11).value == 11


def test_pyproject_table_is_read_from_a_folder_above(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.rpl]\ndevice = 'some-gpu'\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)

    assert load_configuration(start=inner).value("device") == "some-gpu"


def test_pyproject_without_our_table_does_not_hide_a_file_above(tmp_path):
    (tmp_path / "rpl.toml").write_text("runs = 4")
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")

    assert load_configuration(start=inner).value("runs") == 4


@pytest.mark.parametrize("text", ["runs = 0", "runs = 1.5", "runs = true", "runs = 'many'", "runs = nan"])
def test_wrong_value_names_setting_and_origin(write, text):
    with pytest.raises(UsageError, match=r"setting 'runs' \(file .*rpl\.toml\)"):
        write(text).resolve("runs")


def test_a_number_that_no_float_holds_is_refused(write):
    with pytest.raises(UsageError, match="expected a number"):
        write("runs = 1" + "0" * 400).value("runs")


def test_unknown_setting_in_the_file_is_refused(write):
    with pytest.raises(UsageError, match="unknown setting 'rnus'"):
        write("rnus = 3").with_options(())


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000], ids=["long number", "deep list"])
def test_toml_that_the_library_chokes_on_is_refused_like_any_other(write, value):
    with pytest.raises(UsageError, match="can't be read"):
        write(f"runs = {value}")


def test_broken_toml_is_one_clear_line(write):
    with pytest.raises(UsageError, match="can't be read"):
        write("runs = = 3")


def test_plugin_tables_reach_plugins(write):
    view = write("[plugins.mine]\nkey = 'value'\n").plugin_view()

    assert view["plugins.mine.key"] == "value"
    assert view["runs"] == 3


def test_disabled_plugins_take_a_list_or_commas(write, monkeypatch):
    assert write("[plugins]\ndisabled = ['a', 'b']").value("plugins.disabled") == ("a", "b")
    monkeypatch.setenv("RPL_PLUGINS_DISABLED", "c, d")
    assert write("").value("plugins.disabled") == ("c", "d")


@pytest.mark.parametrize("text", ["a" + ".a" * 50_000 + " = 1", "x = 1\n" * 60_000])
def test_toml_that_takes_gigabytes_to_parse_is_refused(write, text):
    with pytest.raises(UsageError, match=r"dots|256 KiB"):
        write(text)


def test_a_pipe_is_no_configuration_file(tmp_path):
    os.mkfifo(tmp_path / "rpl.toml")
    with pytest.raises(UsageError, match="no regular file"):
        load_configuration(str(tmp_path / "rpl.toml"))


def test_more_runs_than_anybody_waits_for_are_refused(write, monkeypatch):
    monkeypatch.setenv("RPL_RUNS", "1000000000")
    with pytest.raises(UsageError, match="at most 10000"):
        write("").value("runs")
