"""Versions and the format that follows from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_rocprofv3.collector import OutputFormat, ToolVersion, detect_version

ANSWER = """\
             version: 1.1.0
        git_revision: 0123456789abcdef
        library_arch: x86_64-linux-gnu
      system_version: 5.15.0
    compiler_version: 19.0.0
        rocm_version: 7.2.0
"""


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (ToolVersion(sdk=(0, 6, 0)), OutputFormat.CSV),
        (ToolVersion(sdk=(1, 0, 0)), OutputFormat.ROCPD),
        (ToolVersion(rocm=(6, 4, 3)), OutputFormat.CSV),
        (ToolVersion(rocm=(7, 0)), OutputFormat.ROCPD),
        (ToolVersion(rocm=(10, 0, 0)), OutputFormat.ROCPD),
        (ToolVersion(), OutputFormat.ROCPD),
    ],
)
def test_rocpd_exists_since_rocm_7(version: ToolVersion, expected: OutputFormat) -> None:
    assert version.output_format is expected


def test_the_answer_of_the_tool_is_read(tmp_path: Path) -> None:
    path = script(tmp_path / "rocprofv3", f"cat <<'END'\n{ANSWER}END")
    found = detect_version(path, {"PATH": "/usr/bin:/bin"})
    assert found == ToolVersion(sdk=(1, 1, 0), rocm=(7, 2, 0))
    assert str(found) == "rocprofv3 1.1.0 (ROCm 7.2.0)"


@pytest.mark.parametrize("body", ["exit 3", "echo '    version: @FULL_VERSION_STRING@'", "echo; sleep 600"])
def test_a_silent_or_hanging_tool_is_known_by_its_installation(
    tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rpl_rocprofv3.collector._ANSWER_LIMIT_S", 1.0)
    path = script(tmp_path / "bin" / "rocprofv3", body)
    (tmp_path / ".info").mkdir()
    (tmp_path / ".info" / "version").write_text("6.4.1-83\n")
    assert detect_version(path, {"PATH": "/usr/bin:/bin"}) == ToolVersion(rocm=(6, 4, 1))


def test_a_link_on_path_leads_to_the_versioned_installation(tmp_path: Path) -> None:
    real = script(tmp_path / "rocm-6.3.2" / "bin" / "rocprofv3", "exit 1")
    link = tmp_path / "rocprofv3"
    link.symlink_to(real)
    assert detect_version(link, {}) == ToolVersion(rocm=(6, 3, 2))


def test_a_build_that_calls_itself_zero_is_unknown(tmp_path: Path) -> None:
    path = script(tmp_path / "rocprofv3", "echo 'rocm_version: 0.0.0'")
    assert not detect_version(path, {}).known


def test_an_unknown_version_is_said_in_the_plan(recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "")
    plan = recorder.plan("true")
    assert [found.code for found in plan.diagnostics] == ["collect.version_unknown"]
