"""What is kept of drawn launches, counted anew: recordings, counters beside AMD's, heat, instruction mixes.

Recordings are read as SQLite by the tables of docs/reference/formats.md, 2.2. Patterns of classes are those
of ``data/counters.json``, whose meaning ("valu.*": all that begin so) is asked here by the letter.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections import Counter
from contextlib import closing
from importlib.resources import files
from types import SimpleNamespace

import pytest

from rpl_core.errors import BadDataError
from rpl_core.interfaces.section import Paragraph, SectionRequest, Table
from rpl_emu.calibration import compare, compare_programs, read_recorded
from rpl_emu.heat import SUFFIX, HeatSection
from rpl_emu.heat_count import write_heat
from rpl_emu.isa_mix import instruction_mix
from rpl_emu.rocpd_file import EmulatedLaunch, read_work, write_rocpd

CLASSES = ("valu.add.f32", "valu.fma.f64", "mfma.f16", "salu", "smem", "lds.read", "flat.read", "flat.write",
           "global.read", "global.write", "scratch.read", "buffer.write", "branch", "internal")  # fmt: skip
OPCODES = ("v_add_f32", "ds_read_b32", "global_load_dword", "flat_store_dword", "buffer_load_dword",
           "scratch_load_dword", "s_add_u32", "s_cbranch_scc0", "s_load_dword")  # fmt: skip
COUNTERS = json.loads(files("rpl_emu").joinpath("data/counters.json").read_text())["counters"]


def draw_kernel(rng, number):
    """What is the same for all launches of one kernel."""
    return {
        "kernel_object": 0x1000 * rng.randint(1, 99) + number,
        "symbol": f"_Z1k{number}",
        "kernel": f"kernel{number}(float*)",
        "kernarg_bytes": 8 * rng.randint(1, 9),
        "static_lds_bytes": 128 * rng.randint(0, 9),
        "sgpr": rng.randint(8, 102),
        "arch_vgpr": rng.randint(1, 255),
        "accum_vgpr": rng.randint(0, 255),
    }


def draw_launch(rng, kernel, places):
    classes = {c: {"executed": rng.randint(1, 99), "lanes": rng.randint(1, 9999)} for c in CLASSES}
    return {
        **kernel,
        "gpu": rng.randint(1, 2),
        "queue": rng.randint(1, 3),
        "completes": rng.choice((0, rng.randint(100, 106))),
        "done_before": rng.randint(0, 30),
        "modelled": {"bound_ns": rng.choice((0.2, 7.4, 300.0))},
        "workgroup": [rng.randint(1, 9) for _ in "xyz"],
        "grid": [rng.randint(10, 99) for _ in "xyz"],
        "scratch_bytes": rng.randint(0, 99),
        "lds_bytes": rng.randint(0, 9999),
        "waves": rng.randint(1, 9),
        "classes": dict(rng.sample(sorted(classes.items()), rng.randint(3, len(classes)))),
        "places": [
            {"at": hex(4 * at), "opcode": OPCODES[at % len(OPCODES)], "executed": rng.randint(1, 40),
             "lanes": rng.randint(0, 2560)}
            for at in rng.sample(range(places), rng.randint(1, places))
        ],
    }  # fmt: skip


@pytest.fixture(params=range(6))
def drawn(request, tmp_path):
    """Launches of one process with barriers between them, and the log that holds them and other lines."""
    rng = random.Random(request.param)
    kernels = [draw_kernel(rng, n) for n in range(rng.randint(1, 4))]
    lines, launches = ["softkfd: started"], []
    for _ in range(25):
        if rng.random() < 0.6 or not launches:
            facts = draw_launch(rng, rng.choice(kernels), 30) | {"pid": 77}
            launches.append(facts)
            lines.append("emulated " + json.dumps(facts))
        else:
            barrier = {"pid": 77, "gpu": rng.randint(1, 2), "queue": rng.randint(1, 3)}
            waits = rng.sample(range(100, 107), 2)
            lines.append("barrier " + json.dumps(barrier | {"completes": 0, "waits_for": waits}))
    (tmp_path / "run" / "pass").mkdir(parents=True)
    log = tmp_path / "run" / "pass" / "software_kfd.log"
    log.write_text("\n".join(lines) + "\n")
    return SimpleNamespace(launches=launches, work=read_work(log)[77], run=tmp_path / "run", rng=rng)


def counter_of(facts, name):
    """A counter's definition in the map, asked class by class."""
    rule = COUNTERS[name]
    if rule["of"] == "waves":
        return facts["waves"]
    asked = [re.escape(pattern).replace(r"\*", ".*") for pattern in rule["classes"]]
    counts = (c for n, c in facts["classes"].items() if any(re.fullmatch(a, n) for a in asked))
    return sum(count.get(rule["of"], 0) for count in counts)


