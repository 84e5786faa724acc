"""Who is trusted: this project's own distributions, by their names. What all others give is checked."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from rpl_core.model import value_checks
from rpl_core.plugins.catalog import ContributionKind
from rpl_core.plugins.discovery import Candidate, PluginOrigin
from rpl_core.plugins.entry_points import OWN_DISTRIBUTIONS

ROOT = Path(__file__).parents[2]
WRONG = """
from rpl_core.model.device import CeilingOrigin, MemoryCeiling

@hookimpl
def rpl_ceilings(device):
    return (MemoryCeiling("hbm", -1.0, CeilingOrigin.SPEC, "here"),)
"""


def test_the_mark_is_the_list_of_our_own_distributions():
    projects = (ROOT / "plugins").glob("rpl_*/pyproject.toml")
    names = {re.search(r'^name = "(.*)"$', path.read_text(), re.MULTILINE)[1] for path in projects}
    assert {sha256(name.encode()).hexdigest()[:16] for name in names} == OWN_DISTRIBUTIONS


@pytest.mark.parametrize(
    ("distribution", "origin", "trusted"),
    [
        ("rpl-core", PluginOrigin.BUILTIN, True),
        ("rpl-analysis", PluginOrigin.INSTALLED, True),
        ("rpl-analysis", PluginOrigin.DEVELOPMENT, False),
        ("rpl-analysis-more", PluginOrigin.INSTALLED, False),
        ("rpl-somebody", PluginOrigin.INSTALLED, False),
        (None, PluginOrigin.DEVELOPMENT, False),
    ],
)
def test_a_prefix_or_the_name_of_a_plugin_is_no_mark(distribution, origin, trusted):
    assert Candidate("analysis", "rpl_analysis.plugin", origin, distribution).is_trusted is trusted


def test_what_is_our_own_is_taken_as_it_is(rpl_cli, rpl_make_rocpd, tmp_path, monkeypatch):
    """A whole analysis without a stranger calls no check of types."""

    def check(*values):
        raise AssertionError(f"checked: {values}")

    monkeypatch.setattr(ContributionKind, "violation", check)
    monkeypatch.setattr(value_checks, "_hinted_violation", check)
    recording = rpl_make_rocpd([("kernel_a", 0, 1000)])
    done = rpl_cli("analyze", str(recording), "--device", "mi300x", "-o", str(tmp_path / "out"))
    assert done.exit_code == 0, done.stderr
    assert "checked" not in done.stderr
    assert "kernel_a" in done.stdout


def test_a_stranger_who_takes_our_plugins_name_is_checked(rpl_site):
    rpl_site.plugin("gfx942", WRONG, distribution="rpl-gfx942-fast")
    host = rpl_site.host()
    assert host.catalog.ceilings(None) == ()
    assert "peak_gbps is -1.0, which is no rate" in host.diagnostics[-1].fact
    assert "gfx942" in host.diagnostics[-1].fact


def test_info_check_ends_with_1_where_something_is_wrong(rpl_site, rpl_cli):
    rpl_site.plugin("careless", WRONG)
    assert rpl_cli("plugins", "info", "careless").exit_code == 0
    done = rpl_cli("plugins", "info", "careless", "--check")
    assert done.exit_code == 1
    assert "peak_gbps is -1.0" in done.stdout
    assert rpl_cli("plugins", "info", "analysis", "--check").exit_code == 0


def test_info_check_looks_at_our_own_too(rpl_cli, monkeypatch):
    monkeypatch.setattr(ContributionKind, "violation", lambda _kind, item: f"{item} is wrong")
    assert rpl_cli("plugins", "info", "analysis", "--check").exit_code == 1
