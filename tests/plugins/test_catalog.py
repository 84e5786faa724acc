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


def test_readers_come_by_priority_then_plugin(site):
    site.plugin("b", READER.format(items="Item('b-low'), Item('b-high', 9)"))
    site.plugin("a", READER.format(items="Item('a-low'),"))
    assert site.host(disabled=("core",)).catalog.readers().names == ("b-high", "a-low", "b-low")


def test_of_two_equal_names_the_first_plugin_keeps_it_and_the_other_is_reported(site):
    site.plugin("b", READER.format(items="Item('same'), Item('b-own')"))
    site.plugin("a", READER.format(items="Item('same'),"))
    host = site.host(disabled=("core",))
    readers = host.catalog.readers()
    assert readers.names == ("same", "b-own")
    assert readers.plugin_of("same") == "a"
    assert [(d.code, d.where) for d in host.diagnostics] == [("plugin.duplicate", "plugin b")]


def test_an_unknown_name_lists_the_known_ones_and_a_guess(site):
    site.plugin("a", READER.format(items="Item('rocpd'), Item('csv')"))
    readers = site.host(disabled=("core",)).catalog.readers()
    with pytest.raises(MissingError) as caught:
        readers.get("rocpdd")
    assert "known: rocpd, csv" in caught.value.fact
    assert "'rocpd'" in caught.value.next_step


def test_two_analyzers_can_not_provide_one_fact(site):
    site.plugin("a", ANALYZER.format(items="Item('first', frozenset({'times', 'bytes'})),"))
    site.plugin("b", ANALYZER.format(items="Item('second', {'bytes'}), Item('third', {'flops'})"))
    host = site.host(disabled=("core",))
    assert host.catalog.analyzers().names == ("first", "third")
    assert "the fact 'bytes'" in host.diagnostics[0].fact


def test_an_analyzer_without_a_set_of_facts_is_refused(site):
    site.plugin("a", ANALYZER.format(items="Item('text', 'times'),"))
    host = site.host(disabled=("core",))
    assert len(host.catalog.analyzers()) == 0
    assert "no set of names in 'provides'" in host.diagnostics[0].fact


@pytest.mark.parametrize("name", ["''", "'a b'", "'x\\n'", "None", "7"])
def test_an_unusable_name_is_refused(site, name):
    site.plugin("a", READER.format(items=f"Item({name}),"))
    host = site.host(disabled=("core",))
    assert len(host.catalog.readers()) == 0
    assert "unusable name" in host.diagnostics[0].fact


def test_a_contribution_of_another_kind_is_refused(site):
    site.plugin("a", READER.format(items="Item('misplaced'),").replace("rpl_readers", "rpl_renderers"))
    host = site.host(disabled=("core",))
    assert len(host.catalog.renderers()) == 0
    assert "returned an Item where a Renderer was expected" in host.diagnostics[0].fact


def test_a_name_that_raises_when_read_is_refused(site):
    site.plugin(
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
    host = site.host(disabled=("core",))
    assert len(host.catalog.readers()) == 0
    assert "no name today" in host.diagnostics[0].fact


def test_plugins_are_asked_once_per_host(site):
    counter = site.folder / "count"
    source = f"    with open({str(counter)!r}, 'a') as file:\n        file.write('x')\n    return ("
    site.plugin("a", READER.format(items="").replace("    return (", source))
    host = site.host(disabled=("core",))
    host.catalog.readers()
    host.catalog.readers()
    assert counter.read_text() == "x"
