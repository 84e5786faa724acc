"""Wrong kernels, made of a copy of the right one's machine code, that a comparison has to notice.

Words of instructions and their fields: "AMD Instinct MI300" CDNA3 Instruction Set Architecture, section 13
(microcode formats), and LLVM's AMDGPU instruction tables. Only code that was disassembled is changed, one
instruction at a time, and never what anybody else runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_codeobject.disassembly import Instruction
    from rpl_codeobject.kernel_code import CodeObject

_NOP, _END = 0xBF800000, 0xBF810000
#: Behind the prologue that loads arguments where the hardware has not preloaded them (LLVM AMDGPUUsage,
#: "Preloaded Kernel Arguments").
_PRELOADED_ENTRY = 0x100
_WORD = 4
#: Other architectures have other words for the same: s_endpgm, VOP3 and the opcodes of gfx11 are not these.
_ENCODING = "gfx9"


@frozen
class Mutant:
    """``code`` is the whole changed code object."""

    edit: str
    code: bytes


@frozen
class _Words:
    """An instruction with its machine words."""

    at: int
    mnemonic: str
    words: tuple[int, ...]


_Edit = tuple[str, tuple[int, ...]]


def can_be_changed(code_object: CodeObject) -> bool:
    """Whether the words of its instructions are those that are known here."""
    return code_object.architecture.startswith(_ENCODING)


def empty_kernel(code_object: CodeObject, kernel: str) -> Mutant:
    """It ends at once."""
    begin, _ = _code_range(code_object, kernel)
    record = code_object.kernel(kernel)
    preloads = record is not None and record.descriptor is not None and record.descriptor.kernarg_preload
    changed = bytearray(code_object.elf)
    for entry in (0, _PRELOADED_ENTRY) if preloads else (0,):
        changed[begin + entry : begin + entry + _WORD] = _END.to_bytes(_WORD, "little")
    return Mutant("the kernel ends at once", bytes(changed))


def mutants(code_object: CodeObject, kernel: str) -> Iterator[Mutant]:
    """As many as the code gives, different kinds of edits in turn, from all over the kernel."""
    from rpl_codeobject.disassembly import disassemble

    record = code_object.kernel(kernel)
    if record is None:
        raise BadDataError(f"the code object has no kernel {kernel}")
    begin, size = _code_range(code_object, kernel)
    code = tuple(
        _with_words(
            code_object.elf, begin, size, disassemble(code_object, kernels={record.name})[record.name]
        )
    )
    by_kind = [list(_spread([*_edits_of(code, edit)])) for edit in _EDITS]
    for round_ in range(max((len(one) for one in by_kind), default=0)):
        for found in by_kind:
            if round_ < len(found):
                instruction, (what, words) = found[round_]
                yield _mutant(code_object.elf, begin, instruction, what, words)


def _code_range(code_object: CodeObject, kernel: str) -> tuple[int, int]:
    """Where the kernel's code is in the file, and how many bytes it has."""
    from rpl_codeobject.reading.elf_file import guarded, open_elf

    record = code_object.kernel(kernel)
    name = record.name if record is not None else kernel

    def find() -> tuple[int, int]:
        elf = open_elf(code_object.elf)
        for section in elf.iter_sections():
            if not hasattr(section, "get_symbol_by_name"):
                continue
            for symbol in section.get_symbol_by_name(name) or ():
                if symbol["st_info"]["type"] == "STT_FUNC":
                    inside = elf.get_section(symbol["st_shndx"])
                    begin = inside["sh_offset"] + symbol["st_value"] - inside["sh_addr"]
                    return int(begin), int(symbol["st_size"])
        raise BadDataError(f"the code object has no code for {name}")

    return guarded(find, "the baseline's code object")


def _with_words(elf: bytes, begin: int, size: int, code: Sequence[Instruction]) -> Iterator[_Words]:
    ends = [one.address for one in code[1:]]
    for one, end in zip(code, [*ends, code[-1].address + _WORD], strict=True):
        content = elf[begin + one.address : begin + min(end, size)]
        words = tuple(int.from_bytes(content[k : k + _WORD], "little") for k in range(0, len(content), _WORD))
        yield _Words(one.address, one.mnemonic, words)


def _edits_of(
    code: Sequence[_Words], edit: Callable[[_Words], _Edit | None]
) -> Iterator[tuple[_Words, _Edit]]:
    for one in code:
        if one.words and (changed := edit(one)) is not None:
            yield one, changed


def _spread(found: list[tuple[_Words, _Edit]]) -> Iterator[tuple[_Words, _Edit]]:
    """First the middle, then the middles of both halves, and so on: near ones come late."""
    waiting = [(0, len(found))]
    while waiting:
        begin, end = waiting.pop(0)
        if begin < end:
            middle = (begin + end) // 2
            yield found[middle]
            waiting += [(begin, middle), (middle + 1, end)]


def _mutant(elf: bytes, begin: int, one: _Words, what: str, words: tuple[int, ...]) -> Mutant:
    changed = bytearray(elf)
    place = begin + one.at
    changed[place : place + _WORD * len(words)] = b"".join(word.to_bytes(_WORD, "little") for word in words)
    return Mutant(f"{one.mnemonic} at 0x{one.at:x}: {what}", bytes(changed))


