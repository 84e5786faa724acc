"""Demangling names of others: the demangler's own answers, and no harm from names that unfold."""

from __future__ import annotations

from rpl_codeobject.demangle import demangled

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _unfolding(doublings: int) -> str:
    """``f(A, P<A, A>, P<P<A, A>, P<A, A>>, ...)``: each parameter is twice as long as the one before."""

    def back_reference(number: int) -> str:
        return "S_" if number == 0 else f"S{_DIGITS[number - 1]}_"

    return "_Z1f1A1PIS_S_E" + "".join(f"S0_I{back_reference(i + 2) * 2}E" for i in range(doublings))


def test_mangled_names_are_demangled_and_others_left_out():
    names = ["_Z3fooiPKf", "_ZN2ns1kILi4EfEEvT0_", "plain", "_Zbad"]
    assert demangled(names) == {
        "_Z3fooiPKf": "foo(int, float const*)",
        "_ZN2ns1kILi4EfEEvT0_": "void ns::k<4, float>(float)",
    }


def test_a_name_that_unfolds_without_end_costs_only_itself():
    assert demangled([_unfolding(30), "_Z1gi"]) == {"_Z1gi": "g(int)"}
    assert demangled([_unfolding(18)]) == {}
    assert list(demangled([_unfolding(5)]))
