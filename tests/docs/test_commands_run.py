"""The commands of README and user guide do what the pages say, run one after the other as a reader would.

Blocks marked ``run`` are executed with the stand-in for rocprofv3 and an application ``./app``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = {"README.md": 7, "docs/USER_GUIDE.md": 25, "docs/report.md": 5}  # page: least commands to run
PROGRAMS = {"rpl", "rocm-perf", "rocm-perf-lab"}


@pytest.fixture
def folder(tmp_path: Path, rpl_standin_rocprofv3: Path) -> Path:
    app = tmp_path / "work" / "app"
    app.parent.mkdir()
    app.write_text("#!/bin/sh\nexit 0\n")
    app.chmod(0o755)
    return app.parent


@pytest.mark.parametrize(
    "page", ["README.md", pytest.param("docs/USER_GUIDE.md", marks=pytest.mark.long), "docs/report.md"]
)
def test_marked_commands_run(documentation, page, folder, rpl_cli):
    ran = 0
    for block in documentation.blocks(documentation.page(page)):
        if block.marker != "run" or block.need is not None:
            continue
        for command in block.commands:
            assert command.words[0] in PROGRAMS, command
            outcome = rpl_cli(*command.words[1:], cwd=folder)
            assert outcome.exit_code in command.exits, f"{command}\n{outcome.stderr}"
            assert "Traceback" not in outcome.stderr
            ran += 1
    assert ran >= PAGES[page], f"{page} has {ran} commands to run"


@pytest.mark.data
@pytest.mark.parametrize("page", PAGES)
def test_commands_on_recordings_print_what_the_page_shows(
    documentation, page, folder, rpl_cli, rpl_shared_data
):
    for name in ("path_MI300X_A1",):
        (folder / name).symlink_to(rpl_shared_data / "counters_gfx942" / name)
    for block in documentation.blocks(documentation.page(page)):
        if block.need != "recording":
            continue
        (command,) = block.commands
        outcome = rpl_cli(*command.words[1:], cwd=folder).assert_ok()
        shown = [line for line in block.lines if line and not line.startswith("$ ")]
        missing = [line for line in shown if not _matches(line, outcome.stdout)]
        assert missing == [], f"not printed:\n{missing}\n{outcome.stdout}"


def _matches(line: str, output: str) -> bool:
    """``...`` at the end of a shown line stands for the rest of it."""
    pattern = re.escape(line.removesuffix("...").rstrip())
    return re.search(rf"^ *{pattern}", output, re.MULTILINE) is not None


def test_quiet_prints_one_number_and_json_one_document(folder, rpl_cli):
    assert float(rpl_cli("profile", "--quiet", "--", "./app", cwd=folder).assert_ok().stdout) > 0
    document = rpl_cli("profile", "--json", "--", "./app", cwd=folder).assert_ok().json()
    assert (document["schema_version"], document["provenance"]["origin"]) == ("1.0", "synthetic")


def test_the_two_other_names_are_the_same_program(documentation):
    text = documentation.page("pyproject.toml").read_text(encoding="utf-8")
    scripts = dict(re.findall(r'^([\w-]+) = "(rpl_core\.cli:\w+)"$', text, re.MULTILINE))
    assert scripts == dict.fromkeys(PROGRAMS, "rpl_core.cli:main")