def test_a_recording_holds_every_launch_with_its_counters(drawn, tmp_path):
    names = sorted(drawn.rng.sample(sorted(COUNTERS), 5))
    path = tmp_path / "77_results.db"
    write_rocpd(path, 77, "./app --fast", drawn.work, names)
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row

        def all_of(statement):
            return [dict(row) for row in connection.execute(statement)]

        dispatches = all_of(
            "SELECT d.*, k.kernel_name, k.display_name, k.kernarg_segment_size, k.sgpr_count,"
            " k.arch_vgpr_count, k.accum_vgpr_count, k.group_segment_size AS static, k.kernel_object,"
            " a.id AS gpu, a.type, e.stack_id AS place, e.correlation_id, q.name AS queue, s.name AS stream"
            " FROM rocpd_kernel_dispatch d JOIN rocpd_info_kernel_symbol k ON k.id = d.kernel_id"
            " JOIN rocpd_info_agent a ON a.id = d.agent_id JOIN rocpd_event e ON e.id = d.event_id"
            " JOIN rocpd_info_queue q ON q.id = d.queue_id JOIN rocpd_info_stream s ON s.id = d.stream_id"
            " ORDER BY d.dispatch_id"
        )
        counted = all_of(
            "SELECT d.dispatch_id, p.name, v.value, p.agent_id, d.agent_id AS gpu FROM rocpd_pmc_event v"
            " JOIN rocpd_info_pmc p ON p.id = v.pmc_id"
            " JOIN rocpd_kernel_dispatch d ON d.event_id = v.event_id"
        )
        hip = all_of(
            "SELECT h.*, s.string, e.stack_id AS place, q.name AS queue, o.name AS source"
            " FROM rocpd_hip_event h JOIN rocpd_string s ON s.id = h.name_id"
            " JOIN rocpd_event e ON e.id = h.event_id JOIN rocpd_info_queue q ON q.id = h.queue_id"
            " JOIN rocpd_info_queue o ON o.id = h.source_queue_id"
        )
        (process,) = all_of("SELECT * FROM rocpd_info_process")
        marks = dict(connection.execute("SELECT tag, value FROM rocpd_metadata").fetchall())
        kernels = connection.execute("SELECT count(*) FROM rocpd_info_kernel_symbol").fetchone()[0]
    assert len(dispatches) == len(drawn.launches)
    assert kernels == len({facts["kernel_object"] for facts in drawn.launches})
    queues = {}
    for row, facts, one in zip(dispatches, drawn.launches, drawn.work.launches, strict=True):
        axes = zip("xyz", facts["workgroup"], facts["grid"], strict=True)
        assert {f"workgroup_size_{a}": w for a, w, _ in axes}.items() <= row.items()
        assert [row[f"grid_size_{a}"] for a in "xyz"] == facts["grid"]
        assert (row["start"], row["end"]) == (one.begin_ns, one.end_ns)
        assert (row["pid"], row["type"], row["gpu"]) == (77, "GPU", facts["gpu"])
        assert (row["private_segment_size"], row["group_segment_size"]) == (
            facts["scratch_bytes"],
            facts["lds_bytes"],
        )
        assert (row["kernel_name"], row["display_name"]) == (facts["symbol"] + ".kd", facts["kernel"])
        keys = ("kernarg_bytes", "sgpr", "arch_vgpr", "accum_vgpr", "static_lds_bytes", "kernel_object")
        columns = ("kernarg_segment_size", "sgpr_count", "arch_vgpr_count", "accum_vgpr_count", "static",
                   "kernel_object")  # fmt: skip
        assert [row[column] for column in columns] == [facts[key] for key in keys]
        assert row["queue"] == row["stream"]
        queues[facts["gpu"], facts["queue"]] = row["queue"]
    assert len(set(queues.values())) == len(queues) == len({r["queue"] for r in dispatches})
    assert len(counted) == len(names) * len(dispatches)
    for row in counted:
        facts = drawn.launches[row["dispatch_id"] - 1]
        assert row["value"] == counter_of(facts, row["name"]), row["name"]
        assert row["agent_id"] == row["gpu"]

    # A record stands behind the launches that had ended before it, and a wait before what it held back.
    places = [row["place"] for row in dispatches]
    assert places == sorted(set(places))
    expected = [one for one in drawn.work.events if {one.source_queue, one.queue} <= queues.keys()]
    sides = {kind: [r for r in hip if r["string"] == kind] for kind in ("HIP_EVENT_RECORD", "HIP_EVENT_WAIT")}
    assert sum(map(len, sides.values())) == len(hip) == 2 * len(expected)
    for one, record, wait in zip(expected, *sides.values(), strict=True):
        assert record["hip_event_handle"] == wait["hip_event_handle"]
        assert (record["start"], wait["start"]) == (one.set_ns, one.waited_ns)
        assert (record["queue"], wait["queue"]) == (queues[one.source_queue], queues[one.queue])
        assert record["source"] == wait["source"] == queues[one.source_queue]
        assert (record["agent_id"], wait["agent_id"]) == (one.source_queue[0], one.queue[0])
        assert sum(place < record["place"] for place in places) == one.set_after
        assert sum(place < wait["place"] for place in places) == one.waited_at
        assert record["place"] < wait["place"]
    assert len({row["hip_event_handle"] for row in hip}) == len(expected)
    assert process["command"].endswith("./app --fast")
    assert "modelled" in process["command"]
    assert "modelled" in marks.values()
    assert process["end"] == max(one.end_ns for one in drawn.work.launches)


