"""One test per hook: who is asked, in which order, what counts, and that a raising plugin stands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_analysis.hookspecs import RULES
from rpl_core.interfaces.collector import RunInfo, RunOutcome, RunState
from rpl_core.model.trace import Agent
from rpl_core.plugins.catalog import DEVICES, KINDS, RENDERERS

DEVICE = """
from rpl_core.model.device import CounterMap, DeviceModel

def device(name, **changes):
    facts = dict(
        name=name, architecture="gfx000", product="P", chip_ids=(1,), compute_units=None, xcd_count=None,
        simd_per_cu=4, wave_size=64, max_waves_per_simd=8, lds_bytes_per_cu=65536, clock_mhz=None,
        l2_bytes=None, llc_bytes=None, l2_channels=None, fp32_valu_width=None, compute_ceilings=(),
        memory_ceilings=(), counter_map=CounterMap(quantities=(), recommended=()),
    )
    return DeviceModel(**{**facts, **changes})
"""

OPTION = """
from rpl_core.interfaces.options import CommandOption

def option(name):
    return CommandOption(name=name, commands=("profile",), parse=str, default="", help="h")
"""
OBJECT = """
from {module} import {title}

class Item({title}):
    summary, suffix, title = "s", ".txt", "t"
    def __init__(self, name): self.name = name

Item.__abstractmethods__ = frozenset()
"""


def definitions(kind):
    """Source that defines contributions of ``kind``, and the expression for the one called ``{name}``."""
    known = {
        "rpl_device_models": (DEVICE, "device({name!r})"),
        "rpl_options": (OPTION, "option({name!r})"),
    }
    if kind.hook in known:
        return known[kind.hook]
    module, _, title = kind.types[0].partition(":")
    return OBJECT.format(module=module, title=title), "Item({name!r})"


#: Kinds whose contributions have names, and whose hooks ask for nothing.
NAMED = [kind for kind in KINDS if kind.identity and not kind.asked]


def offer(rpl_site, plugin, kind, *, returns):
    """A plugin that returns ``returns``, in which ``item("name")`` stands for a contribution."""
    source, expression = definitions(kind)
    item = f"def item(name):\n    return {expression.replace('{name!r}', 'name')}\n"
    rpl_site.plugin(plugin, f"{source}\n{item}\n@hookimpl\ndef {kind.hook}():\n    return {returns}\n")


@pytest.mark.parametrize("kind", NAMED, ids=lambda kind: kind.hook)
def test_a_collecting_hook(rpl_site, kind):
    """Plugins answer in name order, ``None`` says nothing, and bad answers cost only their plugin."""
    offer(rpl_site, "c-good", kind, returns="(item('c1'), item('c2'))")
    offer(rpl_site, "a-good", kind, returns="(item('a1'),)")
    offer(rpl_site, "b-raises", kind, returns="1 / 0")
    offer(rpl_site, "d-silent", kind, returns="None")
    offer(rpl_site, "e-list", kind, returns="[item('e1')]")
    offer(rpl_site, "f-mixed", kind, returns="(item('f1'), 42, item('f 2'))")
    offer(rpl_site, "g-exits", kind, returns="exit(4)")
    host = rpl_site.host(disabled=("core",))
    found = host.relay.collect(kind)
    assert [(c.plugin, c.value.name) for c in found] == [
        ("a-good", "a1"),
        ("c-good", "c1"),
        ("c-good", "c2"),
        ("f-mixed", "f1"),
    ]
    facts = {d.where: [] for d in host.diagnostics}
    for diagnostic in host.diagnostics:
        facts[diagnostic.where].append(diagnostic.fact)
    assert sorted(facts) == ["plugin b-raises", "plugin e-list", "plugin f-mixed", "plugin g-exits"]
    assert "ZeroDivisionError" in facts["plugin b-raises"][0]
    assert "returned list where a tuple was expected" in facts["plugin e-list"][0]
    assert len(facts["plugin f-mixed"]) == 2
    assert "sys.exit(4)" in facts["plugin g-exits"][0]
    assert all(kind.hook in fact for lines in facts.values() for fact in lines)


CEILING = """
from rpl_core.model.device import CeilingOrigin, MemoryCeiling

@hookimpl
def rpl_ceilings(device):
    return (MemoryCeiling("hbm", {peak}, CeilingOrigin.MEASURED, str(device)),)
"""


def test_hook_rpl_ceilings(rpl_site):
    rpl_site.plugin("b", CEILING.format(peak="2.0"))
    rpl_site.plugin("a", CEILING.format(peak="1.0"))
    rpl_site.plugin("c", CEILING.format(peak="'fast'"))
    host = rpl_site.host(disabled=("core",))
    found = host.catalog.ceilings("a device")
    assert [(c.plugin, c.value.peak_gbps, c.value.source) for c in found] == [
        ("a", 1.0, "a device"),
        ("b", 2.0, "a device"),
    ]
    assert [d.where for d in host.diagnostics] == ["plugin c"]


RULE = """
from rpl_analysis.interfaces import BottleneckLabel, Comparison, Condition, Rule

LABEL = BottleneckLabel.UNCLASSIFIED
TRUE = Condition("occupancy", Comparison.BELOW, 2.0, "chosen")

