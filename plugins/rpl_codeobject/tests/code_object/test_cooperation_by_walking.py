"""How waves cooperate, by walking drawn code instruction by instruction, against what is said of its blocks.

The definitions are those at the head of ``rpl_codeobject.cooperation``. A walk is a path in a graph of single
instructions; blocks play no part but for "across branches", which is a step into the target of a jump, or
behind one.
"""

from __future__ import annotations

import random
from itertools import product

import networkx as nx
import pytest

from rpl_codeobject.comparing import position_free
from rpl_codeobject.cooperation import (
    Cooperation,
    cooperation_changes,
    cooperation_kinds,
    cooperation_of,
    lane_exchanges,
)
from rpl_codeobject.disassembly import Instruction

BARRIER, LOAD, STORE = "barrier", "load of LDS", "store to LDS"
#: Mnemonics of gfx942 (LLVM, "AMDGPU instruction syntax", GFX940), by what they are for this question.
WORDS = {
    "s_barrier": BARRIER,
    "global_atomic_add_f32": "atomic on memory",
    "flat_atomic_cmpswap": "atomic on memory",
    "buffer_atomic_add": "atomic on memory",
    "ds_add_u32": "atomic on LDS",
    "ds_max_rtn_f32": "atomic on LDS",
    "ds_cmpst_rtn_b64": "atomic on LDS",
    "buffer_wbl2": "fence",
    "buffer_inv": "fence",
    "ds_read_b32": LOAD,
    "ds_read2st64_b64": LOAD,
    "ds_write_b8": STORE,
    "ds_write2_b32": STORE,
    # Neither: these go over the lanes of a wave, or touch memory in no order.
    "ds_bpermute_b32": None,
    "ds_swizzle_b32": None,
    "s_barrier_init": None,
    "global_load_dword": None,
    "v_add_f32": None,
    "s_waitcnt": None,
}
KINDS = frozenset(WORDS.values()) - {None, LOAD, STORE}


def drawn(rng, size, *, words=tuple(WORDS)):
    """Code with jumps to any of its instructions; the last one ends it, or a jump does."""
    code = []
    for at in range(size):
        jump = rng.random()
        if jump < 0.12:
            code.append(Instruction(4 * at, "s_branch", "", 4 * rng.randrange(size)))
        elif jump < 0.3:
            code.append(Instruction(4 * at, "s_cbranch_scc0", "", 4 * rng.randrange(size)))
        elif jump < 0.36 or at == size - 1:
            code.append(Instruction(4 * at, "s_endpgm", ""))
        else:
            code.append(Instruction(4 * at, rng.choice(words), "v0"))
    return code


