"""What an agent may touch, and rpl's own commands as processes: progress, and an end where it is cancelled.

A process of its own for each, because that is what can be ended with everything it started: a command of rpl
that is told to stop leaves no process of the application's session (``rpl_core.process``). One at a time,
because everything else that runs would be in the measurement.
"""

from __future__ import annotations

import os
import shlex
import signal
import stat
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

import anyio
import attrs

from rpl_core.errors import BadDataError, MissingError, RplError, TimeLimitError, UsageError
from rpl_core.run_directory import claim_path
from rpl_core.text import readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, Process

    Tell = Callable[[str], Awaitable[None]]

#: ``-c`` puts the working directory first on the path of modules: a file of the root would be run for one of
#: the standard library.
_START = "import sys; sys.path[:] = filter(None, sys.path); from rpl_core.cli import main; sys.exit(main())"
#: Documents and what else is printed on stdout, and one line of stderr (chosen).
_MOST_BYTES, _MOST_LINE_BYTES = 64 << 20, 1 << 16
#: Of stderr these are kept for the result, and so much of a line (chosen).
_MOST_NOTES, _NOTE_WIDTH = 30, 400
_NOTES_OF_A_FAILURE = 3
#: Seconds between two messages of progress: an application may print more than anybody reads (chosen).
_PROGRESS_EVERY_S = 0.1
#: rpl ends its application at once, then closes its files; a second signal hurries it (chosen).
_GRACE_S = 20.0


@frozen
class Answer:
    """``notes`` are the last lines of stderr: words of rpl and of the application, on one line each."""

    exit_code: int
    stdout: bytes
    notes: tuple[str, ...]


class FailedCommandError(RplError):
    """A command of rpl that gave no result."""


def failure(name: str, answer: Answer) -> FailedCommandError:
    """What it said last, as a quotation: an application may have said it."""
    said = "; ".join(repr(note) for note in answer.notes[-_NOTES_OF_A_FAILURE:]) or "nothing"
    return FailedCommandError(f"rpl {name} ended with exit code {answer.exit_code} and said {said}")


@attrs.define(eq=False)
class Runner:
    """Starts ``rpl`` in ``root``, with ``options`` before the name of the command."""

    root: Path
    options: tuple[str, ...]
    time_limit_s: float
    turn: anyio.Lock = attrs.field(factory=anyio.Lock)
    _started: set[Process] = attrs.field(factory=set)

    async def run(self, words: Sequence[str | Path], tell: Tell) -> Answer:
        """One command from start to end. However this is left, its processes are gone."""
        async with self.turn, self.limited(str(words[0])):
            child = await self.start(words, stdin=DEVNULL)
            try:
                return await child.result(tell)
            finally:
                await self.end(child)

    @asynccontextmanager
    async def limited(self, what: str) -> AsyncIterator[None]:
        try:
            with anyio.fail_after(self.time_limit_s):
                yield
        except TimeoutError:
            raise TimeLimitError(
                f"rpl {what} did not end within {self.time_limit_s:g} s and was stopped",
                next_step="give it less work; the user raises the limit with `rpl mcp --time-limit`",
            ) from None

    async def start(self, words: Sequence[str | Path], *, stdin: int = PIPE) -> Child:
        command = [sys.executable, "-c", _START, *self.options, *map(str, words)]
        # In the server's process group: who ends that, ends rpl, which ends what it started.
        process = await anyio.open_process(command, cwd=self.root, stdin=stdin, stdout=PIPE, stderr=PIPE)
        self._started.add(process)
        return Child(process)

    async def end(self, child: Child) -> None:
        """End it if it still runs: it closes what it wrote, and ends the application first."""
        process = child.process
        with anyio.CancelScope(shield=True):
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
                if process.returncode is not None:
                    break
                with suppress(ProcessLookupError):
                    process.send_signal(number)
                with anyio.move_on_after(_GRACE_S):
                    await child.drained()
            await process.aclose()
        self._started.discard(process)

    async def end_all(self) -> None:
        for process in tuple(self._started):
            await self.end(Child(process))


