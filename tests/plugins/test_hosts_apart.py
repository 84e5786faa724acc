"""Hosts share no state: each plugin answers with the settings of the host that asks."""

from __future__ import annotations

import ast
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = types.SimpleNamespace(name="thread-trace")


def host_of(rpl_host, executable, cu):
    config = {"plugins.rocprofv3.executable": executable, "plugins.att.target-cu": cu}
    return rpl_host("rocprofv3", "att", config=config)


def test_hosts_with_different_settings_do_not_leak_into_each_other(rpl_host):
    first = host_of(rpl_host, "/nowhere/first/rocprofv3", 3)
    second = host_of(rpl_host, "/nowhere/second/rocprofv3", 7)
    # Asked for the first time only now, the older host first and once more at the end.
    for host, own, other in (
        (first, "first", "second"),
        (second, "second", "first"),
        (first, "first", "second"),
    ):
        collectors = {c.name: c for c in host.catalog.collectors()}
        assert own in collectors["rocprofv3"].missing()
        checks = {check.name: check.check() for check in host.catalog.doctor_checks()}
        assert own in checks["rocprofv3"].fact
        assert other not in " ".join((collectors["rocprofv3"].missing(), checks["rocprofv3"].fact))


def test_settings_of_thread_traces_belong_to_their_host(rpl_host, monkeypatch):
    from rpl_att import collector

    seen = []
    monkeypatch.setattr(collector, "ThreadTraceCollector", lambda settings: seen.append(settings) or NAMED)
    first, second = host_of(rpl_host, "/first", 3), host_of(rpl_host, "/second", 7)
    for host in (first, second):
        host.catalog.collectors()
    assert [(s.target_cu, s.executable) for s in seen] == [(3, "/first"), (7, "/second")]


def test_a_stranger_gets_the_settings_of_the_host_that_asks(rpl_host):
    from rpl_core import hookimpl
    from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus

    class Told(DoctorCheck):
        name, summary = "told", "says its setting"

        def __init__(self, text):
            self._text = text

        def check(self):
            return DoctorReport(DoctorStatus.OK, self._text)

    def rpl_doctor_checks(config):
        return (Told(config["plugins.mine.text"]),)

    module = types.ModuleType("mine_of_two_hosts")
    module.RPL_API, module.rpl_doctor_checks = 2, hookimpl(rpl_doctor_checks)
    hosts = [rpl_host(module, config={"plugins.mine.text": text}) for text in ("one", "two")]
    assert [next(iter(h.catalog.doctor_checks())).check().fact for h in hosts] == ["one", "two"]


@pytest.mark.parametrize("package", ["rpl_core", *sorted(p.name for p in (ROOT / "plugins").glob("rpl_*"))])
def test_no_function_rebinds_a_name_of_its_module(package):
    folder = ROOT / package if package == "rpl_core" else ROOT / "plugins" / package / "src"
    rebinding = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Global)
    ]
    assert rebinding == []
