"""Every hook and value of plugins is documented as it is, has a test, and changes only on purpose."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOOKS_PAGE = ROOT / "docs" / "plugins" / "hooks.md"
VALUES_PAGE = ROOT / "docs" / "plugins" / "values.md"
STALE = "run: python tools/generate_hook_docs.py"


def _generator():
    path = ROOT / "tools" / "generate_hook_docs.py"
    spec = importlib.util.spec_from_file_location("generate_hook_docs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = _generator()
HOOKS = GENERATOR.hooks()


def test_the_pages_are_up_to_date():
    assert HOOKS_PAGE.read_text(encoding="utf-8") == GENERATOR.render_page(), STALE
    assert VALUES_PAGE.read_text(encoding="utf-8") == GENERATOR.render_values(), STALE


def test_the_plugin_api_is_unchanged():
    """A difference here is a change of the contract: additive only, or RPL_API must rise."""
    snapshot = (ROOT / "docs" / "plugin-api.json").read_text(encoding="utf-8")
    assert snapshot == GENERATOR.render_snapshot(), STALE


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_documented_with_its_exact_signature(hook):
    section = HOOKS_PAGE.read_text(encoding="utf-8").split(f"\n## {hook}\n", 1)[1].split("\n## ", 1)[0]
    signature = str(inspect.signature(HOOKS[hook])).replace("'", "")
    assert f"def {hook}{signature}\n" in section


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_spec_explains_arguments_result_order_and_isolation(hook):
    text = inspect.getdoc(HOOKS[hook]) or ""
    # What ``config`` is stands at the head of the page, for all hooks.
    for parameter in inspect.signature(HOOKS[hook]).parameters.keys() - {"config"}:
        assert f":param {parameter}:" in text
    assert ":return:" in text
    assert "Order:" in text
    assert "Isolation:" in text


#: Hooks that one test covers for all kinds of contributions that have names.
COVERED = {kind.hook for kind in GENERATOR.all_kinds() if kind.identity and not kind.asked}


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook not in COVERED])
def test_a_hook_has_a_test(hook):
    source = (ROOT / "tests" / "plugins" / "test_hooks.py").read_text(encoding="utf-8")
    assert re.search(rf"^def test_hook_{hook}\(", source, re.MULTILINE), f"write test_hook_{hook}"


def test_the_page_documents_no_hook_that_does_not_exist():
    page = HOOKS_PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == list(HOOKS)


#: Words of signatures that no page of ours explains: typing, the standard library, other libraries.
FOREIGN = {
    "Annotated",
    "Any",
    "BaseModel",
    "Callable",
    "FailFast",
    "False",
    "Iterable",
    "Literal",
    "Mapping",
    "NDArray",
    "None",
    "Path",
    "Sequence",
}
FOREIGN |= {"True"}


def test_whatever_a_signature_names_is_documented():
    pages = HOOKS_PAGE.read_text(encoding="utf-8") + VALUES_PAGE.read_text(encoding="utf-8")
    documented = set(re.findall(r"^### (\w+)$", pages, re.MULTILINE))
    documented |= set(re.findall(r"^(\w+)(?:: \w+)? = ", pages, re.MULTILINE))  # aliases
    snapshot = json.loads((ROOT / "docs" / "plugin-api.json").read_text(encoding="utf-8"))
    members = [m for kind in ("interfaces", "values") for listed in snapshot[kind].values() for m in listed]
    text = re.sub(r"""'[^']*'|"[^"]*\"""", "", "\n".join((*snapshot["hooks"].values(), *members)))
    assert set(re.findall(r"\b[A-Z][a-z]\w*", text)) - documented - FOREIGN == set()


def test_the_snapshot_holds_the_fields_of_values():
    snapshot = json.loads((ROOT / "docs" / "plugin-api.json").read_text(encoding="utf-8"))
    held = snapshot["interfaces"] | snapshot["values"]
    assert {"CounterMap", "Quantity", "Formula", "Trace", "Agent", "Architecture", "Options"} <= held.keys()
    assert "expression: str" in held["Formula"]
    assert "chip_id: int | None = None" in held["Agent"]
