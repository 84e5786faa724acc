"""``frozen`` means what ``attrs.frozen`` means, class by class; what contradicts annotations is said."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import weakref
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

import attrs
import pytest

from rpl_core.model.value_checks import value_violation
from rpl_core.values import frozen, plain_fields

T = TypeVar("T")


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


# Plain classes, which attrs does not build: the same declaration is made with both.


def plain(make: Callable[..., Any]) -> Any:
    @make
    class Point:
        """A place."""

        x: int
        y: float = 0.5
        label: str | None = None

        @property
        def sum(self) -> float:
            return self.x + self.y

    return Point


def keyword_only(make: Callable[..., Any]) -> Any:
    @make(kw_only=True)
    class Span:
        begin_ns: int = 0
        end_ns: int

    return Span


def empty(make: Callable[..., Any]) -> Any:
    @make
    class Nothing:
        pass

    return Nothing


def generic(make: Callable[..., Any]) -> Any:
    @make
    class Box(Generic[T]):
        content: T

    return Box


@pytest.mark.parametrize("declare", [plain, keyword_only, empty, generic])
def test_a_plain_class_is_what_attrs_makes_of_it(declare: Callable[..., Any]) -> None:
    ours, theirs = declare(frozen), declare(attrs.frozen)

    assert plain_fields(ours) == tuple(field.name for field in attrs.fields(theirs))
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert ours.__init__.__qualname__.endswith(f"{ours.__qualname__}.__init__")
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert ours.__doc__ == theirs.__doc__
    assert get_type_hints(ours, {"T": T}) == get_type_hints(theirs, {"T": T})
    assert ours.__setattr__ is theirs.__setattr__
    assert ours.__delattr__ is theirs.__delattr__
    assert attrs.fields(ours) == attrs.fields(theirs)
    assert attrs.fields(ours) is attrs.fields(ours)


def test_instances_of_a_plain_class_behave_like_those_of_attrs() -> None:
    ours, theirs = plain(frozen), plain(attrs.frozen)
    one, same = ours(1, label="a"), ours(1, 0.5, "a")

    assert (one.x, one.y, one.label, one.sum) == (1, 0.5, "a", 1.5)
    assert one == same
    assert hash(one) == hash(same)
    assert one != ours(2)
    assert repr(one) == repr(theirs(1, label="a"))
    assert attrs.evolve(one, x=2) == ours(2, label="a")
    assert attrs.asdict(one) == {"x": 1, "y": 0.5, "label": "a"}
    assert weakref.ref(one)() is one
    assert copy.copy(one) == copy.deepcopy(one) == one
    assert not hasattr(one, "__dict__")
    for change in (lambda: setattr(one, "x", 3), lambda: delattr(one, "x")):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            change()


@frozen
class Kept:
    width: int
    names: tuple[str, ...] = ()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1)[2:])
def test_a_plain_value_survives_pickling(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(Kept(3, ("a",)), protocol)) == Kept(3, ("a",))


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, 2, 3, 4), {}), ((1,), {"z": 1}), ((1,), {"x": 1})]
)
def test_wrong_arguments_are_refused_in_the_words_of_attrs(
    arguments: tuple[int, ...], named: dict[str, int]
) -> None:
    with pytest.raises(TypeError) as theirs:
        plain(attrs.frozen)(*arguments, **named)
    with pytest.raises(TypeError) as ours:
        plain(frozen)(*arguments, **named)
    assert str(ours.value) == str(theirs.value)


def test_keywords_are_required_where_they_are() -> None:
    span = keyword_only(frozen)
    assert span(end_ns=3) == span(begin_ns=0, end_ns=3)
    with pytest.raises(TypeError, match="positional"):
        keyword_only(frozen)(1, 3)
    with pytest.raises(TypeError, match="end_ns"):
        keyword_only(frozen)()


@pytest.mark.parametrize("make", [frozen, attrs.frozen, attrs.define])
def test_a_class_below_a_plain_one_has_its_fields_first(make: Callable[..., Any]) -> None:
    base = plain(frozen)

    @make
    class Below(base):  # type: ignore[misc]
        z: int = 7

    class Undecorated(base):  # type: ignore[misc]
        pass

    assert (Below(1, 2.0, "a").z, Below(1, 2.0, "a", 9).z) == (7, 9)
    assert [field.name for field in attrs.fields(Below)] == ["x", "y", "label", "z"]
    assert repr(Below(1)).endswith("(x=1, y=0.5, label=None, z=7)")
    assert Undecorated(1) == Undecorated(1)
    assert Undecorated(1) != base(1)
    assert plain_fields(Undecorated) == ("x", "y", "label")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Below(1).x = 3


def test_what_is_not_plain_is_made_by_attrs() -> None:
    @frozen
    class Rich:
        count: ClassVar[int] = 3
        _width: int = attrs.field(converter=int)
        names: list[str] = attrs.Factory(list)

        @cached_property
        def area(self) -> int:
            return self._width**2

        def __attrs_post_init__(self) -> None:
            self.names.append("made")

        def mine(self) -> object:
            return __class__  # type: ignore[name-defined]

    rich = Rich("3")
    assert (rich.area, rich.names, Rich(1).names, rich.mine()) == (9, ["made"], ["made"], Rich)
    assert plain_fields(Rich) == ()


@pytest.mark.parametrize("method", [property, classmethod, lambda function: function])
def test_a_method_means_the_class_that_is_used(method: Callable[..., Any]) -> None:
    @frozen
    class Self:
        width: int = 1

        @method
        def own(self) -> object:
            return __class__  # type: ignore[name-defined]

    assert (Self().own if method is property else Self().own()) is Self


def test_a_field_that_is_required_behind_one_that_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="No mandatory attributes"):

        @frozen
        class Wrong:
            x: int = 0
            y: int


@pytest.mark.parametrize("make", [frozen, attrs.frozen])
def test_what_a_plain_class_inherits_from_and_holds_knows_it_alone(make: Callable[..., Any]) -> None:
    known: dict[str, type] = {}

    class Registry:
        def __init_subclass__(cls) -> None:
            known[cls.__name__] = cls

    class Owner:
        def __set_name__(self, owner: type, name: str) -> None:
            self.owner = owner

    @make
    class Registered(Registry):
        width: int
        held = Owner()

    assert attrs.has(Registered)  # attrs describes it by now
    assert known == {"Registered": Registered}
    assert vars(Registered)["held"].owner is Registered
    gc.collect()
    assert Registry.__subclasses__() == [Registered]


@pytest.mark.parametrize("declare", [plain, keyword_only])
def test_newer_attrs_and_python_take_a_plain_class_as_one_of_attrs(declare: Callable[..., Any]) -> None:
    ours, theirs = declare(frozen), declare(partial(attrs.frozen, eq=False, repr=False))

    assert getattr(ours, "__attrs_props__", None) == getattr(theirs, "__attrs_props__", None)
    assert hasattr(ours, "__replace__") == hasattr(theirs, "__replace__")
    if sys.version_info >= (3, 13):
        field = attrs.fields(ours)[-1].name
        assert (
            getattr(copy.replace(ours(1, 2.0) if declare is plain else ours(end_ns=1), **{field: 7}), field)
            == 7
        )
