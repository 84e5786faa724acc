"""What a plugin may import is listed; the plugins and examples of this project use nothing else."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def api():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield importlib.import_module("generate_public_api")
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def public():
    """As committed: a new name in it is a decision that shows in a review."""
    return json.loads((ROOT / "docs" / "plugin-api-modules.json").read_text())


def _not_public(uses, public):
    return sorted(
        f"{path.relative_to(ROOT)}: {module}{'' if name is None else '.' + name}"
        for path, module, name in uses
        if module not in public or (name is not None and name not in public[module])
    )


def test_plugins_import_nothing_else_from_each_other(api, public):
    uses = [use for package in api.PACKAGES if package != api.TESTKIT for use in api.foreign_imports(package)]
    assert len(uses) > 500  # the search itself works
    assert _not_public(uses, public) == []


def test_examples_and_the_template_import_nothing_else(api, public):
    sources = [
        path
        for folder in ("examples", "templates")
        for path in (ROOT / folder).rglob("*.py")
        # Scripts on the device measure what is inside of the optimizer; they are no plugin.
        if not {"tests", "device"}.intersection(path.parts)
    ]
    uses = [(path, module, name) for path in sources for module, name in api.imports(path)]
    assert len(uses) > 10
    assert _not_public(uses, public) == []


def test_the_list_is_the_present_state(api):
    for path, text in ((api.SNAPSHOT, api.snapshot()), (api.PAGE, api.page())):
        assert path.read_text() == text, "run `make docs` and say in the changelog what plugins can rely on"


def test_every_public_name_is_there(public):
    missing = [
        f"{module}.{name}"
        for module, names in public.items()
        for name, what in names.items()
        if what != "value" and not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []


def test_every_public_function_says_its_types(public):
    untyped = [
        f"{module}.{name}{what}"
        for module, names in public.items()
        for name, what in names.items()
        if what.startswith("(") and " -> " not in what
    ]
    assert untyped == []