def csv_of(path, rows):
    lines = ["Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value"]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, *(",".join(map(str, row)) for row in rows), ""]))


def test_counters_of_a_program_are_compared_kernel_by_kernel(drawn, tmp_path):
    """Recorded are the same counts in several rows, but for some that are one too many."""
    rng, truth = drawn.rng, Counter()
    for facts in drawn.launches:
        for name in COUNTERS:
            truth[facts["kernel"], name] += counter_of(facts, name)
    wrong = set(rng.sample(sorted(truth), 4))
    left_out = set(rng.sample(sorted(truth), 3))
    rows = [(9, "other kernel", "SQ_WAVES", 5)]
    for (kernel, name), value in truth.items():
        if (kernel, name) not in left_out:
            part = rng.randint(0, value)
            more = (kernel, name) in wrong
            rows += [(1, kernel, name, part), (2, kernel + ".kd", name, value - part + more)]
    rng.shuffle(rows)
    csv_of(tmp_path / "amd" / "a_counter_collection.csv", rows)
    # A repeated run, which changes nothing, with one kernel that the first one did not see.
    csv_of(tmp_path / "amd" / "b_counter_collection.csv", [(1, k, n, 10**6) for k, n in truth])
    found = {(one.kernel, one.counter): one for one in compare_programs(drawn.run, tmp_path / "amd")}
    assert found.keys() == truth.keys()
    for key, one in found.items():
        recorded = 10**6 if key in left_out else truth[key] + (key in wrong)
        assert (one.emulated, one.recorded) == (truth[key], recorded)
        assert one.agrees == (truth[key] == recorded)
    csv_of(tmp_path / "none" / "a_counter_collection.csv", [(1, "other", "SQ_WAVES", 1)])
    with pytest.raises(BadDataError, match="no counter of a kernel in common"):
        compare_programs(drawn.run, tmp_path / "none")
    with pytest.raises(BadDataError, match="no run of the emulated device"):
        compare_programs(tmp_path / "none", tmp_path / "amd")