def steps_of(code):
    """From instruction to instruction; with each step whether it leads from one block into another."""
    jumps = [
        n for n, one in enumerate(code) if one.mnemonic.startswith(("s_branch", "s_cbranch", "s_endpgm"))
    ]
    heads = {0, *(one.target // 4 for one in code if one.target is not None), *(n + 1 for n in jumps)}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(code)))
    for n, one in enumerate(code):
        if one.target is not None:
            graph.add_edge(n, one.target // 4, new=True)
        if one.mnemonic not in ("s_branch", "s_endpgm") and n + 1 < len(code):
            graph.add_edge(n, n + 1, new=n + 1 in heads)
    return graph


def reached(graph, start, passes, *, across=None):
    """All that a walk of one step or more comes to, where it may go on only from what ``passes``.

    With ``across`` only what was come to by a walk into another block.
    """
    waiting, seen = [(start, False)], set()
    while waiting:
        at, left = waiting.pop()
        for after in graph.successors(at):
            state = after, left or graph.edges[at, after]["new"]
            if state not in seen:
                seen.add(state)
                if passes(after):
                    waiting.append(state)
    return {at for at, left in seen if left or not across}


def by_walking(code):
    graph, word = steps_of(code), [WORDS.get(one.mnemonic) for one in code]

    def pairs(left, right, passes, **how):
        return frozenset(
            (word[a], word[b])
            for a in range(len(code))
            if word[a] in left
            for b in reached(graph, a, passes, **how)
            if word[b] in right
        )

    def stores(found):
        return frozenset(pair for pair in found if STORE in pair)

    def quiet(at):
        return word[at] != BARRIER

    weighted = nx.DiGraph()
    weighted.add_nodes_from(graph)
    weighted.add_weighted_edges_from((a, b, int(not quiet(b))) for a, b in graph.edges)
    ends = [n for n in graph if not list(graph.successors(n))]
    ways = nx.single_source_dijkstra_path_length(weighted, 0)
    whole = [ways[n] + int(not quiet(0)) for n in ends if n in ways]
    rounds = []
    for n in graph:
        if not quiet(n):
            found = [
                nx.dijkstra_path_length(weighted, m, n) + int(not quiet(m))
                for m in graph.successors(n)
                if nx.has_path(weighted, m, n)
            ]
            rounds += found
    access = {LOAD, STORE}
    return Cooperation(
        kinds=frozenset(word) & KINDS,
        followed=True,
        follows=pairs(KINDS, KINDS, lambda _: True),
        touches_lds=bool(access & set(word)),
        unordered=stores(pairs(access, access, quiet)),
        unordered_across=stores(pairs(access, access, quiet, across=True)),
        fewest=min(whole, default=None),
        per_loop=min(rounds, default=None),
    )


@pytest.mark.parametrize("seed", range(5))
def test_drawn_code_cooperates_as_walks_through_it_do(seed):
    rng = random.Random(seed)
    loops = 0
    for _ in range(120):
        few = [*rng.sample(sorted(WORDS), 4), "s_barrier", "s_barrier", "ds_write_b8"]
        code = drawn(rng, rng.randint(1, 16), words=few)
        expected = by_walking(code)
        assert cooperation_of(code) == expected, code
        assert cooperation_kinds(code) == expected.kinds
        loops += expected.per_loop is not None
    assert loops > 5


def test_no_code_has_no_barrier_and_where_it_goes_on_must_be_known():
    assert cooperation_of([]) == Cooperation(frozenset(), True, fewest=0)
    barrier, end = Instruction(0, "s_barrier", ""), Instruction(8, "s_endpgm", "")
    for jump in (
        Instruction(4, "s_setpc_b64", "s[0:1]"),
        Instruction(4, "s_cbranch_scc1", "somewhere"),
        Instruction(4, "s_branch", "", 6),
        Instruction(4, "s_branch", "", 12),
    ):
        assert cooperation_of([barrier, jump, end]) == Cooperation(frozenset({BARRIER}))


def changes_by_table(before, after, one_wave, unrolled):
    """What may not change, each as the head of the module says it; as a set of what is told."""
    found = set()
    if (before.kinds ^ after.kinds) - ({BARRIER} if one_wave else set()):
        found.add("kinds")
    if not (before.followed and after.followed):
        return found
    for first, second in after.follows - before.follows:
        if not (one_wave and BARRIER in (first, second)):
            found.add(f"{second} comes behind {first}")
    if one_wave:
        return found
    had_one_everywhere = before.fewest is not None and before.fewest > 0
    if had_one_everywhere and after.fewest == 0:
        found.add("passes no barrier")
    if (BARRIER, BARRIER) in before.follows and (BARRIER, BARRIER) not in after.follows:
        found.add("no barrier follows")
    found |= lds_by_table(before, after)
    if not unrolled:
        found |= counts_by_table(before, after)
    return found


def lds_by_table(before, after):
    found = set()
    if BARRIER in before.kinds and before.touches_lds:
        for first, second in product((LOAD, STORE), repeat=2):
            known = {(first, second), (second, first)} & before.unordered
            new_in_any_order = (first, second) in after.unordered and not known
            new_across = (first, second) in after.unordered_across and (first, second) not in before.unordered
            if new_in_any_order or new_across:
                found.add(f"a {second} comes behind a {first} without")
    return found


def counts_by_table(before, after):
    found = set()
    loops = before.per_loop, after.per_loop
    if None not in loops and loops[1] < loops[0]:
        found.add(f"iteration fell from {loops[0]} to {loops[1]}")
    paths = before.fewest, after.fewest
    if loops.count(None) != 1 and None not in paths and paths[1] < paths[0]:
        found.add(f"path fell from {paths[0]} to {paths[1]}")
    return found


def test_changes_of_cooperation_are_those_that_the_rules_name():
    rng = random.Random(29)
    told = set()
    for _ in range(700):
        few = [*rng.sample(sorted(WORDS), 3), "s_barrier", "s_barrier", "ds_write_b8", "ds_read_b32"]
        codes = [drawn(rng, rng.randint(1, 14), words=few)]
        codes.append(drawn(rng, rng.randint(1, 14), words=few))
        if rng.random() < 0.7:  # one instruction gone, what led behind it leads there still
            gone = rng.randrange(len(codes[0]))
            codes[1] = [
                Instruction(4 * n, *("s_nop", "") if n == gone else (one.mnemonic, ""), one.target)
                for n, one in enumerate(codes[0])
                if n != gone or one.target is None
            ]
        before, after = (cooperation_of(code) for code in codes)
        one_wave, unrolled = rng.random() < 0.3, rng.random() < 0.3
        found = cooperation_changes(before, after, one_wave=one_wave, unrolled=unrolled)
        expected = changes_by_table(before, after, one_wave, unrolled)
        assert len(found) == len(set(found)) == len(expected), (found, expected)
        for one in expected:
            assert sum(one in text for text in found) == 1, (one, found)
        told |= {one.split(" fell")[0] for one in expected}
    assert {"kinds", "passes no barrier", "no barrier follows", "iteration", "path"} <= told
    assert f"a {LOAD} comes behind a {STORE} without" in told


def test_barriers_of_steps_from_lane_to_lane_may_go_and_no_others():
    """Six steps had a barrier each and have one together: of so many reductions at most five each."""

    def straight(words):
        return [Instruction(4 * at, word, "") for at, word in enumerate([*words, "s_endpgm"])]

    for left in range(2, 10):
        for reductions in range(3):
            before, after = (cooperation_of(straight(["s_barrier"] * count)) for count in (9, left))
            found = cooperation_changes(before, after, exchanged=reductions)
            fell = [f"the fewest barriers on a path fell from 9 to {left}"]
            assert list(found) == (fell if left < 9 - 5 * reductions else [])
    few = cooperation_of(straight(["ds_write_b32", "ds_read_b32"]))
    lost = cooperation_changes(cooperation_of(straight(["ds_write_b32", "s_barrier"])), few, exchanged=9)
    assert any("came or went" in one for one in lost), "what else is judged is judged as ever"
    handed = ["ds_bpermute_b32", "v_add_f32_dpp", "ds_swizzle_b32", "v_permlane32_swap_b32", "v_mov_b32_dpp"]
    others = ["ds_read_b32", "v_add_f32_e32", "v_readfirstlane_b32", "v_dot2_f32_f16", "ds_append"]
    assert lane_exchanges(straight(handed + others)) == len(handed)


def test_distances_to_data_are_left_out_of_the_two_additions_behind_the_counter():
    """LLVM, AMDGPU: ``s_getpc_b64``, then ``s_add_u32`` and ``s_addc_u32`` with the distance as a literal."""
    code = [
        ("s_add_u32", "s0, s0, 0x10", "s0, s0, 0x10"),
        ("s_getpc_b64", "s[2:3]", "s[2:3]"),
        ("s_add_u32", "s2, s2, 0x1234", "s2, s2"),
        ("s_addc_u32", "s3, s3, 0", "s3, s3"),
        ("s_add_u32", "s4, s4, 0x20", "s4, s4, 0x20"),
        ("s_getpc_b64", "s[6:7]", "s[6:7]"),
        ("v_mov_b32", "v0, 1", "v0, 1"),
        ("s_addc_u32", "s7, s7, 4", "s7, s7"),
        ("s_add_u32", "s6, s6, 8", "s6, s6, 8"),
    ]
    listed = [Instruction(4 * n, word, operands) for n, (word, operands, _) in enumerate(code)]
    assert position_free(listed) == [(word, kept) for word, _, kept in code]


def test_blocks_in_turn_may_come_behind_each_other_and_nothing_else_changes():
    """The whole again behind one more barrier, or not at all; a store must not meet a load."""

    def code(words):
        return cooperation_of(
            [
                Instruction(0, "s_cbranch_scc1", "", target=4 * len(words) + 8),
                *(Instruction(4 * at + 4, word, "") for at, word in enumerate(words)),
                Instruction(4 * len(words) + 4, "s_cbranch_scc0", "", target=4),
                Instruction(4 * len(words) + 8, "s_endpgm", ""),
            ]
        )

    once = ["ds_write_b32", "s_barrier", "ds_read_b32"]
    before = cooperation_of([Instruction(4 * at, word, "") for at, word in enumerate([*once, "s_endpgm"])])
    again, hurried = code([*once, "s_barrier"]), code(once)
    assert cooperation_changes(before, again, repeated=True) == ()
    assert {one.split(" ")[0] for one in cooperation_changes(before, again)} == {"barrier", "a"}
    (why,) = cooperation_changes(before, hurried, repeated=True)
    assert "without a barrier between" in why
    more = code([*once, "s_barrier", "ds_add_u32", "s_barrier"])
    (why,) = cooperation_changes(before, more, repeated=True)
    assert "came or went" in why
