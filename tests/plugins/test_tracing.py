"""Tracing shows calls, answers and failures on stderr, and nothing when it is off."""

from __future__ import annotations

from rpl_core.plugins.catalog import COLLECTORS, READERS

SOURCE = """
from rpl_core.interfaces.reader import Reader

class Item(Reader):
    name, summary = "only\\x1b[31m", "s"
    def claim(self, files): return ()
    def read(self, inputs): return ()

@hookimpl
def rpl_readers():
    return (Item(),)

@hookimpl
def rpl_collectors():
    raise ValueError("first line\\nsecond line")
"""


def test_calls_answers_and_failures_are_shown(rpl_site, capsys):
    rpl_site.plugin("traced", SOURCE)
    host = rpl_site.host(trace=True, disabled=("core",))
    host.relay.collect(READERS)
    host.relay.collect(COLLECTORS)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "rpl-hook: call rpl_readers(config=mappingproxy) in traced",
        "rpl-hook: answer rpl_readers from traced: 1 of Item only?[31m",
        "rpl-hook: call rpl_collectors(config=mappingproxy) in traced",
        "rpl-hook: raised rpl_collectors in traced: ValueError: first line second line",
    ]


def test_without_tracing_nothing_is_shown(rpl_site, capsys):
    rpl_site.plugin("traced", SOURCE)
    rpl_site.host(disabled=("core",)).relay.collect(READERS)
    assert capsys.readouterr().err == ""
