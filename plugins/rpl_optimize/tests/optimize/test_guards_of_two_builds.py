"""What refuses a candidate's binary, by tables of what two builds may differ in; code is made of words here.

Instances of the kernel are told from other kernels by their names; what an edit declares is allowed to it
and to no other; the instance that changed most speaks for all.
"""

from __future__ import annotations

import random
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from rpl_codeobject.comparing import AbiDiff, Difference, Severity
from rpl_codeobject.disassembly import IsaVerdict
from rpl_codeobject.occupancy import LaunchAssumption
from rpl_core.errors import BadDataError, PluginError
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.loop import binary_stage
from rpl_optimize.loop.binary_stage import (
    REQUIRED,
    KnownCode,
    LaunchLimit,
    guard_binary,
    guard_builds,
    guard_new_code,
    largest_launch,
    launch_of,
    why_not_moved,
)
from rpl_testkit.traces import TracedDispatch, make_trace

OWN, OTHER = "void k<4>(int)", "m(int)"


@pytest.mark.parametrize(("promised", "recorded"), list(product((64, 256), (None, 63, 64, 65, 256, 257))))
def test_a_promised_limit_holds_for_the_largest_launch(promised, recorded):
    guard = LaunchLimit(promised, recorded).guard()
    assert guard.guard == "launch-limit"
    assert guard.passed is (None if recorded is None else recorded <= promised)
    if recorded is None:
        assert "no launch of the kernel was recorded" in guard.reason
    else:
        assert guard.reason == (
            f"the largest recorded launch has {recorded} work-items, {promised} are promised"
        )


def test_code_that_was_judged_is_not_judged_again():
    known = {"a": KnownCode("candidate 3", rejected=True), "b": KnownCode("candidate 4", rejected=False)}
    assert [guard_new_code(code, known).passed for code in "abc"] == [False, None, True]
    assert guard_new_code("a", known).reason == "the same machine code as candidate 3"
    assert guard_new_code("c", known).guard == "binary-new"


@pytest.mark.parametrize("seed", range(15))
def test_the_largest_launch_of_all_instances(seed):
    draw = random.Random(seed)
    names = (OWN, "void k<8>(int)", OTHER, "void kk<4>(int)")
    launches = [
        [
            (draw.choice(names), (draw.choice((32, 64, 256)), draw.choice((1, 2)), draw.choice((1, 3))))
            for _ in range(draw.randint(0, 6))
        ]
        for _ in range(draw.randint(1, 3))
    ]
    traces = [
        make_trace(
            [TracedDispatch(name, 10 * n, 10 * n + 5, workgroup=size) for n, (name, size) in enumerate(some)]
        )
        for some in launches
    ]
    sizes = [x * y * z for some in launches for name, (x, y, z) in some if name in names[:2]]
    assert largest_launch(SimpleNamespace(traces=traces), "k") == max(sizes, default=None)
    blocks = {"a": (64, 2, 3), OWN: (16, 16), "none": None}
    kernels = [SimpleNamespace(name=n, kernel=SimpleNamespace(block=b)) for n, b in blocks.items()]
    for name, size in ((OWN, 256), ("a", 384), ("none", None), ("gone", None)):
        assert launch_of(SimpleNamespace(kernels=kernels), name).workgroup_size == size


