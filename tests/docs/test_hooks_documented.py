"""Every hook is documented as it is, has a test, and changes only on purpose."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from rpl_core import hookspecs
from rpl_core.plugins.kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
HOOKS = [name for name in vars(hookspecs) if name.startswith("rpl_")]


@pytest.fixture(scope="module")
def generator():
    path = ROOT / "tools" / "generate_hook_docs.py"
    spec = importlib.util.spec_from_file_location("generate_hook_docs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_hook_page_is_up_to_date(generator):
    page = (ROOT / "docs" / "plugins" / "hooks.md").read_text(encoding="utf-8")
    assert page == generator.render_page(), "run: python tools/generate_hook_docs.py"


def test_the_plugin_api_is_unchanged(generator):
    """A difference here is a change of the contract: additive only, or RPL_API must rise."""
    snapshot = (ROOT / "docs" / "plugin-api.json").read_text(encoding="utf-8")
    assert snapshot == generator.render_snapshot(), "run: python tools/generate_hook_docs.py"


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_documented_with_its_exact_signature(hook):
    page = (ROOT / "docs" / "plugins" / "hooks.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {hook}\n", 1)[1].split("\n## ", 1)[0]
    signature = str(inspect.signature(getattr(hookspecs, hook))).replace("'", "")
    assert f"def {hook}{signature}\n" in section


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_spec_explains_arguments_result_order_and_isolation(hook):
    function = getattr(hookspecs, hook)
    text = inspect.getdoc(function) or ""
    # What ``config`` is stands at the head of the page, for all hooks.
    own = {"config"} if hook != "rpl_configure" else set()
    for parameter in inspect.signature(function).parameters.keys() - own:
        assert f":param {parameter}:" in text
    assert ":return:" in text
    assert "Order:" in text
    assert "Isolation:" in text


#: Hooks that one test covers for all kinds of contributions that have names.
COVERED = {kind.hook for kind in KINDS if kind.identity and not kind.asked}


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook not in COVERED])
def test_a_hook_has_a_test(hook):
    source = (ROOT / "tests" / "plugins" / "test_hooks.py").read_text(encoding="utf-8")
    assert re.search(rf"^def test_hook_{hook}\(", source, re.MULTILINE), f"write test_hook_{hook}"


def test_the_page_documents_no_hook_that_does_not_exist():
    page = (ROOT / "docs" / "plugins" / "hooks.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == HOOKS
