"""What the stand-in writes is synthetic in every format, and an unknown mark is never taken as measured."""

from __future__ import annotations

import sqlite3
import subprocess

import pytest


@pytest.fixture
def recorded(tmp_path, rpl_standin_rocprofv3):
    def record(form):
        command = [
            rpl_standin_rocprofv3,
            "--kernel-trace",
            "-f",
            form,
            "-d",
            tmp_path / form,
            "-o",
            "x",
            "--",
            "true",
        ]
        subprocess.run(command, check=True, capture_output=True)
        return tmp_path / form

    return record


def origin_of(rpl_cli, folder):
    return rpl_cli("analyze", folder, "--json").assert_ok().json()["provenance"]["origin"]


@pytest.mark.parametrize("form", ["rocpd", "csv", "json"])
def test_stand_in_output_is_synthetic(recorded, form, rpl_cli):
    assert origin_of(rpl_cli, recorded(form)) == "synthetic"


def test_csv_without_a_mark_is_measured(recorded, rpl_cli):
    folder = recorded("csv")
    (folder / "x_rpl_origin.json").unlink()

    assert origin_of(rpl_cli, folder) == "measured"


@pytest.mark.parametrize("content", ['{"rpl_origin": "dreamt"}', "{", "[]", '{"other": 1}'])
def test_mark_that_nobody_knows_counts_as_synthetic(recorded, content, rpl_cli):
    folder = recorded("csv")
    (folder / "x_rpl_origin.json").write_text(content)

    profile = rpl_cli("analyze", folder, "--json").assert_ok().json()

    assert profile["provenance"]["origin"] == "synthetic"
    assert "origin.unknown_mark" in [d["code"] for d in profile["diagnostics"]]


@pytest.mark.parametrize("form", ["rocpd", "csv"])
def test_a_mark_of_the_folder_is_for_everything_in_it(recorded, form, rpl_cli):
    folder = recorded(form)
    if form == "csv":
        (folder / "x_rpl_origin.json").unlink()
    else:
        (path,) = folder.glob("*.db")
        with sqlite3.connect(path) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_metadata_%'")
            ((table,),) = names.fetchall()
            connection.execute(f"DELETE FROM {table} WHERE tag = 'rpl_origin'")
        connection.close()
    assert origin_of(rpl_cli, folder) == "measured"
    (folder / "rpl_origin.json").write_text('{"rpl_origin": "modelled"}')
    assert origin_of(rpl_cli, folder) == "modelled"
