"""Short names: the function, what tells siblings apart, and never two kernels under one name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_codeobject.kernel_names import short_names


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("stream_triad(float*, float const*, unsigned long)", "stream_triad"),
        ("void at::native::(anonymous namespace)::f<float, int>(float*)", "f"),
        ("void ns::op<ns::Functor::operator()(int)>(x)", "op"),
        ("std::enable_if<(3 > 2), void>::type at::k<int>(int) [clone .kd]", "k"),
        ("operator<<(a, b)", "operator<<"),
        ("void f<&(op_silu(float)), 1>(float const*)", "f"),
        ("Cijk_Ailk_Bljk_HHS_BH_MT64x64", "Cijk_Ailk_Bljk_HHS_BH_MT64x64"),
        ("bad<<(", "bad<<("),
        ("((((", "(((("),
        ("", ""),
    ],
)
def test_a_kernel_alone_is_its_function(name, short):
    assert short_names([name]) == {name: short}


def test_template_arguments_that_differ_are_shown():
    names = [f"void ns::gemm<128, {m}, ns::Half<{t}> >(int)" for m, t in ((64, "a"), (32, "a"), (64, "b"))]
    shown = ["gemm<…, 64, Half<a>>", "gemm<…, 32, Half<a>>", "gemm<…, 64, Half<b>>"]
    assert list(short_names(names).values()) == shown


def test_scope_parameters_and_at_last_numbers_tell_the_rest_apart():
    shown = short_names(["a::f(int)", "a::f(float)", "b::f(int)", "void g(int)", "int g(int)"])
    assert shown == {
        "a::f(int)": "a::f(int)",
        "a::f(float)": "a::f(float)",
        "b::f(int)": "b::f",
        "int g(int)": "g(int)#1",
        "void g(int)": "g(int)#2",
    }


@given(st.lists(st.text("ab<>(), :#1{}[]-", max_size=14), unique=True, max_size=12))
def test_different_names_read_differently_in_any_order(names):
    shown = short_names(names)
    spaced = {" ".join(name.split()) for name in names}
    assert len(set(shown.values())) == len(names) or len(spaced) < len(names)
    assert short_names(reversed(names)) == shown
