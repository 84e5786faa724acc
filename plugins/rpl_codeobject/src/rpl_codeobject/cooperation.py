"""How a kernel's work-items cooperate, by its machine code: barriers, atomics and fences on all of its paths.

Counts say nothing by themselves: an unrolled loop has more barriers, a loop that is unrolled no longer fewer.
What unrolling keeps is which of them can follow which, and what is done to LDS between two barriers:

``kinds``
    Barriers, atomics on memory and on LDS, fences. None comes or goes.
``a path without a barrier``
    Where every path through the kernel passed a barrier, every path still does.
``one barrier behind another``
    Where a barrier could follow a barrier, one still can.
``order``
    No kind comes behind another that never did.
``LDS without a barrier between``
    No load and store of LDS, nor two stores, lie on a path without a barrier where they did not. The order
    of both counts only across branches: within a block the compiler reorders what does not alias. Asked of
    kernels that had barriers and touched LDS.
``barriers of a loop, barriers of the whole``
    The fewest of an iteration, and the fewest from the first to the last instruction, do not shrink. They may
    where an edit says that it changes how often a loop's body stands in the code (``unrolled``).

What all this can't see: addresses, so which of two arrays is touched; barriers in functions that are called
and not inlined; and a barrier that was taken from one of several loops that look alike. A workgroup of one
wave needs no barrier, and the compiler drops it: then only atomics and fences are compared.

Mnemonics: LLVM's "AMDGPU instruction syntax" for GFX9 and later, https://llvm.org/docs/AMDGPUUsage.html;
fences of agents and systems: its "Memory Model gfx942".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_codeobject.disassembly import Instruction


_BARRIER, _LOAD, _STORE = "barrier", "load of LDS", "store to LDS"
_KINDS = {
    _BARRIER: re.compile(r"s_barrier(?!_(?:init|join|leave))\w*"),
    "atomic on memory": re.compile(r"(?:global|flat|buffer)_atomic_\w+"),
    "atomic on LDS": re.compile(
        r"ds_(?:pk_)?(?:add|sub|rsub|inc|dec|min|max|and|or|xor|mskor|cmpst|cmpstore|wrxchg|storexchg"
        r"|condxchg|append|consume)\w*"
    ),
    "fence": re.compile(r"buffer_wb\w+|buffer_inv\w*|buffer_gl\d_inv|global_(?:wb|inv|wbinv)"),
}
_ACCESSES = {
    _LOAD: re.compile(r"ds_(?:read|load)_?\w*"),
    _STORE: re.compile(r"ds_(?:write|store)_?\w*"),
}
_EXCHANGE = re.compile(r"ds_b?permute\w*|ds_swizzle\w*|v_\w+_dpp\w*|v_permlane\w*")
#: Steps of a reduction within a wave: by way of LDS each has a barrier, from lane to lane all have one.
_STEPS = 6
_BRANCH = re.compile(r"s_c?branch\w*|s_call_b64|s_subvector_loop\w*")
#: Where the code goes on is not in the instruction.
_SOMEWHERE = frozenset(("s_setpc_b64", "s_cbranch_join", "s_cbranch_g_fork", "s_cbranch_i_fork", "s_rfe_b64"))
_ENDS = re.compile(r"s_endpgm\w*")


def cooperation_kinds(code: Iterable[Instruction]) -> frozenset[str]:
    """The kinds that are present."""
    words = {instruction.mnemonic for instruction in code}
    return frozenset(
        kind for kind, pattern in _KINDS.items() if any(pattern.fullmatch(word) for word in words)
    )


@frozen
class Cooperation:
    """Of one kernel; see the module. ``fewest`` is ``None`` where no path ends, ``per_loop`` without loops.

    ``followed``: its branches are all known. Without that only ``kinds`` is filled in.
    """

    kinds: frozenset[str]
    followed: bool = False
    follows: frozenset[tuple[str, str]] = frozenset()
    touches_lds: bool = False
    unordered: frozenset[tuple[str, str]] = frozenset()
    unordered_across: frozenset[tuple[str, str]] = frozenset()
    fewest: int | None = None
    per_loop: int | None = None


def cooperation_of(code: Sequence[Instruction]) -> Cooperation:
    """The structure of a kernel's code."""
    kinds = cooperation_kinds(code)
    blocks = _blocks(code)
    if blocks is None:
        return Cooperation(kinds)
    followed = _followed(blocks)
    unordered, across = _unordered(blocks)
    fewest, per_loop = _barriers(blocks)
    touches = any(word in _ACCESSES for block in blocks for word in block.words)
    return Cooperation(kinds, True, followed, touches, unordered, across, fewest, per_loop)


