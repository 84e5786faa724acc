"""On a terminal of 80 columns every line fits, and colour comes and goes with what the user asks for."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_BETWEEN = "=== next command ==="
#: All commands in one process: a start costs more than what most of them do.
_RUNNER = """
import json, sys
from rpl_core.cli.main import run
for arguments in json.loads(sys.argv[1]):
    print(sys.argv[2], flush=True)
    run(arguments)
    sys.stderr.flush()
"""


def _on_a_terminal(commands, *, columns=80, **variables):
    """What each command shows, by its words."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    environment |= {"TERM": "xterm-256color", **variables}
    environment["RPL_LOAD_PLUGINS"] += ",rpl-att,rpl-amdgpu,rpl-autotune,rpl-vmreplay,rpl-emu"
    words = [[str(word) for word in command] for command in commands]
    arguments = [sys.executable, "-c", _RUNNER, json.dumps(words), _BETWEEN]
    child = subprocess.Popen(arguments, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    shown = _everything(leader).split(f"{_BETWEEN}\n")[1:]
    assert child.wait() == 0
    return dict(zip(map(" ".join, words), shown, strict=True))


def _everything(leader):
    """What is written to a terminal until the last writer is gone."""
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # Linux tells that the last writer is gone as an error
            break
        if not part:
            break
        parts.append(part)
    os.close(leader)
    return b"".join(parts).decode().replace("\r\n", "\n")


def _too_wide(text, columns=80):
    """Lines beyond the width; a single word (an address, a mangled name) is left whole to be copied."""
    lines = _ESCAPE.sub("", text).split("\n")
    return [line for line in lines if len(line) > columns and len(line.split()) > 1]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from rpl_core.cli.main import run as rpl

    place = tmp_path_factory.mktemp("terminal") / "run"
    assert rpl(["demo", "--recorded", "--runs", "1", "-o", str(place)]) == 0
    return place


_READING = (
    ("report",),
    ("report", "--all", "--names", "full"),
    ("explain", "--run"),
    ("what-if", "stencil_tile=2x", "--run"),
)
_TELLING = (
    ("devices",),
    ("devices", "info", "gfx942"),
    ("ceilings", "--device", "mi300x"),
    ("plugins", "list"),
    ("doctor",),
    ("config", "show"),
    ("docs",),
    ("what-if", "nothing-of-that-name=2x"),
)


def test_every_command_fits_80_columns(run):
    commands = [(*words, run) for words in _READING]
    commands += [("compare", run, run), ("export", "--format", "dot", run), *_TELLING]
    helped = ("profile", "analyze", "report", "explain", "compare", "optimize", "autotune", "isolate", "emu")
    commands += [(name, "--help") for name in helped] + [("--help",)]
    shown = _on_a_terminal(commands)
    wide = {command: lines for command, text in shown.items() if (lines := _too_wide(text))}
    wide.pop(f"export --format dot {run}")  # a file for other programs is none for people
    assert wide == {}
    assert all(text.strip() for text in shown.values())


@pytest.mark.data
def test_thread_traces_fit_and_begin_with_the_hot_lines(rpl_shared_data):
    folder = rpl_shared_data / "att" / "gfx950_wave_gemm" / "ui_output_agent_32617_dispatch_3"
    shown = _on_a_terminal([("att", "show", folder), ("att", "show", folder, "--top", "9")])
    assert not any(_too_wide(text) for text in shown.values())
    for text in shown.values():
        hot = _ESCAPE.sub("", text).splitlines()
        assert hot[0].split()[:3] == ["SHARE", "LINE", "HOT"]
        assert hot[2 if "SOURCE" in hot[1] else 1].split()[:3] == ["9.7%", "156", "s_waitcnt"]
        assert "double-buffer" in text.partition("kernel  ")[0]


def test_colour_is_for_terminals_that_want_it(run, rpl_cli):
    """NO_COLOR and pipes get the same bytes; a terminal adds escapes and bars, and no other text."""
    command = ("report", run)
    (coloured,) = _on_a_terminal([command], columns=100).values()
    (plain,) = _on_a_terminal([command], columns=100, NO_COLOR="1").values()
    (dumb,) = _on_a_terminal([command], columns=100, TERM="dumb").values()
    piped = rpl_cli(*command).assert_ok().stdout
    assert plain == dumb == piped
    assert "\x1b[1m" in coloured
    assert "█" in coloured
    assert "\x1b" not in piped
    verdict = [_ESCAPE.sub("", coloured).split("\n\n")[0], piped.split("\n\n")[0]]
    assert verdict[0] == verdict[1]


def test_rich_is_not_imported_without_a_progress_bar(run):
    code = (
        "import sys; from rpl_core.cli.main import run;"
        f" run(['report', {str(run)!r}]); print('rich' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().endswith("False")


def test_bytes_that_are_read_are_counted(tmp_path):
    """What the share of a long analysis is made of."""
    from rpl_core.cli.output import _bytes_read

    file = tmp_path / "file"
    file.write_bytes(b"x" * 300_000)
    before = _bytes_read()
    if before is None:
        pytest.skip("this system does not count the bytes that a process reads")
    assert len(file.read_bytes()) == 300_000
    assert _bytes_read() - before >= 300_000


def test_a_long_analysis_shows_its_share_on_a_terminal(tmp_path):
    """A script in place of rpl: the size that counts as large is what it would have to reach."""
    (tmp_path / "file").write_bytes(b"x" * (3 << 20))
    code = f"""
import time
from pathlib import Path
from rpl_core.cli import output
output._LARGE_BYTES = 1
file = Path({str(tmp_path / "file")!r})
with output.shown_while_long("analyze", [file]), file.open("rb", buffering=0) as stream:
    stream.read(1 << 20)
    begun = time.monotonic()
    while time.monotonic() - begun < 1:
        time.sleep(0.05)
"""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    shown = _everything(leader)
    assert child.wait() == 0
    assert "analyze: read 3 MiB" in shown
    assert re.search(r"\b3[3-9]%", shown), shown[-500:]
    assert "left" in shown
