"""The relay, the kinds table and the hook specs say the same, so that mypy checks every hook call."""

from __future__ import annotations

import inspect
import typing

import pytest

from rpl_core import hookspecs
from rpl_core.plugins.kinds import KINDS
from rpl_core.plugins.relay import HookRelay

HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("rpl_"))


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_relay_method_with_its_arguments(hook):
    method = getattr(HookRelay, hook.removeprefix("rpl_"))
    spec = inspect.signature(getattr(hookspecs, hook))
    ours = inspect.signature(method)
    assert list(ours.parameters)[1:] == list(spec.parameters)
    for name, parameter in spec.parameters.items():
        assert ours.parameters[name].annotation == parameter.annotation


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.hook)
def test_every_kind_expects_what_its_spec_promises(kind):
    promised = inspect.signature(getattr(hookspecs, kind.hook)).return_annotation
    assert promised == f"tuple[{kind.title}, ...] | None"
    assert kind.expected_type().__name__ == kind.title


def test_every_collecting_hook_has_a_kind():
    collecting = {
        hook
        for hook in HOOKS
        if str(inspect.signature(getattr(hookspecs, hook)).return_annotation).startswith("tuple")
    }
    assert {kind.hook for kind in KINDS} == collecting


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.hook)
def test_every_required_attribute_is_declared_by_the_interface(kind):
    declared = {name for cls in kind.expected_type().__mro__ for name in typing.get_type_hints(cls)}
    needed = {kind.identity, *kind.required_text, *kind.numbers, *kind.name_sets}
    assert needed <= declared