def cooperation_changes(
    before: Cooperation,
    after: Cooperation,
    *,
    one_wave: bool = False,
    unrolled: bool = False,
    exchanged: int = 0,
    repeated: bool = False,
) -> tuple[str, ...]:
    """What the candidate's code does otherwise, in words; see the module.

    ``one_wave``: no workgroup of the candidate has more than one wave. ``unrolled``: the edit changes loops
    by hints alone, so their bodies may stand in the code more or less often. ``exchanged``: the edit hands
    the last steps of so many reductions from lane to lane, which need no barriers then. ``repeated``: the
    edit does the whole again and again, a barrier in between if it has one, or not at all. All kinds may come
    behind each other then, a path may be empty, and so may a loop. Accesses of LDS still have to lie apart.
    """
    ignored = {_BARRIER} if one_wave else set()
    different = sorted((before.kinds ^ after.kinds) - ignored)
    changes = [f"kinds of cooperation came or went: {', '.join(different)}"] if different else []
    if not before.followed or not after.followed:
        return tuple(changes)
    for first, second in sorted(after.follows - before.follows if not repeated else ()):
        if not {first, second} & ignored:
            changes.append(f"{second} comes behind {first}, which it never did")
    if one_wave:
        return tuple(changes)
    if (before.fewest or 0) > 0 and after.fewest == 0 and not repeated:
        changes.append("a path through the kernel passes no barrier, and every path did")
    if (_BARRIER, _BARRIER) in before.follows - after.follows:
        changes.append("no barrier follows a barrier any more")
    both = {tuple(sorted(pair)) for pair in before.unordered}
    gained = {pair for pair in after.unordered if tuple(sorted(pair)) not in both}
    gained |= after.unordered_across - before.unordered
    # Arrays of one work-item that the compiler moves to LDS are nobody else's.
    for first, second in sorted(gained if _BARRIER in before.kinds and before.touches_lds else ()):
        changes.append(f"a {second} comes behind a {first} without a barrier between, which it never did")
    if not (unrolled or repeated):
        changes += _shrunk(before, after, (_STEPS - 1) * exchanged)
    return tuple(changes)


def lane_exchanges(code: Iterable[Instruction]) -> int:
    """How many instructions hand a value from one lane to another."""
    return sum(_EXCHANGE.fullmatch(instruction.mnemonic) is not None for instruction in code)


def _shrunk(before: Cooperation, after: Cooperation, fewer: int) -> Iterator[str]:
    loops = (before.per_loop, after.per_loop)
    if None not in loops and (after.per_loop or 0) < (before.per_loop or 0):
        yield f"the fewest barriers of a loop's iteration fell from {loops[0]} to {loops[1]}"
    alike = (before.per_loop is None) is (after.per_loop is None)
    if (
        alike
        and None not in (before.fewest, after.fewest)
        and (after.fewest or 0) < (before.fewest or 0) - fewer
    ):
        yield f"the fewest barriers on a path fell from {before.fewest} to {after.fewest}"


@frozen(eq=False)
class _Block:
    """``words`` are kinds and accesses in order, ``next`` the blocks that may follow."""

    words: tuple[str, ...]
    next: tuple[int, ...]
    ends: bool