@attrs.define(eq=False)
class Child:
    process: Process
    notes: deque[str] = attrs.field(factory=lambda: deque(maxlen=_MOST_NOTES))
    _out: bytearray = attrs.field(factory=bytearray)
    _err: bytearray = attrs.field(factory=bytearray)
    _told_at: float = 0.0

    async def result(self, tell: Tell) -> Answer:
        """All that it prints, when it has ended."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, tell)
            while await self._more():
                pass
            if self._printed_too_much:
                group.cancel_scope.cancel()
        self._require_bounded()
        code = await self.process.wait()
        return Answer(code, bytes(self._out), tuple(self.notes))

    async def line(self, tell: Tell) -> bytes | None:
        """The next line of stdout; ``None`` when there is none."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, tell)
            while b"\n" not in self._out and await self._more():
                pass
            group.cancel_scope.cancel()
        self._require_bounded()
        if b"\n" not in self._out:
            await self.process.wait()
            return None
        line, _, rest = bytes(self._out).partition(b"\n")
        self._out[:] = rest
        return line

    async def say(self, answer: str) -> None:
        assert self.process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self.process.stdin.send(f"{answer}\n".encode())

    async def drained(self) -> None:
        """Wait for its end; a full pipe must not keep it from that."""
        async with anyio.create_task_group() as group:
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    group.start_soon(_emptied, stream)
            await self.process.wait()
            group.cancel_scope.cancel()

    async def _more(self) -> bool:
        assert self.process.stdout is not None
        try:
            self._out += await self.process.stdout.receive()
        except anyio.EndOfStream:
            return False
        return not self._printed_too_much

    @property
    def _printed_too_much(self) -> bool:
        return len(self._out) > _MOST_BYTES

    def _require_bounded(self) -> None:
        # Outside of task groups, which would wrap the error: nobody catches a group of one.
        if self._printed_too_much:
            raise BadDataError(f"rpl printed more than {_MOST_BYTES >> 20} MiB, so it is not read")

    async def _listen(self, tell: Tell) -> None:
        assert self.process.stderr is not None
        with suppress(anyio.EndOfStream):
            while True:
                self._err += await self.process.stderr.receive()
                *lines, rest = bytes(self._err).split(b"\n")
                self._err[:] = rest[-_MOST_LINE_BYTES:]
                self._note(lines)
                now = anyio.current_time()
                if self.notes and now - self._told_at >= _PROGRESS_EVERY_S:
                    self._told_at = now
                    await tell(self.notes[-1])
        self._note([bytes(self._err)])
        self._err.clear()

    def _note(self, lines: Iterable[bytes]) -> None:
        texts = (readable(line.decode("utf-8", "backslashreplace"), _NOTE_WIDTH) for line in lines)
        self.notes.extend(text for text in texts if text.strip())


async def _emptied(stream: ByteReceiveStream) -> None:
    # A RuntimeError of asyncio: the call that a signal interrupts still reads it, which is as good.
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError):
        while True:
            await stream.receive()


# What an agent may touch: one folder, commands word for word, and sources only where that is allowed.
#
# The agent's words come from a language model that reads kernels, logs and pages of others. So a path is
# checked part by part, a command is one of a list, and neither can be taken for an option of rpl.

#: Where new runs, captures and sessions are made, below the root.
RUNS = "rpl-runs"
#: Characters of a refused word that are repeated in the message.
_SHOWN = 120


@frozen
class Allowed:
    """``root`` is absolute and no link. ``accept``: accepted sources may be written."""

    root: Path
    commands: tuple[tuple[str, ...], ...]
    accept: bool = False

    @classmethod
    def of(cls, root: Path, commands: Iterable[str], *, accept: bool) -> Allowed:
        """From the words of the command line; ``UsageError`` for a command that can't be split."""
        return cls(root.resolve(), tuple(map(_split, commands)), accept)

    def command(self, words: Sequence[str]) -> tuple[str, ...]:
        """``words``, if they are exactly those of an allowed command."""
        if tuple(words) in self.commands:
            return tuple(words)
        raise UsageError(
            f"this command is not allowed: {readable(shlex.join(words), _SHOWN)}",
            next_step="use one of allowed_commands; the user allows others with `rpl mcp --allow-command`",
        )

    def path(self, text: str) -> Path:
        """The absolute path of something that is there, below the root and reached by no link."""
        path = self._inside(text)
        if not path.exists():
            raise MissingError(f"there is no {readable(text, _SHOWN)}", next_step="name what is in the root")
        return path

    def result(self, text: str) -> str:
        """A file that a program of the root is to write, as the program itself names it."""
        if text != "-":
            self._inside(text.partition(":")[0])
        return text

    def new(self, name: str) -> Path:
        """A new empty folder for what a tool makes."""
        return claim_path(self._inside(RUNS), (name,))

    def told(self, path: Path | str) -> str:
        """A path as agents know it: from the root on."""
        return os.path.relpath(path, self.root)

    def _inside(self, text: str) -> Path:
        """Raises ``BadDataError`` for a path that leaves the root, or might."""
        shown = readable(text, _SHOWN)
        parts = Path(text).parts
        if not parts or "\0" in text or Path(text).is_absolute() or ".." in parts:
            raise BadDataError(
                f"{shown!r} is not a path below the root", next_step="name it from the root on, without `..`"
            )
        place = self.root
        for part in parts:
            place = place / part
            try:
                if stat.S_ISLNK(place.lstat().st_mode):
                    raise BadDataError(
                        f"{shown!r} goes through a link, which could lead anywhere",
                        next_step="name the file or folder itself",
                    )
            except (FileNotFoundError, NotADirectoryError):
                break
            except OSError as error:
                raise BadDataError(f"{shown!r} can't be looked at: {error.strerror}") from None
        return self.root / Path(text)


def _split(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--allow-command can't be split into words: {error}") from None
    if not words:
        raise UsageError("--allow-command is empty")
    if len(words) == 1 and len(words[0].split()) > 1:
        # rpl would split such a word, and run what nobody allowed.
        raise UsageError(f"--allow-command is one word with spaces: {words[0]!r}")
    return words
