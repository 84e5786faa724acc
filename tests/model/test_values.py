"""``frozen`` means what ``attrs.frozen`` means, class by class; what contradicts annotations is said."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from rpl_core.model.value_checks import value_violation
from rpl_core.values import frozen


@frozen
class Ours:
    width: int
    names: tuple[str, ...] = ()
    note: str = attrs.field(default="", eq=False, repr=False, kw_only=True)


@attrs.frozen
class Theirs:
    width: int
    names: tuple[str, ...] = ()
    note: str = attrs.field(default="", eq=False, repr=False, kw_only=True)


@frozen
class Wider(Ours):
    depth: int = 0


@frozen(eq=False)
class Itself:
    width: int


@frozen
class Owned:
    width: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "owned"


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_equality_hash_and_text_as_attrs_gives_them(kind: type[Ours]) -> None:
    one, same, other = kind(1, ("a",), note="x"), kind(1, ("a",), note="y"), kind(2)

    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != (1, ("a",))
    assert repr(one) == f"{kind.__name__}(width=1, names=('a',))"
    assert attrs.evolve(one, width=2, names=()) == other
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.width = 3  # type: ignore[misc]


def test_classes_are_told_apart_and_fields_of_bases_count() -> None:
    assert Ours(1) != Theirs(1)
    assert Wider(1) != Ours(1)
    assert Ours(1) != Wider(1)
    assert Wider(1, depth=2) != Wider(1, depth=3)
    assert Wider(1, depth=2) == Wider(1, depth=2)
    assert repr(Wider(1)) == "Wider(width=1, names=(), depth=0)"


def test_identity_and_own_methods_are_kept() -> None:
    assert Itself(1) != Itself(1)
    assert repr(Itself(1)) == "Itself(width=1)"
    assert Owned(1) == Owned(2)
    assert hash(Owned(1)) == 7
    assert repr(Owned(1)) == "owned"


def test_what_a_container_holds_is_said_under_its_own_name() -> None:
    class Axis:
        pass

    assert value_violation(Ours("1")) == "width is str where int was expected"  # type: ignore[arg-type]
    assert value_violation(Ours(1, (Axis(),))) == "names holds Axis where str was expected"  # type: ignore[arg-type]
