"""The sentences of the verdict over drawn documents: each is told exactly where its figures say so.

Limits and figures are worked out again from docs/report.md; documents are bare values, so that each figure
lies on both sides of its limit.
"""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import pytest

from rpl_analysis.text import duration_ns
from rpl_report import verdict
from rpl_report.verdict import Entry


class _Some(SimpleNamespace):
    """What is not given is unknown."""

    def __getattr__(self, name: str) -> Any:
        return None


def _called(name: str, kind: str) -> str:
    return f"<{name}>" if kind == "kernel" else f"({name})"


def _times(speedup: float) -> str:
    """Four figures."""
    if speedup < 10:
        return f"{speedup:.3f}x"
    return f"{speedup:,.1f}x" if speedup < 1000 else f"{speedup:,.0f}x"


def _forecast(name: str, kind: str, makespan: int, half: int, free: int, more: int | None = None) -> Any:
    """Gains in ns at twice the speed and at no cost; ``more``: so much more at most."""

    def answer(speedup: float | None, gain: int) -> Any:
        most = None if more is None else min(makespan, gain + more)
        left = makespan - gain
        return _Some(
            speedup=speedup,
            application_ns=left,
            application_gain_ns=gain,
            application_gain_at_most_ns=most,
            application_speedup=makespan / left if left else None,
        )

    return _Some(
        name=name, kind=kind, speedups=(answer(1.5, half // 2), answer(2.0, half), answer(None, free))
    )


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def test_how_fast_the_run_can_be_at_most() -> None:
    for makespan, free, more in itertools.product(
        (1000, 10**6), (0, 1, 4, 5, 6, 500, 1000), (None, 0, 3, 700)
    ):
        forecast = _forecast("k", "kernel", makespan, free // 2, free, more)
        most = min(makespan, free + (more or 0))
        bound = makespan / (makespan - most) if most < makespan else None
        found = verdict.most_speedup(forecast.speedups[-1])
        assert found == (None if bound is None else pytest.approx(bound))
        assert verdict.is_notable(forecast) is (bound is None or bound >= 1.005), (makespan, free, more)
    assert [verdict._times(value) for value in (1.0, 9.9994, 10, 99.96, 1000, 12345.6)] == [
        *("1.000x", "9.999x", "10.0x", "100.0x", "1,000x", "12,346x")
    ]


def test_the_entry_of_what_gains_most() -> None:
    rng = random.Random(1)
    told = set()
    for _ in range(300):
        makespan = 1_000_000
        free = rng.choice((0, 4000, 6000, 200_000, 1_000_000))
        more = rng.choice((None, None, 0, 100_000))
        kind = rng.choice(("kernel", "copy"))
        first = _forecast("work", kind, makespan, free // 2, free, more)
        other = _forecast("other", "copy" if kind == "kernel" else "kernel", makespan, 1, 900_000)
        label = rng.choice((None, "unclassified", "latency_bound"))
        share, on_path = rng.choice((None, 0.0, 0.25, 0.6)), rng.choice((None, 0.25, 0.4))
        order, sync = rng.random() < 0.7, rng.choice(("none", "api_calls"))
        dag = _Some(
            forecasts=(other, first, _forecast("work", kind, makespan, 0, 9)),
            makespan_ns=makespan,
            symbols=() if on_path is None else (_Some(name="work", criticality_weight=on_path),),
            order_known=order,
            sync_info=sync,
        )
        longest = rng.choice((0, 90_000, 100_000, 150_000, 300_000))
        median = rng.choice((0, 50_000, 100_000))
        scratch = rng.choice((None, 0, 4096))
        kernel = _Some(
            name="work",
            time_share=share,
            max_ns=longest,
            median_ns=median,
            resources=None if scratch is None else _Some(scratch_bytes=scratch),
        )
        conditions = (
            _Some(quantity="q", value=0.5),
            _Some(quantity="r", value=None),
            _Some(quantity="s", value=7.0),
        )
        rules = (_Some(label="z", conditions=()), _Some(label="latency_bound", conditions=conditions))
        labelled = _Some(kernel="work", bottleneck=label, confidence="high", evidence=rules)
        analysis = _Some(kernels=() if label is None else (labelled,))
        found = verdict._best_gain(dag, _Some(kernels=(kernel,)), analysis, _called, kind)

        most = min(makespan, free + (more or 0))
        if most < makespan and makespan / (makespan - most) < 1.005:
            assert found is None
            continue
        assert found is not None
        size, entry = found
        half = free // 2
        half_most = min(makespan, half + (more or 0))
        assert size == half_most
        head = "<work>" if kind == "kernel" else "Copies ((work))"
        of_time = f": {share:.1%} of kernel time" if kind == "kernel" and share else ""
        if on_path is None:
            shares = of_time
        elif of_time and f"{share:.1%}" == f"{on_path:.1%}":
            shares = f"{of_time} and of the critical path"
        else:
            shares = f"{of_time}{',' if of_time else ':'} {on_path:.1%} of the critical path"
        unknown = kind == "kernel" and label in (None, "unclassified")
        assert entry.head == f"{head}{shares}{', its limit unknown' if unknown else ''}."
        bounded = order and sync == "none"
        if free == makespan:
            limit = "nothing of it would be left"
        else:
            upper = "without limit" if most == makespan else _times(makespan / (makespan - most))
            both = _range(_times(makespan / (makespan - free)), upper)
            limit = f"the run would be {'at most ' if bounded else ''}{both} as fast"
        less = _range(duration_ns(half), duration_ns(half_most))
        part = _range(f"{half / makespan:.1%}", f"{half_most / makespan:.1%}")
        assert entry.brings == (
            f"In half its time the run takes {'up to ' if bounded else ''}{less} less ({part}); "
            f"at no cost {limit}."
        )
        why = []
        if kind == "kernel" and longest and median and longest >= 2 * median and longest - median >= 50_000:
            why.append(f"One launch takes {duration_ns(longest)}, {longest / median:.1f} times the median.")
        if kind == "kernel" and scratch:
            why.append("4,096 bytes of scratch memory per work-item.")
        if label == "latency_bound":
            why.append("Why: latency bound, high confidence: q 50.0%, s 7.")
        plain = entry.why.replace("s 7.000", "s 7")
        assert plain == " ".join(why)
        assert entry.subject == ("work" if kind == "kernel" else "copies")
        told.add((kind, unknown, limit.split()[0], bool(why)))
    assert len(told) > 8
    assert verdict._best_gain(_Some(forecasts=()), _Some(), _Some(kernels=()), _called, "copy") is None


def test_the_entry_of_idle_time() -> None:
    rng = random.Random(2)
    told = set()
    for _ in range(300):
        makespan = 1_000_000
        parts = [rng.choice((0, 0, 5_000, 9_999, 10_000, 60_000)) for _ in range(5)]
        idle = sum(parts)
        causes = _Some(
            host_ns=parts[0],
            sync_ns=parts[1],
            launch_ns=parts[2],
            unattributed_ns=parts[3],
            copying_ns=parts[4],
        )
        domain = _Some(
            node="n1",
            makespan_ns=makespan,
            busy_ns=makespan - idle,
            idle_ns=idle,
            critical_path_ns=9,
            idle=causes,
        )
        shorter = _Some(node="n0", makespan_ns=9, busy_ns=1, idle_ns=8, critical_path_ns=8, idle=None)
        machines = rng.choice(((domain,), (shorter, domain)))
        gain = rng.choice((None, 1000, 4_000, 300_000))
        copies = rng.random() < 0.5
        devices, left_out = rng.choice((1, 2)), rng.choice((0, 3))
        forecasts = () if gain is None else (_forecast("k", "kernel", makespan, gain // 2, gain),)
        dag = _Some(
            clock_domains=machines,
            devices=range(devices),
            devices_left_out=left_out,
            symbols=(_Some(kind="copy" if copies else "kernel"),),
            forecasts=forecasts,
            makespan_ns=makespan,
        )
        found = verdict._idle(dag)
        if idle / makespan < 0.05:
            assert found is None
            continue
        assert found is not None
        size, entry = found
        assert (size, entry.subject, entry.section) == (idle // 2, "GPU idle", "path")
        several = devices + left_out > 1
        if not copies:
            who = "No kernel runs on any GPU" if several else "No kernel runs"
        elif parts[3] > idle / 2:
            who = "No recorded work runs on any GPU" if several else "No recorded work runs"
        else:
            who = "No GPU works" if several else "The GPU is idle"
        where = " on n1" if len(machines) > 1 else ""
        assert entry.head == (
            f"{who}{where} for {idle / makespan:.1%} of the run: "
            f"{duration_ns(idle)} of {duration_ns(makespan)}."
        )
        little = gain is not None and gain / makespan < 0.005
        assert entry.brings == (
            f"Without these gaps it would be {_times(makespan / (makespan - idle))} as fast at most"
            + ("; no kernel alone brings 0.5%." if little else ".")
        )
        words = (
            ("probably copies, not recorded", parts[4]),
            ("nothing submitted by the host", parts[0]),
            ("synchronisation", parts[1]),
            ("launch latency", parts[2]),
            ("cause not recorded", parts[3]),
        )
        named = [
            f"{name} {ns / makespan:.1%}" for name, ns in sorted(words, key=lambda w: -w[1]) if ns >= 10_000
        ]
        assert entry.why == (f"Why: {'; '.join(named)}." if named else "")
        told.add((who, little, bool(named)))
    assert len(told) > 10


def test_no_kernel_gains_more_than_the_bound_of_all() -> None:
    rng = random.Random(3)
    for _ in range(100):
        listed = [
            _forecast("k", "kernel", 1000, rng.randint(0, 300), rng.randint(0, 900), rng.choice((None, 50)))
            for _ in range(rng.randint(0, 4))
        ]
        found = verdict._most_of_any_kernel(_Some(forecasts=listed))
        bounds = [
            a.application_gain_ns if a.application_gain_at_most_ns is None else a.application_gain_at_most_ns
            for a in (one.speedups[-1] for one in listed)
        ]
        if listed:  # of those that are not listed: twice what the last one gains by half
            last = listed[-1].speedups[1]
            most = last.application_gain_at_most_ns
            bounds.append(2 * (last.application_gain_ns if most is None else most))
        assert found == (max(bounds) if bounds else None)


def test_what_is_hidden_and_what_dominates_next() -> None:
    rng = random.Random(4)
    seen = set()
    for _ in range(300):
        kernels, forecasts = [], []
        for number in range(5):
            name = f"k{number}"
            kernels.append(
                _Some(
                    name=name,
                    time_share=rng.choice((None, 0.049, 0.05, 0.3)),
                    criticality_weight=rng.choice((None, 0.0, 0.0099, 0.01)),
                )
            )
            free = rng.choice((0, 4_000, 100_000))
            if rng.random() < 0.7:
                forecasts.append(_forecast(name, "kernel", 1_000_000, 0, free))
        order = rng.random() < 0.5
        dag = _Some(forecasts=forecasts, order_known=order)
        found = verdict._hidden(_Some(kernels=kernels), dag, _called)
        gains = {one.name: one.speedups[-1].application_gain_ns for one in forecasts}
        hidden = [
            one
            for one in kernels
            if (gains.get(one.name, 0) < 5_000 and (order or one.name in gains))
            and (one.time_share or 0) >= 0.05
            and one.criticality_weight is not None
            and one.criticality_weight < 0.01
        ][:3]
        seen.add(len(hidden))
        if not hidden:
            assert found is None
            continue
        assert found is not None
        listed = ", ".join(f"<{one.name}> ({one.time_share:.1%} of the time)" for one in hidden)
        assert found.brings.startswith(f"Off the critical path: {listed}.")

        shift = rng.choice((None, 1.25, 12.0))
        first = rng.choice((None, "k0"))
        after = rng.choice((None, "k0", "c"))
        steps = tuple(_Some(dominant_symbol=name) for name in (None, "k0", after))
        big = _forecast("k0", "kernel", 1_000_000, 0, rng.choice((0, 400_000)))
        dag = _Some(
            dominance_shift_at=shift,
            dominant_work=None if first is None else _Some(name="k0", kind="kernel"),
            dominance=steps,
            symbols=(_Some(name="c", kind="copy"),),
            forecasts=(big,),
        )
        notable = big.speedups[-1].application_gain_ns > 0
        assert verdict.dominance_matters(dag) is (first is not None and notable)
        entry = verdict._shift(dag, _called)
        if shift is None or first is None or after != "c" or not notable:
            assert entry is None
            continue
        assert entry is not None
        assert entry.head == f"What dominates the path changes at {_times(shift)}."
        assert entry.brings == "Once <k0> is faster than that, (c) dominates."
    assert seen == {0, 1, 2, 3}


def test_what_is_said_of_ranks() -> None:
    rng = random.Random(5)
    told = set()
    for _ in range(300):
        count, left_out = rng.choice((1, 2, 3)), rng.choice((0, 0, 4))
        waits = rng.random() < 0.7
        ranks = [
            _Some(
                rank=number,
                kernel_ns=1000,
                wait_ns=rng.choice((0, 300, 700)) if waits else None,
                last_arrivals=rng.choice((None, 0, 2, 3)),
            )
            for number in range(count)
        ]
        exactness = rng.choice(("lower_bound", "estimate"))
        reason = rng.choice((None, "the clocks differ"))
        collectives = [
            _Some(
                name=f"c{number}",
                exactness=exactness,
                wait_reason=reason,
                shares=tuple(_Some(total_ns=rng.choice((10, 200))) for _ in range(count)),
            )
            for number in range(rng.randint(0, 2))
        ]
        kernels = [
            _Some(
                name=f"k{number}",
                max_ns=rng.choice((100, 300)),
                mean_ns=rng.choice((90, 100)),
                imbalance=rng.choice((0.049, 0.05, 0.4)),
                slowest_rank=number,
            )
            for number in range(rng.randint(0, 2))
        ]
        makespan = rng.choice((None, 2000))
        part = _Some(
            ranks=ranks,
            ranks_left_out=left_out,
            collectives=collectives,
            kernels=kernels,
            makespan_ns=makespan,
        )
        found = list(verdict._ranks(_Some(ranks=part), _called))
        if count < 2:
            assert found == []
            continue
        uneven = ""
        if kernels:
            worst = kernels[0]
            for one in kernels[1:]:
                worst = one if one.max_ns - one.mean_ns > worst.max_ns - worst.mean_ns else worst
            if worst.imbalance >= 0.05:
                uneven = (
                    f"Most uneven: <{worst.name}> takes rank {worst.slowest_rank} "
                    f"{worst.imbalance:.1%} longer than the mean."
                )
        number = f"{count + left_out} ranks"
        if not collectives:
            heads = [f"{number}, no collective was recorded."] if uneven else []
            assert [(entry.head, entry.brings) for entry in found] == [(head, uneven) for head in heads]
            told.add(("none", bool(uneven)))
            continue
        (entry,) = found
        spent = [sum(share.total_ns for share in one.shares) for one in collectives]
        best = spent.index(max(spent))
        total = 1000 * count
        assert entry.head == (
            f"{number}: collectives take {sum(spent) / total:.1%} of their kernel time, "
            f"<c{best}> {spent[best] / total:.1%}."
        )
        assert entry.why == uneven
        if not waits:
            unknown = f"How long ranks wait is unknown: {reason}." if reason else ""
            assert entry.brings == unknown
            told.add(("unknown", bool(reason)))
            continue
        longest = max(range(count), key=lambda i: (ranks[i].wait_ns, -i))
        wait = ranks[longest].wait_ns
        text = f"Rank {longest} waits longest{' of those listed' if left_out else ''}, "
        text += f"{'~' if exactness == 'estimate' else '>='}{duration_ns(wait)}"
        text += f" ({wait / 2000:.1%} of the run)" if makespan else ""
        arrivals = [one.last_arrivals for one in ranks if one.last_arrivals is not None]
        top = sorted(arrivals, reverse=True)
        if top and top[0] > (top[1] if len(top) > 1 else 0):
            who = next(one.rank for one in ranks if one.last_arrivals == top[0])
            text += f"; rank {who} comes last most often ({top[0]} of {sum(top)} times)"
        assert entry.brings == f"{text}."
        told.add(("waits", "comes last" in text))
    assert len(told) == 6


def test_steps_are_told_once_and_named_where_they_hold_again() -> None:
    def step(advice: str, **more: Any) -> Any:
        return _Some(advice=advice, text=f"do {advice}", confirm=(), command=None, **more)

    confirm = (_Some(quantity="q", counters=("A", "B")), _Some(quantity="r", value=0.5, unit="fraction"))
    first = _Some(advice="a", text="do a", confirm=confirm, command="rpl x -- {command}")
    analysis = _Some(
        next_steps=(
            _Some(subject="GPU idle: host", steps=()),
            _Some(subject="GPU idle: launch", steps=(first,)),
            _Some(subject="k", steps=()),
        ),
        kernels=(
            _Some(kernel="k", next_steps=(step("b"), step("c"))),
            _Some(kernel="m", next_steps=(step("a"),)),
        ),
    )
    subjects = ("GPU idle", "k", "m", "", "unknown", "k")
    entries = [Entry(f"h{i}", subject=subject) for i, subject in enumerate(subjects)]
    entries.append(Entry("own", subject="k", command="its own"))
    found = list(verdict._advised(entries, analysis))
    assert [(one.step, one.same_as) for one in found] == [
        ("do a", None),
        ("do b", None),
        ("", 1),
        ("", None),
        ("", None),
        ("", 2),
        ("", None),
    ]
    assert found[0].command == "rpl x -- COMMAND"
    assert found[0].confirmed == "q, not recorded (A, B); r 50.0%"
    assert [one.next_step() for one in found[:4]] == ["Next: do a", "Next: do b", "Next: as for 1.", ""]
    assert found[-1] == entries[-1]


def test_collectives_of_one_rank_ask_for_the_others() -> None:
    for listed, left_out, name in itertools.product((0, 1, 2), (0, 1), ("c", "k")):
        ranks = _Some(ranks=range(listed), ranks_left_out=left_out, collectives=(_Some(name="c"),))
        (entry,) = verdict._lone_collectives([Entry("h", subject=name, step="s")], _Some(ranks=ranks))
        alone = listed + left_out < 2 and name == "c"
        assert entry.step.startswith("Record the other ranks") is alone
        assert entry.command == ("rpl analyze --ranks RECORDING RECORDING ..." if alone else "")
    (entry,) = verdict._lone_collectives([Entry("h", subject="c")], _Some())
    assert entry == Entry("h", subject="c")


def test_what_figures_rest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "device_names", lambda profile: profile.device)
    for device, (runs, cv), source, exact, sync, status in itertools.product(
        ("", "MI300X"),
        ((0, None), (1, None), (5, 0.0123), (5, None)),
        (None, "modelled by x", "kernel_trace"),
        ("exact", "estimate"),
        ("none", "api_names", "api_calls"),
        ("available", "not_collected", "unusable"),
    ):
        for kernels, available, limits in ((("k",), True, ("r", "cut")), ((), False, (None, None))):
            profile = _Some(
                device=device,
                stability=_Some(runs=runs, cv=cv),
                runtime_source=source,
                runtime_exactness=exact,
                kernels=kernels,
                range=limits[0],
                incomplete=limits[1],
            )
            dag = _Some(status="available" if available else "unavailable", sync_info=sync)
            documents: Any = _Some(profile=profile, dag=dag, roofline=_Some(status=status))
            parts = [device or "device unknown"]
            spread = f", CV {cv:.2%}" if cv is not None else ""
            parts += {0: [], 1: ["one run"]}.get(runs, [f"{runs} runs{spread}"])
            if source == "modelled by x":
                parts.append("times are modelled")
            elif exact == "estimate":
                parts.append("times are estimates from counter passes")
            words = {"none": "no API calls", "api_names": "API calls without arguments"}
            parts += [words[sync]] if available and sync in words else []
            counters = {"not_collected": "no counters", "unusable": "counters that can't be used"}
            parts += [counters[status]] if kernels and status in counters else []
            parts += ["only work of the ranges 'r'", "incomplete: cut"] if kernels else []
            assert verdict._basis(documents) == f"Basis: {'; '.join(parts)}."


def test_the_model_of_the_collector_is_named_first() -> None:
    of_model = _Some(code="collect.emulated", severity="info", fact="kernels ran in a model: counts only")
    others = (
        _Some(code="collect.counters_not_emulated", severity="warning", fact="it has no X"),
        _Some(code="dispatch.flattened_geometry", severity="info", fact="sizes are flat"),
        _Some(code="collect.log_incomplete", severity="info", fact="the log of the pass is incomplete"),
    )
    long = _Some(code="collect.emulated", severity="info", fact="\x1b[2J" + "so much\n" * 500)
    for origin, found, expected in (
        ("modelled", (*others, of_model, of_model), "Modelled: kernels ran in a model: counts only."),
        ("modelled", others, "Modelled: computed by an emulator or a formula, not measured on hardware."),
        ("synthetic", (of_model,), "Synthetic: written by a test or a demonstration, no measurement."),
        ("measured", (of_model,), ""),
    ):
        profile: Any = _Some(provenance=_Some(origin=origin), diagnostics=found)
        assert verdict._caution(profile) == expected
    told = verdict._caution(_Some(provenance=_Some(origin="modelled"), diagnostics=(long,)))
    assert len(told) < 400
    assert told.isprintable()
    unknown: Any = _Some(diagnostics=())
    assert verdict._caution(unknown) == ""


def test_entries_of_other_subjects_and_of_recordings_without_a_path() -> None:
    for order, sync, at_most, kind in itertools.product(
        (True, False), ("none", "api_calls"), (None, 400), ("kernel", "idle")
    ):
        dag = _Some(order_known=order, sync_info=sync, makespan_ns=100_000, lanes=1)
        share_most = None if at_most is None else 0.4
        priority = _Some(
            kind=kind,
            subject="k x",
            gain_ns=250,
            gain_at_most_ns=at_most,
            share=0.25,
            share_at_most=share_most,
        )
        profile = _Some(kernels=(_Some(name="k x", time_share=0.5),))
        entry = verdict._further(priority, dag, profile, _Some(kernels=()), _called)
        assert entry.head == ("<k x>" if kind == "kernel" else "K x") + ": 50.0% of kernel time."
        less = "250 ns" if at_most is None else "250 ns to 400 ns"
        part = "25.0%" if at_most is None else "25.0% to 40.0%"
        up_to = "up to " if order and sync == "none" else ""
        assert entry.brings == f"In half its time the run takes {up_to}{less} less ({part})."
    for gain, expected in ((249, False), (250, True)):
        dag = _Some(makespan_ns=100_000)
        assert verdict._notable(_Some(share=0.1, gain_ns=gain), dag) is expected
        assert verdict._notable(_Some(share=0.1, gain_ns=1, gain_at_most_ns=gain), dag) is expected
        assert not verdict._notable(_Some(gain_ns=gain), dag)
    for lanes, words in ((1, "the order of streams"), (3, "which of 3 streams waited for which")):
        steps = (_Some(command=None), _Some(command="rpl profile -- {command}"))
        priority = _Some(gain_at_most_ns=1500, subject="s", steps=steps)
        entry = verdict._ranges(priority, _Some(lanes=lanes))
        assert entry.head == f"Not recorded: {words}; gains are known to within 1.5 us only."
        assert entry.command == "rpl profile -- COMMAND"
    kernels = [
        _Some(name=f"k{i}", time_share=s, runtime_ms=s) for i, s in enumerate((0.1, 0.0, 0.4, 0.2, 0.3))
    ]
    dag = _Some(reason="no trace: because", status="unavailable")
    labels = (_Some(kernel="k2", bottleneck="latency_bound", confidence="low", evidence=()),)
    found = list(verdict._of_most_time(_Some(kernels=kernels), dag, _Some(kernels=labels), _called))
    assert [(one.head, one.subject) for one in found] == [
        (f"<{name}>: {share} of kernel time.", name)
        for name, share in (("k2", "40.0%"), ("k4", "30.0%"), ("k3", "20.0%"))
    ]
    assert {one.brings for one in found} == {"What a faster one brings the run is unknown: no trace."}
    assert [one.why for one in found[:2]] == [
        "Why: latency bound, low confidence.",
        "What limits it is unknown.",
    ]
    (none,) = verdict._without_kernels(_Some(kernels=(), runtime_ms=2.0), dag)
    assert (none.head, none.brings) == ("No critical path: no trace: because.", "The process took 2 ms.")
