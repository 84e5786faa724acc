"""A transformation that is installed from outside is proposed, measured and accepted like the own ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.clang

EXAMPLE = Path(__file__).parents[4] / "examples" / "rpl-transform-launch-bounds" / "src"
BOUND = "__launch_bounds__(256) smooth("
BROKEN = """
from rpl_core import hookimpl
from rpl_optimize.interfaces.transformation import Transformation

RPL_API = 2

class Broken(Transformation):
    name, summary, suffixes = "broken", "Fails whatever it is asked.", (".hip",)
    def propose(self, source):
        raise ZeroDivisionError("no candidates")
    controls = invariance = propose

@hookimpl
def rpl_transformations():
    return (Broken(),)
"""


def install(site: Path, name: str, module: str) -> None:
    """As pip leaves it behind: metadata that names the plugin's module."""
    folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[rpl.plugins]\n{name} = {module}\n")


@pytest.fixture
def unbounded(loop, tmp_path, monkeypatch):
    """The example without a launch bound on its kernel, faster with one; two plugins from outside."""
    site = tmp_path / "site"
    install(site, "launch-bounds", "rpl_launch_bounds.plugin")
    install(site, "broken-one", "broken_one")
    (site / "broken_one.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.syspath_prepend(site)
    text = loop.source.read_text(encoding="utf-8")
    # A constant block size, so that the compiler can make use of the bound.
    text = text.replace("__launch_bounds__(256) void smooth", "void smooth").replace(
        "blockDim.x", "kBlock", 1
    )
    loop.source.write_text(text, encoding="utf-8")
    loop.bench.build(loop.source)
    loop.declare_speed({"source_matches": re.escape(BOUND), "factor": 0.9})
    return loop


@pytest.mark.long
def test_it_is_proposed_measured_and_accepted(unbounded) -> None:
    outcome = unbounded.rpl("--max-iters", "1", *unbounded.CHECKED).assert_ok()
    (candidate,) = unbounded.document()["candidates"]
    assert candidate["judgement"]["verdict"] == "accepted"
    assert candidate["kernel_gain"] == pytest.approx(0.10, abs=0.01)
    (proposed,) = unbounded.events("proposed")
    assert (proposed["proposer"], proposed["transformation"]) == ("ranked", "launch-bounds")
    assert proposed["expected_gain"][1] == pytest.approx(proposed["rests_on"]["critical_path_score"])
    guards = {
        g["guard"]: g["passed"] for event in unbounded.events("source_guarded") for g in event["guards"]
    }
    # Its own guards and its own invariance, and nobody else's; and what every edit has to keep.
    assert set(guards.values()) == {True}
    own = {"only-launched", "block-size-known", "launched-here-only", "bound-in-range", "only-a-bound-added"}
    general = {"judged", "directives", "outside", "declaration", "attributes", "cooperation", "declared"}
    assert set(guards) == own | general
    (binary,) = unbounded.events("binary_guarded")
    limit = next(guard for guard in binary["guards"] if guard["guard"] == "launch-limit")
    assert limit["passed"]
    assert "256" in limit["reason"]
    accepted = unbounded.source.with_name("smooth_opt.hip").read_text(encoding="utf-8")
    assert BOUND in accepted
    # The third plugin cost only itself, and was named.
    assert "broken-one" in outcome.stderr
    unbounded.verify()