def test_a_launch_is_compared_with_the_first_dispatch_of_its_kernel(drawn, tmp_path):
    """Instances of a counter are rows of their own; later dispatches and other kernels do not count."""
    rng, facts = drawn.rng, drawn.launches[0]
    names = rng.sample(sorted(COUNTERS), 4)
    rows = [(2, "void other()", name, 7) for name in names]
    for name in names[:-1]:
        first = rng.randint(3, 5)
        parts = [rng.randint(0, 9) for _ in range(3)]
        rows += [
            (first, "void mine()", name, counter_of(facts, name)),
            (first + 1, "void mine()", name, 10**7),
        ]
        rows += [(first, "void mine()", name, part) for part in parts]
        rows += [(first, "void mine()", name, -sum(parts))]
    rng.shuffle(rows)
    csv_of(tmp_path / "one" / "x.csv", rows)
    found = compare(facts, read_recorded(tmp_path / "one" / "x.csv", "mine"))
    assert {one.counter: one.emulated for one in found} == {n: counter_of(facts, n) for n in names[:-1]}
    assert all(one.agrees and one.recorded == one.emulated for one in found)


def is_vector(opcode):
    return opcode.split("_")[0] in ("v", "ds", "global", "flat", "buffer", "scratch")


@pytest.mark.parametrize("seed", range(4))
def test_heat_adds_up_what_ran_where_and_shows_it(tmp_path, seed):
    rng = random.Random(seed)
    kernels = [draw_kernel(rng, n) for n in range(5)]
    drawn = [draw_launch(rng, rng.choice(kernels), (12, 1200)[seed == 3]) for _ in range(14)]
    path = tmp_path / f"1{SUFFIX}"
    write_heat(path, [EmulatedLaunch(facts, 0, 1) for facts in drawn], ())
    heats = json.loads(path.read_text())["kernels"]
    executed = Counter()
    for facts in drawn:
        executed[facts["kernel"]] += sum(place["executed"] for place in facts["places"])
    assert [heat["kernel"] for heat in heats] == sorted(executed, key=lambda k: (-executed[k], k))
    for heat in heats:
        mine = [facts for facts in drawn if facts["kernel"] == heat["kernel"]]
        ran, lanes, opcodes = Counter(), Counter(), {}
        for place in (place for facts in mine for place in facts["places"]):
            at = int(place["at"], 16)
            ran[at] += place["executed"]
            lanes[at] += place["lanes"]
            opcodes[at] = place["opcode"]
        vector = [at for at in ran if is_vector(opcodes[at])]
        assert (heat["launches"], heat["waves"]) == (len(mine), sum(facts["waves"] for facts in mine))
        assert (heat["executed"], heat["vector"]) == (ran.total(), sum(ran[at] for at in vector))
        assert heat["lanes"] == sum(lanes[at] for at in vector)
        order = sorted(ran, key=lambda at: (-ran[at], at))
        assert [place["address"] for place in heat["places"]] == order[:1000]
        assert heat["places_left_out"] == len(order) - len(heat["places"])
        for place in heat["places"]:
            at = place["address"]
            assert (place["opcode"], place["executed"]) == (opcodes[at], ran[at])
            assert place["lanes"] == (lanes[at] if at in vector else None)
    shown_as_counted({"kernels": heats})


