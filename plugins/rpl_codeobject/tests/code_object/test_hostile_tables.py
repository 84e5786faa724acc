"""Code objects whose parts overlap: read in time and memory that follow the size of the file, or refused."""

from __future__ import annotations

import struct

import pytest

from rpl_codeobject.disassembly import Instruction, find_machine_loops
from rpl_codeobject.reading import code_objects_from, elf_file, read_code_objects, split_section
from rpl_codeobject.reading.elf_file import code_digest, exported_symbols
from rpl_core.errors import BadDataError
from rpl_testkit.hand_made_code import CodeParts, metadata_note


def test_a_hand_made_code_object_is_one():
    (code,) = code_objects_from(CodeParts(relocations=3, functions=2, variables=2).build(), "here")
    (kernel,) = code.kernels
    assert (kernel.name, kernel.descriptor.entry_offset) == ("k", -64)
    assert exported_symbols(code)["k"].size == 4
    assert code_digest([code])


@pytest.mark.parametrize(
    "parts",
    [
        CodeParts(notes=3000, note=metadata_note(bytes(100_000))),
        CodeParts(functions=3000, name=b"n" * 20_000),
        CodeParts(variables=3000, name=b"n" * 20_000 + b".kd"),
    ],
    ids=["notes", "names of functions", "names of descriptors"],
)
def test_parts_that_overlap_again_and_again_are_refused(parts):
    with pytest.raises(BadDataError, match="overlap again and again"):
        code_objects_from(parts.build(), "here")


def test_variables_that_overlap_are_not_copied_for_each_name(monkeypatch):
    """Each name of a table of symbols could stand for the whole file."""
    from rpl_codeobject.reading import elf_file

    (code,) = code_objects_from(CodeParts(variables=300).build(), "here")
    assert len(exported_symbols(code)) == 3
    monkeypatch.setattr(elf_file, "_SYMBOL_PASSES", 1)
    with pytest.raises(BadDataError, match="variables that overlap"):
        exported_symbols(code)


def test_a_note_of_countless_lists_is_refused(monkeypatch):
    monkeypatch.setattr(elf_file, "_MOST_CONTAINERS", 1000)
    note = b"\xdd" + struct.pack(">I", 2000) + b"\x90" * 2000
    with pytest.raises(BadDataError, match="more than 1000 lists"):
        elf_file.decode_note(note, "here")


def test_a_section_of_countless_bundles_is_gone_through_once():
    """Each bundle claims the next ones as its table of entries, and the other kind of bundle never comes."""
    empty = b"__CLANG_OFFLOAD_BUNDLE__" + bytes(8)

    class Watched(bytes):
        looked_at = 0

        def find(self, *words):
            place = super().find(*words)
            Watched.looked_at += (len(self) if place < 0 else place) - words[1]
            return place

    assert split_section(Watched(empty * 2000), "here") == ()
    assert Watched.looked_at <= 2 * len(empty) * 2000


def test_loops_that_lie_in_each_other_without_end_are_refused():
    """Each would list what is inside: the square of the code."""
    code = [Instruction(4 * place, "s_branch", "", 4 * (place - 500)) for place in range(500, 1000)]
    code = [Instruction(4 * place, "s_nop", "", None) for place in range(500)] + code
    with pytest.raises(BadDataError, match="500 loops"):
        find_machine_loops(code)
    assert len(find_machine_loops(code[:600])) == 100


def test_what_is_no_regular_file_is_told_so(tmp_path):
    with pytest.raises(BadDataError, match="no regular file"):
        read_code_objects(tmp_path)
