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


def test_gemms_of_tensile_are_called_by_what_people_compare():
    """Transposes by the order of indices in memory, types, tile; then the parameters that differ."""
    tail = "_SN_LDSB1_GSU{gsu}_{wave}_WG64_4_1"
    names = {
        "Cijk_Alik_Bljk_F8HS_BH_BiasSH_AS_MT256x224x128_MI16x16x1"
        + tail.format(gsu=1, wave="MIWT4_14"): "Cijk TN F8HS MT256x224x128 MIWT4_14",
        "Cijk_Alik_Bljk_F8HS_BH_BiasSH_AS_MT256x224x128_MI16x16x1"
        + tail.format(gsu=1, wave="MIWT8_7"): "Cijk TN F8HS MT256x224x128 MIWT8_7",
        "Cijk_Ailk_Bjlk_BBS_BH_UserArgs_MT64x16x256_MI16x16x1"
        + tail.format(gsu=2, wave="MIWT4_1"): "Cijk NT BBS MT64x16x256",
        "Cijk_Ailk_Bljk_BBS_BH_UserArgs_MT64x16x256_MI16x16x1"
        + tail.format(gsu=2, wave="MIWT4_1"): "Cijk NN BBS MT64x16x256",
        "Cijk_Alik_Bjlk_HHS_BH_MT64x16x256" + tail.format(gsu=2, wave="MIWT4_1"): "Cijk TT HHS MT64x16x256",
    }
    assert short_names(names) == names
    assert short_names(reversed(names)) == names


def test_gemms_that_nothing_compared_tells_apart_show_what_does():
    alike = [
        f"Cijk_Ailk_Bljk_SB_MT128x64x16_MI32x32x2x1_SN_NTA{n}_WG64_4_1{more}"
        for n, more in ((0, ""), (4, ""))
    ]
    assert list(short_names(alike).values()) == ["Cijk NN SB MT128x64x16 NTA0", "Cijk NN SB MT128x64x16 NTA4"]
    absent = [alike[0], f"{alike[0]}_WGM5"]
    assert list(short_names(absent).values()) == [
        "Cijk NN SB MT128x64x16 no WGM",
        "Cijk NN SB MT128x64x16 WGM5",
    ]