def _blocks(code: Sequence[Instruction]) -> list[_Block] | None:
    """Basic blocks in the order of their addresses; ``None`` where a jump leads nobody knows where."""
    known: dict[str, str | None] = {}
    starts = {0} if code else set[int]()
    places = {instruction.address: at for at, instruction in enumerate(code)}
    for at, executed in enumerate(code):
        if executed.mnemonic in _SOMEWHERE:
            return None
        if _BRANCH.fullmatch(executed.mnemonic) or _ENDS.fullmatch(executed.mnemonic):
            if executed.target is not None:
                if executed.target not in places:
                    return None
                starts.add(places[executed.target])
            elif not _ENDS.fullmatch(executed.mnemonic):
                return None
            starts.add(at + 1)
    order = sorted(start for start in starts if start < len(code))
    numbers = {start: number for number, start in enumerate(order)}
    blocks = []
    for number, start in enumerate(order):
        end = order[number + 1] if number + 1 < len(order) else len(code)
        last = code[end - 1]
        words = []
        for executed in code[start:end]:
            if executed.mnemonic not in known:
                patterns = {**_KINDS, **_ACCESSES}
                known[executed.mnemonic] = next(
                    (word for word, pattern in patterns.items() if pattern.fullmatch(executed.mnemonic)), None
                )
            word = known[executed.mnemonic]
            if word is not None:
                words.append(word)
        after = [] if last.target is None else [numbers[places[last.target]]]
        ends = _ENDS.fullmatch(last.mnemonic) is not None
        if not ends and last.mnemonic != "s_branch" and number + 1 < len(order):
            after.append(number + 1)
        blocks.append(_Block(tuple(words), tuple(after), ends or not after))
    return blocks


def _followed(blocks: list[_Block]) -> frozenset[tuple[str, str]]:
    """Which kind can come behind which, anywhere later."""
    pairs: set[tuple[str, str]] = set()
    entered: list[set[str]] = [set() for _ in blocks]
    waiting = deque(range(len(blocks)))
    while waiting:
        number = waiting.popleft()
        seen = set(entered[number])
        for word in blocks[number].words:
            if word in _KINDS:
                pairs |= {(earlier, word) for earlier in seen}
                seen.add(word)
        for follower in blocks[number].next:
            if not seen <= entered[follower]:
                entered[follower] |= seen
                waiting.append(follower)
    return frozenset(pairs)


def _unordered(
    blocks: list[_Block],
) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]:
    """Pairs of accesses of LDS with a store and without a barrier between; those across branches again."""
    pairs: set[tuple[str, str]] = set()
    across: set[tuple[str, str]] = set()
    entered: list[set[str]] = [set() for _ in blocks]
    waiting = deque(range(len(blocks)))
    while waiting:
        number = waiting.popleft()
        before, here = set(entered[number]), set[str]()
        for word in blocks[number].words:
            if word == _BARRIER:
                before, here = set(), set()
            elif word in _ACCESSES:
                across |= {(earlier, word) for earlier in before if _STORE in {earlier, word}}
                pairs |= {(earlier, word) for earlier in before | here if _STORE in {earlier, word}}
                here.add(word)
        for follower in blocks[number].next:
            if not before | here <= entered[follower]:
                entered[follower] |= before | here
                waiting.append(follower)
    return frozenset(pairs), frozenset(across)


def _barriers(blocks: list[_Block]) -> tuple[int | None, int | None]:
    """The fewest barriers from the entry to an end, and the fewest of a way back to the same barrier."""
    if not blocks:
        return 0, None
    counts = [block.words.count(_BARRIER) for block in blocks]
    from_entry = _distances(blocks, counts, {0: counts[0]})
    ends = [from_entry[number] for number, block in enumerate(blocks) if block.ends and number in from_entry]
    loops = []
    for number, count in enumerate(counts):
        if count:
            begun = {follower: counts[follower] for follower in blocks[number].next}
            back = _distances(blocks, counts, begun)
            if number in back:
                loops.append(back[number])
    return min(ends, default=None), min(loops, default=None)


def _distances(blocks: list[_Block], counts: list[int], begun: dict[int, int]) -> dict[int, int]:
    """The fewest barriers up to the end of each block that can be reached."""
    best = dict(begun)
    waiting = deque(begun)
    while waiting:
        number = waiting.popleft()
        for follower in blocks[number].next:
            length = best[number] + counts[follower]
            if length < best.get(follower, length + 1):
                best[follower] = length
                waiting.append(follower)
    return best
