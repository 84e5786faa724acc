"""Names of kernels as sources, profilers and symbol tables write them."""

from __future__ import annotations

import pytest

from rpl_codeobject.kernel_names import is_instance, source_name


@pytest.mark.parametrize(
    ("recorded", "own"),
    [
        ("saxpy", "saxpy"),
        ("saxpy(int, float*)", "saxpy"),
        ("saxpy(int) [clone .kd]", "saxpy"),
        ("void ns::saxpy<float>(int, float*)", "saxpy"),
        ("(anonymous namespace)::add(float*)", "add"),
        ("void (anonymous namespace)::add<Op<int> >(float*)", "add"),
        ("_Z5saxpyiPfS_", "saxpy"),
        ("_Z5saxpyiPfS_.kd", "saxpy"),
        ("_ZL4kernPf", "kern"),
        ("_Z4gemmI6float4Li3EEvPT_", "gemm"),
        ("_ZN2ns5saxpyEPf", "saxpy"),
        ("_ZN12_GLOBAL__N_13addEPf", "add"),
        ("_ZN2ns5outerIiE5innerEPf", "inner"),
        ("_Z", "_Z"),
        ("", ""),
    ],
)
def test_the_functions_own_name(recorded, own):
    assert source_name(recorded) == own


def test_a_longer_name_is_no_instance():
    assert is_instance("void axpy<double>(double*)", "axpy")
    assert not is_instance("saxpy(float*)", "axpy")
    assert not is_instance("_Z5saxpyPf", "axpy")


def test_hostile_lengths_end():
    assert source_name("_Z999999999999a") == source_name("_Z999999999999a")
    assert isinstance(source_name("_ZN" + "1a" * 100_000), str)
