"""Run directories with passes of every role and state, whole, changed, lost or unreadable.

What each pass may be used for, what is said of it, and which of them cost the run are listed here from the
manifest's words (docs/data-formats.md, `run.json`) and the files that lie there.
"""

from __future__ import annotations

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rpl_core.errors import BadDataError, RplError
from rpl_core.ingest import load_recording

ROLES = ("timing", "timing", "reference", "counters", "thread_trace")
STATES = ("complete", "complete", "complete", "failed", "planned")
#: What became of a pass's file since: it cannot be read at all where nobody knows its ending.
FATES = ("kept", "kept", "kept", "changed", "lost", "unknown")


def _drawn(draw: random.Random, root: Path) -> dict[str, Any]:
    passes = []
    for number in range(draw.randint(1, 5)):
        role, state, fate = draw.choice(ROLES), draw.choice(STATES), draw.choice(FATES)
        name = f"pass{number}"
        counted = role == "counters" or (role == "timing" and draw.random() < 0.2)
        file = f"passes/{name}/a{'.pmc' if counted else ''}{'.odd' if fate == 'unknown' else '.x'}"
        size = draw.randint(1, 9)
        (root / file).parent.mkdir(parents=True)
        if fate != "lost":
            (root / file).write_bytes(b"." * size)
        digest = sha256(b"!" if fate == "changed" else b"." * size).hexdigest()
        passes.append(
            {
                "name": name, "role": role, "state": state, "directory": f"passes/{name}", "command": ["p"],
                "process_ms": draw.choice((None, float(number))),
                "artefacts": [{"path": file, "sha256": digest, "bytes": size}],
                "error": f"{name} broke" if state == "failed" else None,
                "fate": fate, "size": size, "counted": counted,
            }
        )  # fmt: skip
    manifest = {
        "schema_version": "1.0", "tool_version": "0", "created_utc": "now", "command": ["./app"],
        "state": draw.choice(("running", "recorded", "complete", "incomplete")),
        "reason": draw.choice((None, "stopped by hand")), "collector": "test",
        "options": {"roofline": draw.random() < 0.5}, "passes": passes,
        "diagnostics": [{"code": c, "severity": "info", "fact": f"of {c}", "count": 1}
                        for c in draw.choice(([], ["collect.no_counters"], ["collect.note"]))],
    }  # fmt: skip
    plain = [{k: v for k, v in one.items() if k not in ("fate", "size", "counted")} for one in passes]
    (root / "run.json").write_text(json.dumps(manifest | {"passes": plain}))
    return manifest


def _use(one: dict[str, Any]) -> str:
    """Counters stretch the times beside them; a trace of instructions has none."""
    if one["role"] == "thread_trace":
        return "thread_trace"
    return "counters" if one["counted"] else one["role"]


def _why_no_counters(manifest: dict[str, Any]) -> str | None:
    passes = [one for one in manifest["passes"] if one["role"] == "counters"]
    if any(one["state"] == "complete" for one in passes):
        return None
    failed = [f"counter pass {one['name']} failed: {one['error']}" for one in passes if one["error"]]
    failed += [one["fact"] for one in manifest["diagnostics"] if one["code"] == "collect.no_counters"]
    asked = manifest["reason"] or "no counter pass was run" if manifest["options"]["roofline"] else None
    return failed[0] if failed else asked


@pytest.mark.parametrize("seed", range(80))
def test_what_each_pass_is_good_for(tmp_path, suffix_reader, seed):
    manifest = _drawn(random.Random(seed), tmp_path)
    readers = [suffix_reader("a", ".x")]
    done = [one for one in manifest["passes"] if one["state"] == "complete"]
    # Only a trace of instructions that nobody reads costs no more than itself.
    fatal = [one for one in done if one["fate"] == "unknown" and one["role"] != "thread_trace"]
    whole = [one for one in done if one["fate"] in ("kept", "changed")]
    times = [one["process_ms"] for one in manifest["passes"] if one["process_ms"] is not None]
    if fatal:
        with pytest.raises(RplError):
            load_recording([tmp_path], readers)
        return
    if not whole and not times:
        with pytest.raises(BadDataError, match="holds no finished pass") as raised:
            load_recording([tmp_path], readers)
        assert raised.value.cause == (manifest["reason"] or "the run was stopped before its first pass ended")
        return
    found = load_recording([tmp_path], readers)

    assert [(t.role.value, int(t.dispatches.duration_ns()[0])) for t in found.traces] == [
        (_use(one), one["size"]) for one in whole
    ]
    assert found.process_ms == (tuple(times) if not whole else ())
    assert found.command == ("./app",)
    said = [(one.code, one.where) for one in found.diagnostics]
    expected: list[tuple[str, str | None]] = [(one["code"], None) for one in manifest["diagnostics"]]
    expected += [("run.not_cleaned", None)] if manifest["state"] == "running" else []
    for one in done:
        place = one["directory"]
        if one["fate"] == "unknown":
            expected.append(("ingest.pass_not_read", place))
        if one["fate"] in ("lost", "changed"):
            expected.append((f"run.artefact_{'missing' if one['fate'] == 'lost' else 'changed'}", place))
    assert said == expected
    over = manifest["state"] in ("recorded", "complete")
    assert found.incomplete == (None if over else manifest["reason"] or "the run did not finish")
    assert found.counters_missing == _why_no_counters(manifest)


def test_two_run_directories_are_two_runs(tmp_path, suffix_reader):
    """What is said of either is said of both; a gap of one is one of all."""
    readers = [suffix_reader("a", ".x")]
    seen = 0
    for seed in range(40):
        roots = [tmp_path / f"{seed}-{side}" for side in "ab"]
        alone = []
        for number, root in enumerate(roots):
            root.mkdir()
            _drawn(random.Random(1000 + 2 * seed + number), root)
            try:
                alone.append(load_recording([root], readers))
            except RplError:
                break
        if len(alone) < 2:
            continue
        seen += 1
        both = load_recording(roots, readers)
        traces = [
            (trace.role, trace.source.paths, trace.dispatches.duration_ns().tolist())
            for one in (*alone, both)
            for trace in one.traces
        ]
        assert traces[: len(traces) // 2] == traces[len(traces) // 2 :]
        assert both.process_ms == (*alone[0].process_ms, *alone[1].process_ms)
        assert both.diagnostics == (*alone[0].diagnostics, *alone[1].diagnostics)
        assert both.incomplete == ("; ".join(one.incomplete for one in alone if one.incomplete) or None)
        missing = [one.counters_missing for one in alone if one.counters_missing]
        assert both.counters_missing == (missing[0] if missing else None)
        assert both.files == (*alone[0].files, *alone[1].files)
    assert seen > 8
