"""Catalogs: unique names, a deterministic owner, and helpful errors for unknown names."""

from __future__ import annotations

import textwrap

import pytest

from rpl_core.errors import MissingError

READER = """
from rpl_core.interfaces.reader import Reader

class Item(Reader):
    summary = "s"
    def __init__(self, name, priority=0):
        self.name, self.priority = name, priority
    def claim(self, files): return ()
    def read(self, inputs): return ()

@hookimpl
def rpl_readers():
    return ({items})
"""

ANALYZER = """
from rpl_core.interfaces.analyzer import AnalysisOutcome, Analyzer

class Item(Analyzer):
    summary = "s"
    def __init__(self, name, provides):
        self.name, self.provides = name, provides
    def analyze(self, context): return AnalysisOutcome({{}})

@hookimpl
def rpl_analyzers():
    return ({items})
"""


def test_readers_come_by_priority_then_plugin(rpl_site):
    rpl_site.plugin("b", READER.format(items="Item('b-low'), Item('b-high', 9)"))
    rpl_site.plugin("a", READER.format(items="Item('a-low'),"))
    assert rpl_site.host(disabled=("core",)).catalog.readers().names == ("b-high", "a-low", "b-low")


def test_of_two_equal_names_the_first_plugin_keeps_it_and_the_other_is_reported(rpl_site):
    rpl_site.plugin("b", READER.format(items="Item('same'), Item('b-own')"))
    rpl_site.plugin("a", READER.format(items="Item('same'),"))
    host = rpl_site.host(disabled=("core",))
    readers = host.catalog.readers()
    assert readers.names == ("same", "b-own")
    assert readers.plugin_of("same") == "a"
    assert [(d.code, d.where) for d in host.diagnostics] == [("plugin.duplicate", "plugin b")]


def test_an_unknown_name_lists_the_known_ones_and_a_guess(rpl_site):
    rpl_site.plugin("a", READER.format(items="Item('rocpd'), Item('csv')"))
    readers = rpl_site.host(disabled=("core",)).catalog.readers()
    with pytest.raises(MissingError) as caught:
        readers.get("rocpdd")
    assert "known: csv, rocpd" in caught.value.fact
    assert "'rocpd'" in caught.value.next_step


@pytest.mark.parametrize("provides", ["'times'", "{'times'}", "None"])
def test_an_analyzer_without_a_set_of_facts_is_refused(rpl_site, provides):
    rpl_site.plugin("a", ANALYZER.format(items=f"Item('text', {provides}),"))
    host = rpl_site.host(disabled=("core",))
    assert len(host.catalog.analyzers()) == 0
    assert "no set of facts in 'provides'" in host.diagnostics[0].fact


@pytest.mark.parametrize("name", ["''", "'a b'", "'x\\n'", "None", "7"])
def test_an_unusable_name_is_refused(rpl_site, name):
    rpl_site.plugin("a", READER.format(items=f"Item({name}),"))
    host = rpl_site.host(disabled=("core",))
    assert len(host.catalog.readers()) == 0
    assert "unusable name" in host.diagnostics[0].fact


def test_a_contribution_of_another_kind_is_refused(rpl_site):
    rpl_site.plugin("a", READER.format(items="Item('misplaced'),").replace("rpl_readers", "rpl_renderers"))
    host = rpl_site.host(disabled=("core",))
    assert len(host.catalog.renderers()) == 0
    assert "returned an Item where a Renderer was expected" in host.diagnostics[0].fact


def test_a_name_that_raises_when_read_is_refused(rpl_site):
    rpl_site.plugin(
        "a",
        textwrap.dedent(
            """
            from rpl_core.interfaces.reader import Reader
            class Item(Reader):
                summary = "s"
                @property
                def name(self): raise RuntimeError("no name today")
                def claim(self, files): return ()
                def read(self, inputs): return ()
            @hookimpl
            def rpl_readers(): return (Item(),)
            """
        ),
    )
    host = rpl_site.host(disabled=("core",))
    assert len(host.catalog.readers()) == 0
    assert "no name today" in host.diagnostics[0].fact


def test_plugins_are_asked_once_per_host(rpl_site):
    counter = rpl_site.folder / "count"
    source = f"    with open({str(counter)!r}, 'a') as file:\n        file.write('x')\n    return ("
    rpl_site.plugin("a", READER.format(items="").replace("    return (", source))
    host = rpl_site.host(disabled=("core",))
    host.catalog.readers()
    host.catalog.readers()
    assert counter.read_text() == "x"
