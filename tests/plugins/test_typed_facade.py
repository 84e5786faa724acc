"""The relay, the kinds table and the hook specs say the same, so that mypy checks every hook call."""

from __future__ import annotations

import inspect
import typing

import pytest

from rpl_core import hookspecs
from rpl_core.plugins.catalog import KINDS
from rpl_core.plugins.host import HookRelay

COLLECTING = {kind.hook for kind in KINDS}
OTHERS = sorted(name for name in vars(hookspecs) if name.startswith("rpl_") and name not in COLLECTING)


@pytest.mark.parametrize("hook", OTHERS)
def test_every_other_hook_has_a_relay_method_with_its_arguments(hook):
    method = inspect.signature(getattr(HookRelay, hook.removeprefix("rpl_")))
    spec = inspect.signature(getattr(hookspecs, hook))
    # The relay itself gives every plugin its settings.
    promised = {name: p.annotation for name, p in spec.parameters.items() if name != "config"}
    ours = {name: p.annotation for name, p in method.parameters.items() if name != "self"}
    assert ours == promised


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.hook)
def test_every_kind_expects_what_its_spec_promises(kind):
    spec = inspect.signature(getattr(hookspecs, kind.hook))
    promised = spec.return_annotation.replace("[Any]", "")
    assert promised == f"tuple[{kind.title.replace(' or ', ' | ')}, ...] | None"
    assert " or ".join(cls.__name__ for cls in kind.expected_types()) == kind.title
    assert {*spec.parameters} - {"config"} == {*kind.asked}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.hook)
def test_every_required_attribute_is_declared_by_the_interface(kind):
    needed = {*filter(None, [kind.identity]), *kind.required_text, *kind.numbers, *kind.fact_sets}
    for expected in kind.expected_types():
        assert needed <= {name for cls in expected.__mro__ for name in typing.get_type_hints(cls)}
