"""Appending: contracts, full disks, interrupts between any two steps, kill -9, and going on afterwards."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_optimize.contracts import NoteData
from rpl_optimize.ledger import lines as writer
from rpl_optimize.ledger.lines import Ledger, read_ledger
from rpl_optimize.ledger.lines import LedgerEvent as Event

from .conftest import STARTED, note


def texts(path: Path) -> list[str]:
    return [entry.data["text"] for entry in read_ledger(path) if entry.event is Event.NOTE]


def test_parts_and_mappings_are_taken_and_defaults_filled_in(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l") as ledger:
        ledger.append(Event.NOTE, NoteData(text="part", candidate=2))
        ledger.append(Event.NOTE, {"text": "mapping"})
        assert ledger.entries == 2
        last = ledger.last_sha256
    entries = list(read_ledger(tmp_path / "l"))
    assert entries[0].data == {"text": "part", "candidate": 2, "details": {}}
    assert entries[1].data == {"text": "mapping", "candidate": None, "details": {}}
    assert entries[1].sha256 == last


@pytest.mark.parametrize("data", [{}, {"text": 1}, {"text": "a", "more": 1}])
def test_data_that_does_not_fit_is_refused_and_nothing_written(tmp_path: Path, data: dict) -> None:
    with Ledger.create(tmp_path / "l") as ledger:
        with pytest.raises(RplError, match="note does not fit"):
            ledger.append(Event.NOTE, data)
        ledger.append(Event.NOTE, note("next"))
    assert texts(tmp_path / "l") == ["next"]


def test_bytes_that_are_no_text_are_written_out(tmp_path: Path, rpl_cli) -> None:
    with Ledger.create(tmp_path / "l") as ledger:
        ledger.append(Event.NOTE, {"text": "caf\udce9", "details": {"\udcff": "\ud800"}})
    (entry,) = read_ledger(tmp_path / "l")
    assert "\udce9" not in entry.data["text"]
    assert rpl_cli("ledger", "show", tmp_path / "l", "--json").json()["events"][0]["data"] == entry.data


def test_a_line_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_LINE_BYTES", 500)
    with Ledger.create(tmp_path / "l") as ledger:
        with pytest.raises(RplError, match="too long"):
            ledger.append(Event.NOTE, note("x" * 500))
        ledger.append(Event.NOTE, note("next"))
    assert texts(tmp_path / "l") == ["next"]


def test_an_existing_file_or_link_is_never_taken(tmp_path: Path, notes: Path) -> None:
    before = notes.read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (notes, tmp_path / "link"):
        with pytest.raises(UsageError):
            Ledger.create(path)
    assert notes.read_bytes() == before
    assert not (tmp_path / "elsewhere").exists()


def test_only_one_process_writes(notes: Path) -> None:
    with Ledger.open_for_append(notes), pytest.raises(UsageError, match="another rpl"):
        Ledger.open_for_append(notes)
    Ledger.open_for_append(notes).close()


def test_going_on_continues_the_chain(notes: Path) -> None:
    with Ledger.open_for_append(notes) as ledger:
        assert ledger.append(Event.NOTE, note("more")).sequence == 7
    assert texts(notes)[-1] == "more"


def test_a_torn_line_is_cut_off_and_recorded(notes: Path) -> None:
    whole = notes.read_bytes()
    torn = b'{"data":{"text":"half'
    notes.write_bytes(whole + torn)
    with Ledger.open_for_append(notes) as ledger:
        ledger.append(Event.NOTE, note("after"))
    assert notes.read_bytes().startswith(whole)
    recovered, last = list(read_ledger(notes))[-2:]
    assert recovered.event is Event.RECOVERED
    digest = hashlib.sha256(torn).hexdigest()
    assert recovered.data == {"dropped_bytes": len(torn), "dropped_sha256": digest}
    assert last.data["text"] == "after"


@pytest.mark.parametrize("keep", [1, 40, 200])
def test_a_ledger_torn_at_any_byte_of_its_last_line_goes_on(notes: Path, keep: int) -> None:
    lines = notes.read_bytes().splitlines(keepends=True)
    notes.write_bytes(b"".join(lines[:-1]) + lines[-1][:keep])
    with Ledger.open_for_append(notes) as ledger:
        assert ledger.entries == len(lines)  # the recovery took its place
    assert [entry.event for entry in read_ledger(notes)][-1] is Event.RECOVERED


def test_a_ledger_that_is_broken_before_its_end_is_not_touched(notes: Path) -> None:
    lines = notes.read_bytes().splitlines(keepends=True)
    damaged = b"".join([lines[0], lines[1].replace(b"note 0", b"note 8"), *lines[2:]]) + b"torn"
    notes.write_bytes(damaged)
    with pytest.raises(BadDataError, match="line 2"):
        Ledger.open_for_append(notes)
    assert notes.read_bytes() == damaged


def test_there_must_be_a_ledger_to_go_on_with(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        Ledger.open_for_append(tmp_path / "absent")


def test_a_change_by_somebody_else_is_noticed(notes: Path) -> None:
    with Ledger.open_for_append(notes) as ledger:
        with notes.open("ab") as stream:
            stream.write(b"foreign\n")
        with pytest.raises(BadDataError, match="something else"):
            ledger.append(Event.NOTE, note("more"))


def short_write(fraction: float) -> Callable[[int, bytes], int]:
    """A disk with room for a part of what is written."""
    write = os.write

    def run(descriptor: int, data: bytes) -> int:
        count = int(len(data) * fraction)
        if count == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:count])

    return run


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.99])
def test_a_full_disk_leaves_nothing_of_the_line(notes: Path, monkeypatch, fraction: float) -> None:
    before = notes.read_bytes()
    with Ledger.open_for_append(notes) as ledger:
        monkeypatch.setattr(writer.os, "write", short_write(fraction))
        with pytest.raises(MissingError, match="no space left"):
            ledger.append(Event.NOTE, note("lost"))
        assert notes.read_bytes() == before
        monkeypatch.undo()
        ledger.append(Event.NOTE, note("kept"))
    assert texts(notes)[-2:] == ["note 4", "kept"]


def test_a_disk_that_is_full_at_the_sync_leaves_nothing_either(notes: Path, monkeypatch) -> None:
    before = notes.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with Ledger.open_for_append(notes) as ledger:
        monkeypatch.setattr(writer.os, "fsync", full)
        with pytest.raises(MissingError, match="no space left"):
            ledger.append(Event.NOTE, note("lost"))
    assert notes.read_bytes() == before


def test_a_disk_that_is_full_for_the_cut_too_is_recovered_later(notes: Path, monkeypatch) -> None:
    def refuse(_descriptor: int, _size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Ledger.open_for_append(notes) as ledger:
        monkeypatch.setattr(writer.os, "write", short_write(0.5))
        monkeypatch.setattr(writer.os, "ftruncate", refuse)
        with pytest.raises(MissingError):
            ledger.append(Event.NOTE, note("lost"))
        monkeypatch.undo()
        ledger.append(Event.NOTE, note("kept"))  # finds the half line and cuts it off first
    assert texts(notes)[-2:] == ["note 4", "kept"]


def test_a_limit_on_file_sizes_by_the_system(notes: Path) -> None:
    """The real thing: the kernel cuts the write short, then refuses."""
    script = textwrap.dedent(
        """
        import resource, signal, sys
        from pathlib import Path
        from rpl_core.errors import RplError
        from rpl_optimize.ledger.lines import LedgerEvent
        from rpl_optimize.ledger.lines import Ledger
        path = Path(sys.argv[1])
        size = path.stat().st_size
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
        with Ledger.open_for_append(path) as ledger:
            try:
                ledger.append(LedgerEvent.NOTE, {"text": "lost"})
            except RplError as error:
                print(type(error).__name__, path.stat().st_size == size)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            ledger.append(LedgerEvent.NOTE, {"text": "kept"})
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(notes)], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split()[1] == "True"
    assert texts(notes)[-1] == "kept"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != notes.stat().st_size


