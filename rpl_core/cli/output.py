"""Results on stdout, everything else on stderr; aligned tables; colour and progress only on terminals."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.errors import RplError
from rpl_core.text import encodable, format_table, harmless_json, printable, shorten, wrap_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TextIO

    from rich.console import Console

    from rpl_core.contracts.common import DiagnosticDoc

#: Characters of a diagnostic's fact on the terminal, which may quote names of thousands (chosen).
_LONGEST_FACT = 400
#: Characters of a line where no terminal says otherwise (chosen).
USUAL_WIDTH = 100
#: Narrower terminals get lines of this length all the same (chosen).
NARROWEST = 60
#: From this size of the input on (chosen: about a second of work).
_LARGE_BYTES = 64 << 20
#: Files of a folder that are looked at (chosen: looking must stay cheap).
_MOST_FILES = 2000


class Output:
    """Where a command writes."""

    def __init__(self) -> None:
        self.silent = False  # neither notes nor findings that only inform
        self._bar: Console | None = None  # while one is drawn

    def line(self, text: str = "") -> None:
        """A line of the result, or several; on a terminal they are broken at its width."""
        shown = printable(text)
        width = terminal_width()
        click.echo(shown if width is None else emphasised(wrap_lines(shown, width)))

    def json(self, value: Any) -> None:
        """Exactly one JSON document as the result."""
        whole = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        click.echo(harmless_json(encodable(whole)))

    def raw(self, text: str) -> None:
        """A result that must not be touched, such as source code or a rendered report."""
        click.echo(text, nl=False)

    def note(self, text: str) -> None:
        """Something for people, beside the result; above the bar while there is one."""
        if self.silent:
            return
        if self._bar is None:
            _say(printable(text))
        else:
            self._bar.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def warning(self, text: str) -> None:
        """One line that is shown also where notes are not."""
        _say(f"warning: {printable(text)}")

    def diagnostic(self, diagnostic: DiagnosticDoc, others: int = 0) -> None:
        """One line of stderr for it and ``others`` like it; what a command survives is a warning there."""
        if self.silent and diagnostic.severity == "info":
            return
        severity = "warning" if diagnostic.severity == "error" else diagnostic.severity
        _say(f"{severity}: {describe(diagnostic, others)}")

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
    ) -> None:
        """An aligned table; ``right`` names right-aligned columns."""
        table = format_table(columns, rows, right=right, width=terminal_width())
        click.echo(emphasised(table))

    @contextmanager
    def progress(self, title: str, total: int | None) -> Iterator[Callable[[str], None]]:
        """Show steps while they happen: a bar on a terminal, one line per step elsewhere.

        ``total`` is ``None`` while nobody knows how many there will be.
        """
        if not sys.stderr.isatty():
            yield lambda step: self.note(f"{title}: {step}")
            return
        from rich.console import Console
        from rich.progress import Progress, TimeElapsedColumn

        console = Console(stderr=True, no_color="NO_COLOR" in os.environ)
        columns = (*Progress.get_default_columns(), TimeElapsedColumn())  # bar, time left, time gone
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(printable(title), total=total)

            def advance(step: str) -> None:
                count = re.search(r"\((\d+) of (\d+)\)$", step)
                known: Any = {"advance": 1}
                if count:
                    known = {"completed": int(count[1]) - 1, "total": int(count[2])}
                bar.update(task, description=f"{title}: {printable(step)}".replace("[", r"\["), **known)

            self._bar = console
            try:
                yield advance
            finally:
                self._bar = None


def _say(text: str) -> None:
    """To stderr; on a terminal lines are broken between words."""
    click.echo(broken_for(sys.stderr, text), err=True)


def broken_for(stream: TextIO | None, text: str) -> str:
    """``text`` as it is, for a terminal with lines that fit it."""
    if stream is None or not stream.isatty():
        return text
    return wrap_lines(text, max(NARROWEST, shutil.get_terminal_size(fallback=(USUAL_WIDTH, 24)).columns))


def describe(diagnostic: DiagnosticDoc, others: int = 0) -> str:
    """A diagnostic as one line: where, fact, likely cause, remedy. The documents hold long facts in full."""
    fact = shorten(diagnostic.fact, _LONGEST_FACT)
    more = f" and {others} more" if others else ""
    parts = [f"{diagnostic.where}{more}: {fact}" if diagnostic.where else fact]
    if diagnostic.cause:
        parts.append(f"Likely cause: {diagnostic.cause}")
    if diagnostic.remedy:
        parts.append(f"Next: {diagnostic.remedy}")
    text = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts)
    return printable(" ".join(text.split()))


def text_width() -> int:
    """Columns of the terminal behind stdout; a fixed width elsewhere, so that logs compare."""
    if sys.stdout is None or not sys.stdout.isatty():
        return USUAL_WIDTH
    return max(NARROWEST, shutil.get_terminal_size(fallback=(USUAL_WIDTH, 24)).columns)


def terminal_width() -> int | None:
    """Columns of the terminal behind stdout; ``None`` where it is none, so that nothing is broken there."""
    return text_width() if sys.stdout is not None and sys.stdout.isatty() else None


def shows_colours() -> bool:
    """Whether stdout is a terminal on which colour, bold and bars are wanted (https://no-color.org)."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return sys.stdout is not None and sys.stdout.isatty() and not plain


#: What stands out on a terminal: numbers of the verdict with what they head, titles and headings, commands.
_EMPHASIS = (
    (re.compile(r"^(\d+\. )([^:.`\n]+(?::|\.(?= |$)))", re.M), r"\1\x1b[1m\2\x1b[0m"),
    (re.compile(r"^(   )(Run: )(.*)$", re.M), r"\1\2\x1b[36m\3\x1b[0m"),
    (re.compile(r"\b(Why: |Next: |Spent on: )"), r"\x1b[1m\1\x1b[0m"),
    (re.compile(r"^(Synthetic: .*|Modelled: .*|REGRESSION\b.*)$", re.M), r"\x1b[1;31m\1\x1b[0m"),
    (re.compile(r"^(PASS\b.*)$", re.M), r"\x1b[1;32m\1\x1b[0m"),
    (re.compile(r"^(CANNOT TELL\b.*|NO VERDICT\b.*)$", re.M), r"\x1b[1;33m\1\x1b[0m"),
    (re.compile(r"^(kernel {2,}\S.*|[A-Z][A-Z0-9/ ]+ {2,}[A-Z][A-Z0-9/ ]+)$", re.M), r"\x1b[1m\1\x1b[0m"),
    (re.compile(r"^([A-Z][a-z]+(?: [a-z]+){0,3})$", re.M), r"\x1b[1m\1\x1b[0m"),
    (re.compile(r"^(\((?:no |\d).*\)|Basis: .*)$", re.M), r"\x1b[2m\1\x1b[0m"),
    (re.compile(r"([█▏▎▍▌▋▊▉]+|(?<= )#[#.]{5,})"), r"\x1b[34m\1\x1b[0m"),
)


def emphasised(text: str) -> str:
    """``text`` as it is, on a terminal with bold and colour; widths do not change."""
    if not shows_colours():
        return text
    for pattern, styled in _EMPHASIS:
        text = pattern.sub(styled.replace(r"\x1b", "\x1b"), text)
    return text


@contextmanager
def shown_while_running(title: str, tell: Callable[[], str], *, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal's stderr that a program goes on: since when, and what ``tell`` says of it by then.

    For work of which nobody knows how much there is; ``tell`` is asked twice a second and must be cheap.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    from threading import Event, Thread

    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, no_color="NO_COLOR" in os.environ)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    done = Event()
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as shown:
        task = shown.add_task(title, total=None)

        def watch() -> None:
            while not done.wait(0.5):
                with suppress(OSError, RplError):  # what is being written may be gone
                    shown.update(task, description=printable(f"{title}: {tell()}"))

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


@contextmanager
def shown_while_long(title: str, paths: Iterable[Path], *, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal's stderr how much of ``paths`` is read, how long the rest takes, and what follows.

    Nothing is shown for small inputs, and nothing where stderr is no terminal. The share is that of bytes
    which this process has read since; where the system does not count them, only the time passes.
    """
    if quiet or not sys.stderr.isatty() or (size := _bytes_of(paths)) < _LARGE_BYTES:
        yield
        return
    from threading import Event, Thread

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True, no_color="NO_COLOR" in os.environ)
    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20), TaskProgressColumn()),
        *(TextColumn("left"), TimeRemainingColumn(), TextColumn("gone"), TimeElapsedColumn()),
    )
    done, before = Event(), _bytes_read()
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as shown:
        task = shown.add_task(f"{title}: read {size / (1 << 20):,.0f} MiB", total=size)

        def watch() -> None:
            while not done.wait(0.2):
                now = _bytes_read()
                read = now - before if now is not None and before is not None else 0
                if read < size:
                    shown.update(task, completed=read)
                else:  # what follows knows no share
                    shown.update(task, total=None, description=f"{title}: all read, analysed now")

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _bytes_read() -> int | None:
    """Bytes that system calls of this process have read (proc_pid_io(5)); ``None`` where nobody counts."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("rchar:")).partition(":")[2])
    return None


def _bytes_of(paths: Iterable[Path]) -> int:
    """The size of all files, at most 2000 of them; what can't be looked at counts nothing."""
    total = 0
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    for file in islice(files, _MOST_FILES):
        with suppress(OSError):
            total += file.stat().st_size
    return total
