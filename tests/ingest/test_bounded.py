"""Files from elsewhere end: kind, size, depth, digits, finite numbers in range, count of references."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files import (
    MOST_DEPTH,
    open_regular,
    parse_json,
    read_regular,
    refuse_countless,
    refuse_repeats,
)
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.output import LINE_LIMIT_BYTES, MOST_LINES, OutputStream


def test_a_regular_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 100)
    assert read_regular(path, 100) == b"x" * 100
    with pytest.raises(BadDataError, match="larger than 0 KiB"):
        read_regular(path, 99)


def test_pipes_devices_and_folders_are_refused_and_nothing_waits(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(BadDataError, match="no regular file"):
            read_regular(tmp_path / path, 1 << 20)
    with pytest.raises(MissingError, match="No such file"):
        open_regular(tmp_path / "absent", 1)
    with pytest.raises(BadDataError, match="name of a file"):
        open_regular(tmp_path / "a\0b", 1)


def test_a_link_is_followed_only_where_it_may_be(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_regular(tmp_path / "b", 1) == b"x"
    with pytest.raises(BadDataError, match="link"):
        read_regular(tmp_path / "b", 1, links=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "too deeply"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "too deeply"),
        ('{"a":' * (MOST_DEPTH + 1) + "1" + "}" * (MOST_DEPTH + 1), "too deeply"),
        ("[NaN]", "0: a number that is not finite"),
        ('{"a": -Infinity}', "a: a number that is not finite"),
        ('{"a": [1, 1e999]}', "not finite"),
        ("1" * 5000, "digits"),
        ('[{"a": 123456789012345678901234567890}]', "0.a: a number that has 97 bits"),
        ("{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
    ],
)
def test_json_is_bounded_in_depth_digits_and_range(text, reason):
    with pytest.raises(BadDataError, match=reason) as caught:
        parse_json(text, "it")
    assert caught.value.fact.startswith(("it ", "it: "))


def test_sound_json_is_what_it_says():
    value = {"a": [1, -2.5, None, True, (1 << 64) - 1, "x"], "b": {}}
    assert parse_json(json.dumps(value), "it") == value
    deep = json.loads("[" * MOST_DEPTH + "]" * MOST_DEPTH)
    assert parse_json(json.dumps(deep), "it") == deep


def test_countless_values_and_repeated_references_are_refused():
    refuse_countless(b"0," * 65_536, "it")
    with pytest.raises(BadDataError, match="countless tiny values"):
        refuse_countless(b"0," * 65_537, "it")
    refuse_repeats(["a", "b"], "it", "a file")
    with pytest.raises(BadDataError, match="it names a file 2 times: 'a'"):
        refuse_repeats(["a", "b", "a"], "it", "a file")


def test_an_application_that_prints_without_end_costs_the_lines_in_the_middle(tmp_path):
    """The sink is called a bounded number of times, however much comes; the last lines explain an end."""
    lines: list[str] = []
    script = f"import sys; sys.stdout.write('y\\n' * {3 * MOST_LINES}); print('the reason')"
    request = ProcessRequest(command=(sys.executable, "-c", script), what="it", log_path=tmp_path / "log")
    assert run_command(request, lines.append).exit_status == 0
    assert MOST_LINES < len(lines) <= MOST_LINES + LINE_LIMIT_BYTES // 2 + 2
    assert lines[:MOST_LINES] == ["y"] * MOST_LINES
    assert "left out" in lines[MOST_LINES]
    assert lines[-1] == "the reason"
    assert (tmp_path / "log").stat().st_size == 6 * MOST_LINES + len("the reason\n")  # the log has them all


@pytest.mark.parametrize("last", ["the reason", "the reason\n"])
def test_bytes_without_lines_are_bounded_too(monkeypatch, last):
    monkeypatch.setattr("rpl_core.process.output.LOG_LIMIT_BYTES", 1 << 20)
    given: list[str] = []
    script = "import sys; [sys.stdout.write('x' * 65_536) for _ in range(200)]; sys.stdout.write("
    script += repr("\n" + last) + ")"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        stream = OutputStream(child.stdout, None, given.append)
        os.set_blocking(child.stdout.fileno(), True)
        while stream.open:
            stream.read_available()
        stream.finish()
    assert sum(map(len, given)) <= 5 << 20
    assert given[-1] == "the reason"