def shown_as_counted(content):
    """The three hottest kernels in a report, five places each; the 20 hottest of one that is explained."""
    profile = SimpleNamespace(sections={"instruction_heat": content})
    request = SectionRequest({"profile": profile})
    blocks = list(HeatSection().blocks(request))
    for heat in content["kernels"][:3]:
        told = blocks.pop(0)
        assert isinstance(told, Paragraph)
        mean = f"{heat['lanes'] / heat['vector']:.1f}" if heat["vector"] else "-"
        numbers = re.findall(r"[\d,.]*\d|-(?= of 64)", told.text.partition(":")[2])
        wanted = [f"{heat[key]:,}" for key in ("executed", "waves", "launches")]
        assert numbers == [*wanted, mean, "64"], told.text
        assert heat["lines_reason"] in blocks.pop(0).text
        check_rows(blocks.pop(0), heat, 5)
        explained = HeatSection().explain(request, heat["kernel"])
        check_rows(explained[-1], heat, 20)
    assert [type(block) for block in blocks] == ([Paragraph] if len(content["kernels"]) > 3 else [])
    assert HeatSection().explain(request, "another kernel") == ()


def check_rows(table, heat, most):
    assert isinstance(table, Table)
    assert len(table.rows) == min(most, len(heat["places"]))
    for row, place in zip(table.rows, heat["places"], strict=False):
        cells = dict(zip(table.columns, row, strict=True))
        assert float(cells["of all"].rstrip("%")) == pytest.approx(
            100 * place["executed"] / heat["executed"], abs=0.051
        )
        assert float(cells["a wave"].replace(",", "")) == pytest.approx(
            place["executed"] / heat["waves"], abs=0.051
        )
        if place["lanes"] is None:
            assert cells["lanes on"] == "-"
        else:
            assert float(cells["lanes on"]) == pytest.approx(place["lanes"] / place["executed"], abs=0.051)
        assert (int(cells["address"], 16), cells["instruction"]) == (place["address"], place["opcode"])


@pytest.mark.parametrize("seed", range(6))
def test_a_mix_counts_instructions_by_class_and_those_of_each_loop(tmp_path, monkeypatch, seed):
    """Loops are what backward branches span; of several to one place the longest counts."""
    rng = random.Random(seed)
    document = {}
    for number in range(3):
        count = rng.randint(1, 40)
        code = [
            {"at": 8 * at, "opcode": rng.choice((*OPCODES, "s_nop")), "class": rng.choice((*CLASSES, ""))}
            for at in range(count)
        ]
        for one in rng.sample(code, count // 3):
            one["target"] = 8 * rng.randrange(count)
        if rng.random() < 0.5:
            code[0]["refused"] = f"refused {number}"
        padding = [{"at": 8 * (count + n), "opcode": "s_nop", "class": "internal"} for n in range(number)]
        code.append({"at": 8 * count - 4, "opcode": "s_endpgm", "class": "internal"})
        listed = [*rng.sample(code[:-1], count), code[-1], *padding]
        document[f"f{number}"] = {"kernel": bool(rng.getrandbits(1)), "instructions": listed}
    (tmp_path / "rpl-emu").write_text(f"#!/bin/sh\ncat {tmp_path}/out\n")
    (tmp_path / "rpl-emu").chmod(0o755)
    (tmp_path / "out").write_text(json.dumps(document))
    monkeypatch.setenv("RPL_EMU_FOLDER", str(tmp_path))
    mixes = {mix.name: mix for mix in instruction_mix(tmp_path / "k.hsaco")}
    assert mixes.keys() == document.keys()
    for name, content in document.items():
        mix, listed = mixes[name], content["instructions"]
        last = max(n for n, one in enumerate(listed) if one["opcode"] != "s_nop")
        code = listed[: last + 1]
        assert (mix.kernel, mix.instructions) == (content["kernel"], len(code))
        assert mix.opcodes == Counter(one["opcode"] for one in code)
        assert mix.classes == Counter(one["class"] or "unknown" for one in code)
        assert mix.refused == tuple(one["refused"] for one in code if "refused" in one)
        back = {one["target"] for one in code if "target" in one and one["target"] <= one["at"]}
        assert [loop.head for loop in mix.loops] == sorted(back)
        for loop in mix.loops:
            ends = [one["at"] for one in code if one.get("target") == loop.head and one["at"] >= loop.head]
            assert loop.end == max(ends)
            inside = [one["class"] or "unknown" for one in code if loop.head <= one["at"] <= loop.end]
            assert loop.classes == Counter(inside)
