"""The code of a captured launch: what pointers into it are called, and which other code the launch fits.

Names by walking the bytes of drawn images. Hidden arguments by LLVM's AMDGPU usage (Code Object V5 Metadata):
whole workgroups are counted, the remainder is what is left of the grid.
"""

from __future__ import annotations

import random
from itertools import product
from types import SimpleNamespace

import pytest

from rpl_vmreplay.replay.captured_code import (
    CodeImage,
    LaunchCode,
    code_pointers,
    may_call_pointers,
    takes_launch,
    told_names,
)

FUNCTION, OBJECT = "STT_FUNC", "STT_OBJECT"
BASE = 0x7F00_0000_0000


@pytest.mark.parametrize("seed", range(20))
def test_what_lies_at_each_address(seed):
    """Tables and descriptors first, then code: functions one behind the other, or no symbol at all."""
    rng = random.Random(seed)
    symbols, at = [], 0x100
    for number in range(rng.randint(0, 3)):
        size = 8 * rng.randint(1, 4)
        symbols.append((at, size, OBJECT, rng.choice((f"table{number}", f"kernel{number}.kd"))))
        at += size + rng.choice((0, 8))
    code = at + 8
    at = code
    for number in range(rng.choice((0, 1, 3))):
        size = rng.choice((0, 16, 32))
        symbols.append((at, size, FUNCTION, f"f{number}"))
        at += max(size, 4) + rng.choice((0, 8))
    end = at + 16
    image = CodeImage(BASE, 0x80, end, ((code, end),), tuple(sorted(symbols)))
    has_functions = any(kind == FUNCTION for _, _, kind, _ in symbols)
    for own in range(0x80, end):
        beginning = [name for begin, _, kind, name in symbols if kind == FUNCTION and begin == own]
        table = [name for b, size, kind, name in symbols if kind == OBJECT and b <= own < b + max(size, 1)]
        if beginning:
            expected = f"the function {beginning[0]}"
        elif table and own < code:
            expected = None if table[0].endswith(".kd") else f"the table {table[0]}"
        elif own >= code and has_functions:
            expected = None  # in the middle of one: no pointer of a program leads there
        else:
            expected = f"the code object at +0x{own:x}"
        assert image.name_of(BASE + own) == expected, hex(own)


def kernel(*arguments: tuple[int, int, str], largest: int = 1024, dynamic: bool | None = None):
    return SimpleNamespace(
        max_workgroup_size=largest,
        dynamic_stack=dynamic,
        arguments=[
            SimpleNamespace(offset=offset, size=size, value_kind=kind, hidden=kind.startswith("hidden_"))
            for offset, size, kind in arguments
        ],
    )


def test_workgroups_must_fit():
    for block, largest in product(((64, 1, 1), (16, 16, 4), (0, 1, 1)), (63, 64, 1023, 1024)):
        capture = SimpleNamespace(dispatch=SimpleNamespace(block=block))
        items = max(1, block[0]) * block[1] * block[2]
        fits = takes_launch(capture, "max_workgroup_size", kernel(), kernel(largest=largest))
        assert fits == (items <= largest)


def test_only_hidden_arguments_that_the_launch_tells_may_be_added():
    capture = SimpleNamespace(dispatch=SimpleNamespace(block=(64, 1, 1)))
    own, count = (0, 8, "global_buffer"), (8, 4, "hidden_block_count_x")
    before = kernel(own, count)
    for added, fits in (
        ((), True),
        (
            ((12, 4, "hidden_block_count_y"), (20, 2, "hidden_group_size_x"), (26, 2, "hidden_remainder_z")),
            True,
        ),
        (((40, 8, "hidden_global_offset_x"), (64, 2, "hidden_grid_dims"), (72, 8, "hidden_none")), True),
        (((80, 8, "hidden_printf_buffer"),), False),
        (((80, 8, "hidden_heap_v1"),), False),
        (((80, 16, "hidden_none"),), False),  # larger than a word
        (((4, 4, "hidden_block_count_y"),), False),  # among the kernel's own
    ):
        after = kernel(own, count, *added)
        for what in ("hidden_arguments[2]", "kernarg_bytes", "descriptor.kernarg_bytes"):
            assert takes_launch(capture, what, before, after) is fits, (what, added)
        assert not takes_launch(capture, "arguments[0].size", before, after)
    moved = kernel(own, (16, 4, "hidden_block_count_x"))
    assert takes_launch(capture, "hidden_arguments[0]", before, moved), "told anew where it is"


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_code_that_calls_nothing_calls_no_pointers(dynamic):
    assert may_call_pointers(LaunchCode(None, kernel(dynamic=dynamic))) is (dynamic is not False)


@pytest.mark.parametrize("count", range(6))
def test_three_names_and_how_many_more(count):
    names = tuple(f"n{one}" for one in range(count))
    more = f" and {count - 3} more" if count > 3 else ""
    assert told_names(names) == ", ".join(names[:3]) + more


@pytest.mark.parametrize("seed", range(10))
def test_pointers_in_memory_and_arguments_are_named_once(tmp_path, seed):
    """Words at multiples of eight bytes only; pointers to captured variables lead to copies."""
    rng = random.Random(seed)
    image = CodeImage(
        BASE, 0, 0x1000, ((0x800, 0x1000),), ((0x100, 64, OBJECT, "table"), (0x800, 8, FUNCTION, "f"))
    )
    variable = SimpleNamespace(address=BASE + 0x200, size=16)
    values = [
        BASE + 0x100,
        BASE + 0x108,
        BASE + 0x800,
        BASE + 0x804,
        BASE + 0x208,
        BASE + 0x1000,
        BASE - 8,
        0,
        7,
    ]
    words = [rng.choice(values) for _ in range(8)]
    arguments, region = words[:3], words[3:]
    (tmp_path / "kernarg.bin").write_bytes(b"".join(w.to_bytes(8, "little") for w in arguments) + b"\1\2\3")
    shift = rng.choice((0, 4))  # the region begins between two words
    content = bytes(shift) + b"".join(w.to_bytes(8, "little") for w in region)
    (tmp_path / "region.bin").write_bytes(content)
    capture = SimpleNamespace(
        folder=tmp_path,
        variables=(),
        regions=(SimpleNamespace(base=0x5000 - shift, size=len(content)),),
        extras=SimpleNamespace(module_variables=(variable,)),
    )
    memory = SimpleNamespace(capture=capture, path_of=lambda _region: tmp_path / "region.bin")
    found = code_pointers(memory, image)
    named = {BASE + 0x100: "the table table", BASE + 0x108: "the table table", BASE + 0x800: "the function f"}
    assert sorted(found) == sorted({named[word] for word in words if word in named})