class Interrupted(BaseException):
    """Stands for Ctrl-C."""


@pytest.mark.parametrize("after", ["write", "fsync"])
def test_an_interrupt_after_the_write_keeps_the_line_and_the_chain(notes: Path, monkeypatch, after) -> None:
    real = getattr(os, after)

    def interrupted(*arguments: object) -> None:
        real(*arguments)
        raise Interrupted

    with Ledger.open_for_append(notes) as ledger:
        monkeypatch.setattr(writer.os, after, interrupted)
        with pytest.raises(Interrupted):
            ledger.append(Event.NOTE, note("first"))
        monkeypatch.undo()
        ledger.append(Event.NOTE, note("second"))
    assert texts(notes)[-2:] == ["first", "second"]


def test_an_interrupt_before_the_write_leaves_nothing(notes: Path, monkeypatch) -> None:
    def interrupted(*_arguments: object) -> None:
        raise Interrupted

    with Ledger.open_for_append(notes) as ledger:
        monkeypatch.setattr(writer.os, "write", interrupted)
        with pytest.raises(Interrupted):
            ledger.append(Event.NOTE, note("first"))
        monkeypatch.undo()
        ledger.append(Event.NOTE, note("second"))
    assert texts(notes)[-2:] == ["note 4", "second"]


def test_kill_9_while_it_writes_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from rpl_optimize.ledger.lines import LedgerEvent
        from rpl_optimize.ledger.lines import Ledger
        with Ledger.create(Path(sys.argv[1])) as ledger:
            print("started", flush=True)
            while True:
                ledger.append(LedgerEvent.NOTE, {"text": "x" * 3000})
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while path.stat().st_size < 100_000:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    with Ledger.open_for_append(path) as ledger:  # the lock went with the process
        ledger.append(Event.NOTE, note("end"))
    assert texts(path)[-1] == "end"


def test_a_session_is_what_it_was_given(notes: Path) -> None:
    first = next(iter(read_ledger(notes)))
    assert first.data["command"] == list(STARTED["command"])
    assert first.time_utc.endswith("Z")
