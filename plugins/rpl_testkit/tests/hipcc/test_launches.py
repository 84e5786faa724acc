"""Launch syntax becomes calls; what only looks like it stays."""

from __future__ import annotations

import pytest

from rpl_testkit.hipcc_standin.launches import translate

CALL = "::rpl_hip::bind([&](auto... rpl_hip_each) {{ {0}(rpl_hip_each...); }}, {1})"


@pytest.mark.parametrize(
    ("text", "name", "configuration"),
    [
        ("  k<<<1, 2>>>(a);", "k", "1, 2"),
        ("if (x) ns::k <<<dim3(1), f(b[2], c), 0, s>>> (a, b);", "ns::k ", "dim3(1), f(b[2], c), 0, s"),
        ("k<float, 8><<<g(A<B<C<int>>>::x), 1>>>();", "k<float, 8>", "g(A<B<C<int>>>::x), 1"),
        ('(pointer)<<<1, f(">>>")>>>(a);', "(pointer)", '1, f(">>>")'),
        ("k<(a > b)><<<\n1,\n2>>>(a);", "k<(a > b)>", "\n1,\n2"),
    ],
)
def test_a_launch(text: str, name: str, configuration: str) -> None:
    whole = f"{name}<<<{configuration}>>>"
    assert whole in text
    assert translate(text) == text.replace(whole, CALL.format(name, configuration))


@pytest.mark.parametrize(
    "text",
    ['puts("a<<<b>>>(c)");', "std::operator<<<char>(out, c);", '# 1 "<<<" 3\nint a;', "x = '<'; y << 1;"],
)
def test_not_a_launch(text: str) -> None:
    assert translate(text) == text


def test_lds() -> None:
    assert translate("__shared__ float a[4];") == "static float a[4];"
    expected = "static float4* const tile = reinterpret_cast<float4*>(::rpl_hip::dynamic_lds);"
    assert translate("extern __shared__ float4 tile[];") == expected
    assert translate("extern __attribute__((aligned(16))) __shared__ float4 tile [ ];") == expected
    assert translate("extern __shared__ __attribute__((aligned(16))) float4 tile[];") == expected


def test_a_launch_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="does not end"):
        translate("k<<<1, 2>>(a);")
