"""Which rocprofv3 is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_core.errors import MissingError
from rpl_rocprofv3.collector import find_rocprofv3, require_rocprofv3
from rpl_rocprofv3.collector.rocprof import RocprofCollector


def install(prefix: Path) -> Path:
    path = prefix / "bin" / "rocprofv3"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_path_comes_before_rocm_path_and_opt(tmp_path: Path) -> None:
    on_path, in_rocm_path = install(tmp_path / "a"), install(tmp_path / "b")
    in_opt = install(tmp_path / "opt" / "rocm")
    everywhere = {"PATH": str(on_path.parent), "ROCM_PATH": str(tmp_path / "b")}
    assert find_rocprofv3(everywhere, opt=tmp_path / "opt") == on_path
    assert (
        find_rocprofv3({"PATH": "", "ROCM_PATH": str(tmp_path / "b")}, opt=tmp_path / "opt") == in_rocm_path
    )
    assert find_rocprofv3({"PATH": ""}, opt=tmp_path / "opt") == in_opt


def test_of_several_versions_in_opt_the_newest_is_taken(tmp_path: Path) -> None:
    for version in ("6.4.1", "7.0.2", "7.13.0", "7.2.0"):
        install(tmp_path / f"rocm-{version}")
    assert find_rocprofv3({"PATH": ""}, opt=tmp_path) == tmp_path / "rocm-7.13.0" / "bin" / "rocprofv3"


def test_a_file_that_can_not_be_executed_is_passed_over(tmp_path: Path) -> None:
    install(tmp_path / "rocm").chmod(0o644)
    other = install(tmp_path / "rocm-7.0.0")
    assert find_rocprofv3({"PATH": ""}, opt=tmp_path) == other


def test_the_environment_overrides_the_configuration_and_the_configuration_overrides_path(
    tmp_path: Path,
) -> None:
    one, two, three = (install(tmp_path / name) for name in "abc")
    environment = {"PATH": str(one.parent), "RPL_ROCPROFV3": str(two)}
    assert find_rocprofv3(environment, str(three)) == two
    assert find_rocprofv3({"PATH": str(one.parent)}, str(three)) == three


@pytest.mark.parametrize("how", ["environment", "configuration"])
def test_an_override_that_is_no_executable_is_never_replaced_by_another_one(tmp_path: Path, how: str) -> None:
    environment = {"PATH": str(install(tmp_path).parent)}
    configured = "/nowhere/rocprofv3" if how == "configuration" else None
    if how == "environment":
        environment["RPL_ROCPROFV3"] = "/nowhere/rocprofv3"
    with pytest.raises(MissingError, match="'/nowhere/rocprofv3', which is no executable"):
        find_rocprofv3(environment, configured)


def test_without_rocprofv3_the_message_says_how_to_go_on() -> None:
    with pytest.raises(MissingError) as caught:
        require_rocprofv3({"PATH": "/nowhere"})
    line = caught.value.one_line()
    assert all(words in line for words in ("rocprofiler-sdk", "--no-rocprof", "--from", "RPL_ROCPROFV3"))


def test_the_collector_tells_what_is_missing_and_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RPL_ROCPROFV3", "/nowhere/rocprofv3")
    missing = RocprofCollector().missing()
    assert missing is not None
    assert "/nowhere/rocprofv3" in missing


def test_the_collector_misses_nothing_where_rocprofv3_is(recorder) -> None:
    assert recorder.collector.missing() is None