#: Atomics, too, for some kernels write by nothing else; not those that loops wait for.
_STORE = re.compile(
    r"(?:global|flat|buffer|scratch)_store_\w+|ds_write\w*"
    r"|(?:global|flat|buffer)_atomic_(?!cmpswap)\w+"
    r"|ds_(?:add|sub|rsub|inc|dec|min|max|and|or|xor|pk_add)_(?!src2)\w+"
)
_LOAD = re.compile(r"(?:global|flat|buffer)_load_\w+|ds_read(?!_tr|_addtid)\w*")
_VECTOR = re.compile(r"v_(?!nop|cmpx?_|readfirstlane|accvgpr)\w+")
_SECTION = {0b110111: 0x1FFF, 0b111000: 0xFFF, 0b110110: 0xFF}  # FLAT, MUBUF, DS: the field of the offset


def _dropped_store(one: _Words) -> _Edit | None:
    if not _STORE.fullmatch(one.mnemonic):
        return None
    return "left out", (_NOP,) * len(one.words)


def _moved(one: _Words, pattern: re.Pattern[str], what: str) -> _Edit | None:
    field = _SECTION.get(one.words[0] >> 26)
    if field is None or not pattern.fullmatch(one.mnemonic):
        return None
    offset = one.words[0] & field
    return what, ((one.words[0] & ~field) | (offset + _WORD & field), *one.words[1:])


def _moved_store(one: _Words) -> _Edit | None:
    return _moved(one, _STORE, "stores four bytes behind")


def _moved_load(one: _Words) -> _Edit | None:
    return _moved(one, _LOAD, "reads four bytes behind")


def _inverted_compare(one: _Words) -> _Edit | None:
    """Vector: eight relations of which 7 - n is the contrary of n. Scalar: neighbours or mirrored."""
    first, rest = one.words[0], one.words[1:]
    if one.mnemonic.startswith("v_cmp_") and "class" not in one.mnemonic:
        shift = 17 if first >> 25 == 0b0111110 else 16
        return "the contrary", (first ^ 7 << shift, *rest)
    if first >> 23 == 0b101111110 and (op := first >> 16 & 0x7F) < len(_CONTRARY):
        return "the contrary", ((first & ~(0x7F << 16)) | _CONTRARY[op] << 16, *rest)
    return None


#: s_cmp_eq, lg, gt, ge, lt, le of signed and of unsigned integers.
_CONTRARY = (1, 0, 5, 4, 3, 2, 7, 6, 11, 10, 9, 8)


def _inverted_branch(one: _Words) -> _Edit | None:
    """Not those by ``exec``: they only save time."""
    first = one.words[0]
    if first >> 23 != 0b101111111 or first >> 16 & 0x7F not in (4, 5, 6, 7):
        return None
    return "the contrary", (first ^ 1 << 16,)


#: Opcodes of two sources: addition and subtraction, product and sum, least and greatest, shifts, bits.
_OTHER_VOP2 = {1: 2, 2: 1, 5: 1, 10: 11, 11: 10, 12: 13, 13: 12, 14: 15, 15: 14, 16: 18, 18: 16, 19: 20}
_OTHER_VOP2 |= {20: 19, 21: 20, 31: 33, 33: 31, 52: 53, 53: 52}


def _other_operation(one: _Words) -> _Edit | None:
    first, rest = one.words[0], one.words[1:]
    if first >> 31 == 0 and (op := first >> 25 & 0x3F) in _OTHER_VOP2 and op < 62:
        return "another operation", ((first & ~(0x3F << 25)) | _OTHER_VOP2[op] << 25, *rest)
    op = (first >> 16 & 0x3FF) - 0x100
    if first >> 26 == 0b110100 and op in _OTHER_VOP2:
        return "another operation", ((first & ~(0x3FF << 16)) | (_OTHER_VOP2[op] + 0x100) << 16, *rest)
    return None


def _negated(one: _Words) -> _Edit | None:
    if one.words[0] >> 26 != 0b110100 or len(one.words) < 2 or not re.search(r"_f(16|32|64)", one.mnemonic):
        return None
    if one.mnemonic.startswith(("v_cmp", "v_cndmask")):
        return None
    return "its first source negated", (one.words[0], one.words[1] ^ 1 << 29, *one.words[2:])


def _dropped_operation(one: _Words) -> _Edit | None:
    if not _VECTOR.fullmatch(one.mnemonic):
        return None
    return "left out", (_NOP,) * len(one.words)


def _dropped_barrier(one: _Words) -> _Edit | None:
    return ("left out", (_NOP,)) if one.mnemonic == "s_barrier" else None


#: Those that change results for sure come first.
_EDITS: tuple[Callable[[_Words], _Edit | None], ...] = (
    _dropped_store,
    _other_operation,
    _negated,
    _moved_load,
    _inverted_compare,
    _moved_store,
    _inverted_branch,
    _dropped_operation,
    _dropped_barrier,
)
