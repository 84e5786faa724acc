"""The plugins of this repository keep the contracts that we ask of others."""

from __future__ import annotations

import re
from importlib.metadata import distribution, entry_points

import attrs
import pytest

from rpl_analysis.hookspecs import KINDS, RULES
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.interfaces.section import RenderRequest
from rpl_core.model.recording import Recording
from rpl_core.pipeline import AnalysisRequest, analyse
from rpl_core.plugins.catalog import KINDS as CORE_KINDS
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host
from rpl_core.schedule import Step, analyze
from rpl_testkit import contracts
from rpl_testkit.traces import TracedDispatch, make_trace

OWN = frozenset(
    f"rpl-{name}"
    for name in (
        *("core", "amdgpu", "analysis", "att", "autotune", "codeobject", "emu", "gfx942"),
        *("gfx950", "gfx90a", "gfx1100", "gfx1030"),
        *("llm-unroll", "optimize", "report", "rocprofv3", "transforms", "vmreplay"),
    )
)


@pytest.fixture(scope="module")
def host():
    return create_host(PluginSelection(only_distributions=OWN), config={})


def test_they_load_without_a_complaint(host):
    assert {record.distribution for record in host.records} >= OWN
    assert {r.status.value for r in host.records if r.distribution in OWN} == {"loaded"}
    assert host.diagnostics == ()


def test_all_that_they_contribute(host):
    """Hooks are found as the host finds them: those of a distribution that nobody thought of here, too."""
    kinds = [kind for e in entry_points(group="rpl.hookspecs") for kind in e.load().KINDS]
    device = host.catalog.devices().get("mi300x")
    seen = {
        kind.hook: [
            contracts.assert_contribution(kind.hook, item) for item in host.catalog.of(kind, device=device)
        ]
        for kind in (*CORE_KINDS, *kinds)
    }
    assert len(kinds) > 5
    # What was measured is the user's to bring.
    assert {hook for hook, items in seen.items() if not items} <= {"rpl_ceilings"}


def test_what_is_none_is_said():
    with pytest.raises(contracts.ContractViolation, match="returned an object where an Exporter was"):
        contracts.assert_contribution("rpl_exporters", object())
    with pytest.raises(contracts.ContractViolation, match="no installed distribution has this hook"):
        contracts.assert_contribution("rpl_wishes", object())


def test_their_devices(host):
    assert len(host.catalog.devices()) > 0
    for device in host.catalog.devices():
        contracts.assert_device_model(device)


def test_their_rules(host):
    for device in (None, *host.catalog.devices()):
        for rule in host.catalog.of(RULES, device):
            contracts.assert_rule(rule)


def test_their_collectors(host, tmp_path):
    for number, collector in enumerate(host.catalog.collectors()):
        folder = tmp_path / str(number)
        folder.mkdir()
        contracts.assert_collector(collector, folder)


def test_their_collectors_with_a_profiler(host, tmp_path, rpl_standin_rocprofv3):
    contracts.assert_collector(host.catalog.collectors().get("rocprofv3"), tmp_path)


def test_their_doctor_checks(host):
    for check in host.catalog.doctor_checks():
        contracts.assert_doctor_check(check)


HOSTILE_NAME = "gemm<\x1b[31mred\x1b]0;title\x07, 'a&b'>"


@pytest.fixture(scope="module")
def recording():
    """Three timing runs and one counter pass of two kernels, one of them with a hostile name."""
    runs = [
        make_trace([("copy", 1_000, 3_000 + run), (HOSTILE_NAME, 4_000, 9_000 - run)]) for run in range(3)
    ]
    counters = {"SQ_WAVES": 64.0, "SQ_INSTS_VALU": 640.0, "TCC_EA0_RDREQ_sum": 4096.0}
    passes = [
        make_trace(
            [
                TracedDispatch("copy", 1_000, 3_500, counters=counters),
                TracedDispatch(HOSTILE_NAME, 4_000, 9_500, counters=counters),
            ]
        )
    ]
    return Recording(traces=(*runs, *passes))


def test_their_analyzers(host, recording):
    device = host.catalog.devices().get("mi300x")
    contributions = host.catalog.analyzers().contributions
    offers = {kind.hook: tuple(host.catalog.of(kind, device)) for kind in KINDS}
    context = AnalysisContext(recording, device, offered=lambda kind: offers[kind.hook])
    facts = analyze(context, [Step(c.plugin, c.value) for c in contributions]).facts
    assert contributions
    for contribution in contributions:
        contracts.assert_analyzer(contribution.value, attrs.evolve(context, facts=facts))


def test_their_renderers(host, recording):
    documents = analyse(recording, AnalysisRequest(device="mi300x"), host).by_name()
    assert len(host.catalog.renderers()) > 0
    for renderer in host.catalog.renderers():
        contracts.assert_renderer(renderer, RenderRequest(documents))


@pytest.mark.parametrize("number_of_launches", [1, 40])
def test_the_rocpd_reader(host, rpl_make_rocpd, tmp_path, number_of_launches):
    launches = [(f"kernel{i % 3}", 1000 * i, 1000 * i + 500) for i in range(1, number_of_launches + 1)]
    folder = tmp_path / "scratch"
    folder.mkdir()
    contracts.assert_reader(host.catalog.readers().get("rocpd"), rpl_make_rocpd(launches), folder)


def test_every_diagnostic_so_far_is_empty(host):
    """Last: nothing above made a plugin misbehave."""
    assert host.diagnostics == ()


def _required(name: str, seen: set[str]) -> set[str]:
    """The distributions of ours that are installed with ``name``, itself included; no extras."""
    if name not in seen:
        seen.add(name)
        for line in distribution(name).requires or ():
            match = re.match(r"(rpl-[a-z0-9-]+)[^;]*(;.*extra)?", line)
            if match is not None and match[2] is None:
                _required(match[1], seen)
    return seen


def test_hooks_of_what_may_be_absent_are_optional_and_no_others():
    """Else a plugin fails where the owner of a hook is not installed, or a misspelt hook is never called."""
    from rpl_core import hookspecs

    def hooks(module: object) -> set[str]:
        return {name for name, one in vars(module).items() if hasattr(one, "rpl_spec")}

    owners = dict.fromkeys(hooks(hookspecs), "rpl-core")
    for entry in entry_points(group="rpl.hookspecs"):
        owners |= dict.fromkeys(hooks(entry.load()), entry.dist.name)
    optional = 0
    for entry in entry_points(group="rpl.plugins"):
        if entry.dist.name not in OWN:
            continue
        there = _required(entry.dist.name, set())
        for name, one in vars(entry.load()).items():
            if hasattr(one, "rpl_impl"):
                assert one.rpl_impl["optionalhook"] == (owners[name] not in there), (entry.value, name)
                optional += one.rpl_impl["optionalhook"]
    assert optional > 1
