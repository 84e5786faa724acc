"""The file that says which distribution brings what: as the plugins of this project really register it."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata, resources
from types import SimpleNamespace

import pytest

from rpl_core.cli.main import COMMANDS
from rpl_core.interfaces.options import OptionForm
from rpl_core.plugins import catalog, entry_points
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host

TABLE = json.loads((resources.files("rpl_amdgpu") / "packages.json").read_text(encoding="utf-8"))
_META = metadata.distribution("rocm-perf-lab")
OWN = {re.split(r"[^a-z0-9-]", line)[0] for line in _META.requires or ()} | {"rocm-perf-lab", "rpl-mcp"}


@pytest.fixture(scope="module")
def host():
    return create_host(PluginSelection(only_distributions=frozenset(OWN)), config={})


@pytest.fixture(scope="module")
def owner(host):
    """``owner(contribution)``: the distribution of its plugin."""
    distributions = {record.name: record.distribution for record in host.records}
    return lambda contribution: distributions[contribution.plugin]


def test_the_metapackage_says_the_same():
    """Its copy is for where rpl-amdgpu was taken out: a source archive holds no link out of itself."""
    copy = resources.files("rocm_perf_lab") / "packages.json"
    assert json.loads(copy.read_text(encoding="utf-8")) == TABLE


def test_every_command_has_its_place_in_the_help():
    grouped = [name for names in TABLE["groups"].values() for name in names]
    assert sorted(grouped) == sorted({*TABLE["commands"], *COMMANDS})


def test_commands():
    entries = metadata.entry_points(group="rpl.commands")
    assert TABLE["commands"] == {e.name: e.dist.name for e in entries if e.dist.name in OWN}


def test_options(host, owner):
    found = {}
    for contribution in host.catalog.of(catalog.OPTIONS).contributions:
        option = contribution.value
        found[f"--{option.name}"] = owner(contribution)
        if option.form is OptionForm.SWITCH:
            found[f"--no-{option.name}"] = owner(contribution)
    assert TABLE["options"] == found


def test_devices(host, owner):
    found = {c.value.name: owner(c) for c in host.catalog.devices().contributions}
    found |= {c.value.architecture: owner(c) for c in host.catalog.devices().contributions}
    assert {name: owner.partition("[")[0] for name, owner in TABLE["devices"].items()} == found


def test_an_extra_is_missing_where_its_distribution_is_there(installed):
    installed('{"devices": {"a": "rpl-core[a]", "b": "rpl-core", "c": "rpl-nobody[c]"}}')
    assert entry_points.missing_providers("devices") == {"a": "rpl-core[a]", "c": "rpl-nobody[c]"}


@pytest.mark.parametrize("kind", TABLE["kinds"])
def test_kinds(host, owner, kind):
    owned = [k for entry in metadata.entry_points(group="rpl.hookspecs") for k in entry.load().KINDS]
    described = next(k for k in (*catalog.KINDS, *owned) if k.hook == f"rpl_{kind}")
    contributions = host.catalog.of(described).contributions
    assert TABLE["kinds"][kind] in {owner(contribution) for contribution in contributions}


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """``installed(text)``: the only package that knows what brings what has this file."""

    def install(text):
        folder = tmp_path / "knowing"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "packages.json").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "knowing", raising=False)
        entries = [SimpleNamespace(value="knowing")]
        monkeypatch.setattr(entry_points, "installed_entries", lambda group: (entries, ()))
        entry_points._table.cache_clear()

    yield install
    entry_points._table.cache_clear()


def test_a_provider_is_named(installed):
    installed('{"commands": {"a": "rpl-a"}}')
    assert entry_points.provider_of("commands", "a") == "rpl-a"
    assert entry_points.provider_of("commands", "b") is None
    assert entry_points.provider_of("options", "a") is None


@pytest.mark.parametrize("text", ["", "[]", '{"commands": ["a"]}', '{"commands": {"a": 1}}', "\x00"])
def test_a_broken_file_is_as_none(installed, text):
    installed(text)
    assert entry_points.provider_of("commands", "a") is None


def test_a_package_that_is_gone_is_as_none(installed, monkeypatch):
    installed("{}")
    entries = [SimpleNamespace(value="gone.away")]
    monkeypatch.setattr(entry_points, "installed_entries", lambda group: (entries, ()))
    assert entry_points.provider_of("commands", "a") is None