@hookimpl
def rpl_classifier_rules({arguments}):
    return tuple(
        Rule(id=name, label=LABEL, priority=priority, conditions=(TRUE,), explanation="e")
        for name, priority in {rules}
    )
"""


def test_hook_rpl_classifier_rules(rpl_site):
    rpl_site.plugin("b", RULE.format(arguments="device", rules="[('for-' + str(device), 5), ('low', 1)]"))
    rpl_site.plugin("a", RULE.format(arguments="", rules="[('z', 5), ('y', 5), ('high', 9)]"))
    rpl_site.plugin("c", "@hookimpl\ndef rpl_classifier_rules(device):\n    return device.name\n")
    seen = frozenset({*rpl_site.distributions, "rpl-analysis"})  # it owns the hook
    host = rpl_site.host(disabled=("core", "analysis"), only_distributions=seen)
    assert [c.value.id for c in host.relay.collect(RULES, device=None)] == [
        "z",
        "y",
        "high",
        "for-None",
        "low",
    ]
    assert host.catalog.of(RULES).names == ("high", "y", "z", "for-None", "low")
    assert [d.where for d in host.diagnostics] == ["plugin c"]


def detector(answer):
    return f"{DEVICE}\n@hookimpl\ndef rpl_detect_device(agents):\n    return {answer}\n"


def agent(name="gfx000"):
    return Agent(node="n", index=0, kind="GPU", architecture=name)


def test_hook_rpl_detect_device(rpl_site):
    rpl_site.plugin("b", detector("device('B:' + agents[0].architecture)"))
    rpl_site.plugin("a", detector("None"))
    rpl_site.plugin("d", detector("device('D')"))
    rpl_site.plugin("c", detector("1 / 0"))
    rpl_site.plugin("e", detector("'a name'"))
    host = rpl_site.host(disabled=("core",))
    found = host.relay.detect_device((agent(),))
    assert (found.plugin, found.value.name) == ("b", "B:gfx000")
    by_plugin = {d.where: d for d in host.diagnostics}
    assert set(by_plugin) == {"plugin c", "plugin d", "plugin e"}
    assert by_plugin["plugin d"].code == "plugin.device_disagreement"


def test_detecting_an_unknown_device_is_none_and_no_problem(rpl_site):
    rpl_site.plugin("a", detector("None"))
    host = rpl_site.host(disabled=("core",))
    assert host.relay.detect_device((agent(),)) is None
    assert host.diagnostics == ()


RECORDING = """
import pathlib
HEARD = pathlib.Path({file!r})

def hear(text):
    with HEARD.open("a") as file:
        file.write({name!r} + " " + text + "\\n")
"""


def listeners(rpl_site, hook, signature, text):
    """Plugins a and c write what they hear into a file; b raises. Returns a function reading the file."""
    file = rpl_site.folder / "heard.txt"
    for name in ("c", "a"):
        source = RECORDING.format(file=str(file), name=name)
        rpl_site.plugin(name, f"{source}\n@hookimpl\ndef {hook}({signature}):\n    hear({text})\n")
    rpl_site.plugin("b", f"@hookimpl\ndef {hook}():\n    raise ValueError('not today')\n")
    return lambda: file.read_text().splitlines()


def assert_only_b_failed(host, hook):
    assert [(d.where, "not today" in d.fact, hook in d.fact) for d in host.diagnostics] == [
        ("plugin b", True, True)
    ]


RUN = RunInfo(directory=Path("run"), command=("./app",), device="gfx942", collector="rocprofv3")


def test_hook_rpl_run_started(rpl_site):
    heard = listeners(rpl_site, "rpl_run_started", "run", "run.command[0]")
    host = rpl_site.host(disabled=("core",))
    host.relay.run_started(RUN)
    assert heard() == ["a ./app", "c ./app"]
    assert_only_b_failed(host, "rpl_run_started")


def test_hook_rpl_run_finished(rpl_site):
    heard = listeners(
        rpl_site, "rpl_run_finished", "outcome, run", "run.collector + ' ' + outcome.state.value"
    )
    host = rpl_site.host(disabled=("core",))
    host.relay.run_finished(RUN, RunOutcome(RunState.INCOMPLETE, "interrupted"))
    assert heard() == ["a rocprofv3 incomplete", "c rocprofv3 incomplete"]
    assert_only_b_failed(host, "rpl_run_finished")


def test_a_plugin_the_user_named_may_not_fail_quietly(rpl_site):
    from rpl_core.errors import PluginError

    module = rpl_site.plugin("mine", "@hookimpl\ndef rpl_device_models():\n    1 / 0\n")
    host = rpl_site.host(modules=(module,))
    host.require_requested()
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        host.relay.collect(DEVICES)


def test_two_implementations_in_one_module_answer_in_the_order_of_their_function_names(rpl_site):
    source, _ = definitions(RENDERERS)
    second = "@hookimpl(specname='rpl_renderers')\ndef b_second():\n    return (Item('second'),)\n"
    first = "@hookimpl(specname='rpl_renderers')\ndef a_first():\n    return (Item('first'),)\n"
    rpl_site.plugin("double", source + second + first)
    host = rpl_site.host(disabled=("core",))
    assert [c.value.name for c in host.relay.collect(RENDERERS)] == ["first", "second"]