class Builds:
    """Two builds: per instance its instructions, as words; what is compared is what a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.differences: list[Difference] = []
        self.unknown: tuple[str, ...] = ()
        self.compared = 2
        self.verdicts: dict[str, IsaVerdict] = {}
        self.cooperation: dict[str, list[str]] = {}
        self.exchanges: dict[str, int] = {}
        self.others: list[str] = []
        self.asked: list[dict[str, Any]] = []
        for name in ("compare_code_objects", "disassemble", "other_code_changes", "compare_instructions",
                     "cooperation_of", "cooperation_changes", "lane_exchanges"):  # fmt: skip
            monkeypatch.setattr(binary_stage, name, getattr(self, name))

    def objects(self, *kernels: str, target: str = "gfx942", most: int = 256) -> list[Any]:
        made = [
            SimpleNamespace(name=name, max_workgroup_size=most, wavefront_size=64, descriptor=None)
            for name in kernels
        ]
        return [SimpleNamespace(target=target, kernels=made)]

    def compare_code_objects(self, before: Any, after: Any, **_: Any) -> AbiDiff:
        return AbiDiff(tuple(self.differences), self.compared, self.unknown)

    def disassemble(self, built: Any, *, kernels: list[str]) -> dict[str, str]:
        # With what the instances call.
        return {name: name for name in (*kernels, "helper")} if kernels else {}

    def other_code_changes(self, before: Any, after: Any, own: Any) -> list[str]:
        assert own(OWN)
        assert not own(OTHER)
        return self.others

    def compare_instructions(self, old: str, new: str) -> Any:
        verdict = self.verdicts.get(old, IsaVerdict.LOOPS_CHANGED)
        return SimpleNamespace(verdict=verdict, sentence=lambda: f"{old}: {verdict.value}")

    def cooperation_of(self, code: str) -> str:
        return code

    def cooperation_changes(self, old: str, new: str, **asked: Any) -> list[str]:
        self.asked.append({"kernel": old, **asked})
        return self.cooperation.get(old, [])

    def lane_exchanges(self, code: str) -> int:
        return self.exchanges.get(code, 0)

    def guards(self, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
        before = before or self.objects(OWN, OTHER)
        found = guard_binary(
            before, after or before, "k", **{
                "launch": LaunchAssumption(), "architecture_of": lambda _: None, "must_change_loop": False,
                **more,
            },
        )  # fmt: skip
        names = [guard.guard for guard in found]
        assert len(names) == len(set(names))
        assert set(names) >= REQUIRED
        return {guard.guard: guard for guard in found}


def _difference(what: str, before: str | None, after: str | None, kernel: str | None = OWN) -> Difference:
    severity = Severity.REGRESSION if what == "lds_bytes" else Severity.BREAKING
    return Difference(severity, kernel, what, before, after, "so")


@pytest.mark.parametrize(
    ("difference", "limit", "allowed"),
    [
        (_difference("max_workgroup_size", "1024", "256"), 256, True),
        (_difference("max_workgroup_size", "1024", "128"), 256, False),  # another limit than is promised
        (_difference("max_workgroup_size", "1024", "256", OTHER), 256, False),
        (_difference("max_workgroup_size", "1024", "256", None), 256, False),
        (_difference("kernarg_bytes", "16", "256"), 256, False),
        (_difference("max_workgroup_size", "1024", "256"), None, False),
    ],
)
def test_a_limit_is_changed_as_promised_and_no_other(monkeypatch, difference, limit, allowed):
    builds = Builds(monkeypatch)
    builds.differences = [difference]
    more = {} if limit is None else {"limit": LaunchLimit(limit, 64)}
    found = builds.guards(**more)
    assert found["binary-abi"].passed is allowed
    assert ("launch-limit" in found) == (limit is not None)


@pytest.mark.parametrize(
    ("before", "after", "kernel", "most", "allowed"),
    [
        ("0", "4096", OWN, 4096, True), ("64", "4160", OWN, 4096, True), ("0", "4097", OWN, 4096, False),
        ("0", "16", OTHER, 4096, False), ("0", "16", OWN, None, False), (None, "16", OWN, 4096, False),
        ("0", None, OWN, 4096, False), ("0", "-1", OWN, 4096, False), ("x", "16", OWN, 4096, False),
        ("0", "16", None, 4096, False),
    ],
)  # fmt: skip
def test_lds_grows_as_declared_and_no_more(monkeypatch, before, after, kernel, most, allowed):
    builds = Builds(monkeypatch)
    builds.differences = [_difference("lds_bytes", before, after, kernel)]
    found = builds.guards(lds_growth=most, measured=False)
    assert found["binary-lds"].passed is allowed
    weighed = builds.guards(lds_growth=most, measured=True)
    assert weighed["binary-lds"].passed is True
    assert ("for the measurement to weigh" in weighed["binary-lds"].reason) == (not allowed)


ORDER = (IsaVerdict.LOOPS_CHANGED, IsaVerdict.OUTSIDE_LOOPS, IsaVerdict.IDENTICAL)


@pytest.mark.parametrize(
    ("one", "other", "must", "retuned"),
    list(product(ORDER, ORDER, (True, False), (None, "device", "launches"))),
)
def test_the_instance_that_changed_most_speaks_for_all(monkeypatch, one, other, must, retuned):
    builds = Builds(monkeypatch)
    second = "void k<8>(int)"
    builds.verdicts = {OWN: one, second: other}
    found = builds.guards(builds.objects(OWN, second, OTHER), must_change_loop=must, retuned=retuned)
    most = min((one, other), key=ORDER.index)
    wanted = {IsaVerdict.LOOPS_CHANGED} if must else {*ORDER} if retuned == "launches" else {*ORDER[:2]}
    assert found["binary-isa"].passed is (most in wanted)
    assert found["binary-isa"].reason.endswith(most.value)
    # Constants change how often loops run; so does what has to change a loop.
    assert [asked["kernel"] for asked in builds.asked] == sorted((OWN, second))
    assert {asked["unrolled"] for asked in builds.asked} == {must or retuned is not None}


@pytest.mark.parametrize(("most", "one_wave"), [(32, True), (64, True), (65, False), (256, False)])
def test_a_workgroup_of_one_wave_needs_no_barrier(monkeypatch, most, one_wave):
    builds = Builds(monkeypatch)
    builds.guards(builds.objects(OWN), builds.objects(OWN, most=most))
    assert [asked["one_wave"] for asked in builds.asked] == [one_wave]


@pytest.mark.parametrize(
    ("exchanged", "before", "after", "passes"),
    [(0, 0, 0, True), (0, 2, 1, True), (1, 0, 1, True), (1, 1, 1, False), (2, 3, 2, False), (1, 4, 9, True)],
)
def test_values_go_from_lane_to_lane_where_that_is_declared(monkeypatch, exchanged, before, after, passes):
    builds = Builds(monkeypatch)
    counts = iter((before, after))
    monkeypatch.setattr(binary_stage, "lane_exchanges", lambda _: next(counts))
    found = builds.guards(builds.objects(OWN), exchanged=exchanged)
    assert found["binary-cooperation"].passed is passes
    assert {asked["exchanged"] for asked in builds.asked} == {exchanged}


def test_what_changed_on_other_paths_and_elsewhere_is_told_once(monkeypatch):
    builds = Builds(monkeypatch)
    second = "void k<8>(int)"
    builds.cooperation = {OWN: ["a barrier is gone", "a fence"], second: ["a barrier is gone"]}
    builds.others = [f"m{number}" for number in range(7)]
    found = builds.guards(builds.objects(OWN, second))
    assert found["binary-cooperation"].passed is False
    assert found["binary-cooperation"].reason == "a barrier is gone; a fence"
    assert (found["other-code"].passed, found["other-code"].reason) == (False, "m0; m1; m2; m3; m4")
    builds.cooperation, builds.others = {}, []
    assert all(guard.passed for guard in builds.guards().values())
    # What is in one of the builds only, and other targets, are no instances of both.
    for after in (builds.objects("void k<16>(int)"), builds.objects(OWN, target="gfx950")):
        guard = builds.guards(builds.objects(OWN), after)["binary-isa"]
        assert (guard.passed, guard.reason) == (None, "no machine code of k in both builds")


@pytest.mark.parametrize("where", ["disassemble", "other_code_changes"])
def test_code_that_cannot_be_read_is_not_comparable(monkeypatch, where):
    builds = Builds(monkeypatch)

    def broken(*_: Any, **__: Any) -> None:
        raise BadDataError("no such opcode")

    monkeypatch.setattr(binary_stage, where, broken)
    found = builds.guards()
    for name in ("binary-isa", "binary-cooperation", "other-code"):
        assert (found[name].passed, found[name].reason) == (None, "not comparable: no such opcode")
    assert found["binary-abi"].passed


@pytest.mark.parametrize(
    ("code", "entries", "problem"),
    [
        (("x", "x"), (256, 512), None),
        (("x", "x"), (256, 256), "the padding did not move the kernel"),
        (("x", "x"), (None, None), "the padding did not move the kernel"),
        (("x", "y"), (256, 512), "the padding changed the kernel's machine code"),
        (("", ""), (256, 512), "the padding changed the kernel's machine code"),
        (("x", "broken"), (256, 512), "the padded build is not comparable: no such opcode"),
    ],
)
def test_padding_moves_the_kernel_and_changes_nothing(monkeypatch, code, entries, problem):
    def words(built: Any, *, kernels: list[str]) -> dict[str, str]:
        if built.text == "broken":
            raise BadDataError("no such opcode")
        return dict.fromkeys(kernels, built.text) if built.text else {}

    monkeypatch.setattr(binary_stage, "disassemble", words)
    monkeypatch.setattr(binary_stage, "position_free", lambda code: code)
    sides = []
    for text, entry in zip(code, entries, strict=True):
        descriptor = None if entry is None else SimpleNamespace(entry_offset=entry)
        own = SimpleNamespace(name=OWN, descriptor=descriptor)
        other = SimpleNamespace(name=OTHER, descriptor=SimpleNamespace(entry_offset=id(text)))
        built = SimpleNamespace(target="gfx942", kernels=[own, other], text=text)
        sides.append(SimpleNamespace(code=None, code_objects=[built]))
    assert why_not_moved(*sides, "k") == problem
    # A builder that knows what its code is says so itself.
    told = SimpleNamespace(why_not_moved=lambda code, kernel: f"{code} {kernel}")
    owned = [SimpleNamespace(code=told), SimpleNamespace(code="shifted")]
    assert why_not_moved(*owned, "k") == "shifted k"
    assert why_not_moved(SimpleNamespace(**{**vars(sides[0]), "code": told}), sides[1], "k") == problem


@pytest.mark.parametrize("limit", [None, LaunchLimit(64, 128)])
def test_a_builder_compares_its_own_code(monkeypatch, limit):
    asked: list[Any] = []
    verdicts = [GuardVerdict(name, True, f"by {name}") for name in sorted(REQUIRED)]
    before = SimpleNamespace(code=SimpleNamespace(guards=lambda after, more: asked.append(more) or verdicts))
    options = {
        "launch": LaunchAssumption(workgroup_size=96), "architecture_of": len, "must_change_loop": True,
        "measured": False, "allow_occupancy_loss": True, "limit": limit, "lds_growth": 5,
    }  # fmt: skip
    found = guard_builds(before, SimpleNamespace(code="new"), "k", "owner", **options)
    assert [guard.guard for guard in found] == [
        *sorted(REQUIRED),
        *(() if limit is None else ("launch-limit",)),
    ]
    assert [guard.reason for guard in found[: len(verdicts)]] == [one.reason for one in verdicts]
    (one,) = asked
    assert (one.kernel, one.architecture_of, one.launch_size, one.changes_loop) == ("k", len, 96, True)
    assert (one.measured, one.allow_occupancy_loss, one.lds_growth) == (False, True, 5)
    assert one.workgroup_limit == (None if limit is None else 64)
    lost = verdicts.pop()
    with pytest.raises(PluginError, match=f"says nothing of {lost.guard}"):
        guard_builds(before, SimpleNamespace(code="new"), "k", "owner", **options)
    # Where only one of both says what it is, code objects are compared.
    seen = []
    monkeypatch.setattr(binary_stage, "guard_binary", lambda *given, **more: seen.append((given, more)) or ())
    for sides in ((None, "new"), ("old", None), (None, None)):
        objects = [SimpleNamespace(code=code, code_objects=[code]) for code in sides]
        assert (
            guard_builds(*objects, "k", "owner", **options, retuned="device", exchanged=3, repeated=True)
            == ()
        )
        given, more = seen.pop()
        assert given == ([sides[0]], [sides[1]], "k")
        assert more == {**options, "retuned": "device", "exchanged": 3, "repeated": True}
