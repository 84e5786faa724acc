"""What ``rpl doctor`` says about collecting, and the plugin's table of contents."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_core.interfaces.doctor import DoctorStatus
from rpl_rocprofv3.collector import CountersCheck, GpuAccessCheck, RocpdCheck, RocprofCheck


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RPL_ROCPROFV3", raising=False)

    def write(version: str, available: str = "") -> str:
        path = tmp_path / "rocprofv3"
        path.write_text(
            f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; else echo "{available}"; fi\n'
        )
        path.chmod(0o755)
        return str(path)

    return write


def test_an_installed_profiler_is_ok_with_its_version_and_place(tool) -> None:
    path = tool("version: 1.0.0")
    report = RocprofCheck(path).check()
    assert (report.status, report.fact) == (DoctorStatus.OK, f"rocprofv3 1.0.0 at {path}")
    assert RocpdCheck(path).check().status is DoctorStatus.OK


def test_a_missing_profiler_has_a_remedy() -> None:
    report = RocprofCheck("/nowhere/rocprofv3").check()
    assert report.status is DoctorStatus.MISSING
    assert report.remedy is not None
    assert RocpdCheck("/nowhere/rocprofv3").check().status is DoctorStatus.MISSING


def test_a_profiler_that_tells_no_version_is_broken(tool) -> None:
    assert RocprofCheck(tool("")).check().status is DoctorStatus.BROKEN


def test_rocm_6_lacks_rocpd(tool) -> None:
    report = RocpdCheck(tool("version: 0.6.0")).check()
    assert report.status is DoctorStatus.MISSING
    assert "7.0" in (report.remedy or "")


def test_a_machine_without_the_driver_is_told_so(tmp_path: Path) -> None:
    report = GpuAccessCheck(tmp_path / "kfd").check()
    assert report.status is DoctorStatus.MISSING
    assert "amdgpu" in (report.remedy or "")


def test_a_device_that_may_not_be_opened_names_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kfd").touch()
    monkeypatch.setattr("os.access", lambda *_: False)
    report = GpuAccessCheck(tmp_path / "kfd").check()
    assert report.status is DoctorStatus.BROKEN
    assert "usermod -aG" in (report.remedy or "")


def test_a_device_that_can_be_opened_is_ok(tmp_path: Path) -> None:
    (tmp_path / "kfd").touch()
    assert GpuAccessCheck(tmp_path / "kfd").check().status is DoctorStatus.OK


@pytest.mark.parametrize(
    ("listed", "status"), [("GRBM_COUNT SQ_WAVES", DoctorStatus.OK), ("", DoctorStatus.BROKEN)]
)
def test_counters_are_usable_if_the_profiler_lists_them(tool, tmp_path: Path, listed: str, status) -> None:
    (tmp_path / "kfd").touch()
    assert CountersCheck(tool("version: 1.0.0", listed), tmp_path / "kfd").check().status is status


def test_counters_without_a_gpu_are_missing(tool, tmp_path: Path) -> None:
    assert CountersCheck(tool("version: 1.0.0"), tmp_path / "kfd").check().status is DoctorStatus.MISSING


def test_a_profiler_that_hangs_is_reported_and_not_waited_for(tool, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("rpl_rocprofv3.collector._LIST_LIMIT_S", 0.5)
    path = Path(tool("version: 1.0.0"))
    path.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\nexec sleep 600\n')
    (tmp_path / "kfd").touch()
    report = CountersCheck(str(path), tmp_path / "kfd").check()
    assert report.status is DoctorStatus.MISSING
    assert "did not end within 0.5 s" in report.fact


def test_each_host_has_its_own_executable(tool, rpl_host, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("RPL_ROCPROFV3", raising=False)
    own = rpl_host("rocprofv3", config={"plugins.rocprofv3.executable": tool("version: 1.0.0")})
    other = rpl_host("rocprofv3", config={"plugins.rocprofv3.executable": "/nowhere/rocprofv3"})
    assert own.catalog.collectors().get("rocprofv3").missing() is None
    assert "/nowhere/rocprofv3" in other.catalog.collectors().get("rocprofv3").missing()
    checks = {check.name: check.check().status for check in own.catalog.doctor_checks()}
    assert checks["rocprofv3"] is DoctorStatus.OK
    assert {"rocpd", "gpu-access", "counters"} < set(checks)
