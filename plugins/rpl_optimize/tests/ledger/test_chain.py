"""A ledger from elsewhere, or damaged: every changed byte is found, and nothing is read without bounds."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rpl_core.errors import BadDataError, MissingError
from rpl_optimize.ledger import lines
from rpl_optimize.ledger.lines import (
    CONTRACTS,
    FIRST_PREVIOUS,
    BrokenLedgerError,
    encode,
    make_entry,
    read_ledger,
)
from rpl_optimize.ledger.lines import LedgerEvent as Event


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def broken_line(path: Path) -> int:
    with pytest.raises(BrokenLedgerError) as raised:
        list(read_ledger(path))
    assert str(path) in raised.value.fact
    return raised.value.line


def test_every_event_has_a_contract() -> None:
    assert set(CONTRACTS) == set(Event)


def test_a_ledger_is_read_as_it_was_written(notes: Path) -> None:
    entries = list(read_ledger(notes))
    assert [entry.sequence for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert entries[0].event is Event.SESSION_STARTED
    assert entries[0].previous_sha256 == FIRST_PREVIOUS
    assert [entry.data["text"] for entry in entries[1:]] == [f"note {n}" for n in range(5)]
    assert [entry.previous_sha256 for entry in entries[1:]] == [entry.sha256 for entry in entries[:-1]]


def test_any_flipped_bit_is_found(notes: Path) -> None:
    original = notes.read_bytes()
    generator = random.Random(7)
    places = {generator.randrange(len(original)) for _ in range(300)}
    for place in sorted(places):
        damaged = bytearray(original)
        damaged[place] ^= 1 << generator.randrange(8)
        notes.write_bytes(bytes(damaged))
        with pytest.raises(BrokenLedgerError):
            list(read_ledger(notes))


def test_swapped_repeated_inserted_and_removed_lines_are_found(notes: Path) -> None:
    lines = lines_of(notes)
    for changed, at in (
        ([lines[0], lines[2], lines[1], *lines[3:]], 2),
        ([*lines[:3], *lines[2:]], 4),
        ([*lines[:2], *lines[3:]], 3),
        (lines[1:], 1),
        ([lines[0], b"\n", *lines[1:]], 2),
        ([*lines, b"\n"], 7),
    ):
        notes.write_bytes(b"".join(changed))
        assert broken_line(notes) == at


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("note 2", "note 9"),
        lambda text: text.replace('{"data"', '{ "data"'),
        lambda text: text.replace('"event":"note"', '"event":"note","event":"note"'),
        lambda text: text.replace('"event":"note"', '"event":"accepted"'),
        lambda text: text.replace('"event":"note"', '"event":"noted"'),
        lambda text: text.replace('"sequence":4', '"sequence":4.0'),
        lambda text: text.replace('"sequence":4', '"sequence":true'),
        lambda text: text.replace('"text":"note 2"', '"text":NaN'),
        lambda text: text.replace('"text":"note 2"', '"text":1e999'),
        lambda text: text.replace('"text":"note 2"', '"text":' + "9" * 5000),
        lambda text: text.replace('"text":"note 2"', '"text":' + "[" * 100_000),
        lambda text: "[]\n",
        lambda text: "null\n",
        lambda text: '{"data":{}}\n',
        lambda text: text.replace("note 2", "note \udcff"),
        lambda text: text.replace("note 2", r"note \udcff"),
    ],
)
def test_a_changed_line_is_found_whatever_it_holds(notes: Path, edit: Callable[[str], str]) -> None:
    lines = lines_of(notes)
    changed = edit(lines[3].decode())
    assert changed != lines[3].decode()
    lines[3] = changed.encode(errors="surrogateescape")
    notes.write_bytes(b"".join(lines))
    assert broken_line(notes) == 4


def test_a_line_with_its_own_new_hash_breaks_the_chain_behind_it(notes: Path) -> None:
    lines = lines_of(notes)
    old = json.loads(lines[3])
    forged = make_entry(4, old["time_utc"], Event.NOTE, {"text": "forged"}, old["previous_sha256"])
    lines[3] = encode(forged)
    notes.write_bytes(b"".join(lines))
    assert broken_line(notes) == 5


def test_a_content_that_its_hash_does_not_belong_to_is_called_so(notes: Path) -> None:
    notes.write_bytes(notes.read_bytes().replace(b"note 1", b"note 9"))
    with pytest.raises(BrokenLedgerError, match="hash does not belong"):
        list(read_ledger(notes))


def test_a_chain_that_counts_wrongly_is_found_though_every_hash_fits(notes: Path) -> None:
    first = next(iter(read_ledger(notes)))
    second = make_entry(3, "now", Event.NOTE, {"text": "a line is gone"}, first.sha256)
    notes.write_bytes(encode(first) + encode(second))
    assert broken_line(notes) == 2


def test_truncation_inside_a_line_is_torn_and_says_what_helps(notes: Path) -> None:
    whole = notes.read_bytes()
    notes.write_bytes(whole[:-10])
    with pytest.raises(BrokenLedgerError) as raised:
        list(read_ledger(notes))
    assert raised.value.torn
    assert "--resume" in raised.value.one_line()
    assert len(list(read_ledger(notes, accept_torn=True))) == 5


def test_a_line_without_end_is_not_read_into_memory(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 2000)
    with notes.open("ab") as stream:
        stream.write(b"x" * 5000)
    for accept_torn in (False, True):
        with pytest.raises(BrokenLedgerError, match="longer than"):
            list(read_ledger(notes, accept_torn=accept_torn))


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    path.touch()
    os.truncate(path, lines.MAX_LEDGER_BYTES + 1)  # sparse
    with pytest.raises(BadDataError, match="256 MiB"):
        list(read_ledger(path))
    with pytest.raises(BrokenLedgerError, match="longer than"):
        list(read_ledger(path, limit=1 << 40))


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadDataError, match="is no file"):
        list(read_ledger(tmp_path / "pipe"))
    with pytest.raises(BadDataError, match="is no file"):
        list(read_ledger(tmp_path))
    with pytest.raises(MissingError):
        list(read_ledger(tmp_path / "absent"))


def test_an_entry_that_json_cannot_hold_is_not_made() -> None:
    with pytest.raises(ValueError):
        make_entry(1, "now", Event.NOTE, {"x": float("nan")}, FIRST_PREVIOUS)


def test_the_canonical_form_is_ascii_sorted_and_without_white_space() -> None:
    entry = make_entry(1, "t", Event.NOTE, {"text": "\u2028 ä", "b": [1.5, None]}, FIRST_PREVIOUS)
    written = encode(entry)
    assert written.count(b"\n") == 1
    assert written.isascii()
    assert lines.decode(written[:-1]) == entry
    assert list(json.loads(written)) == sorted(json.loads(written))
