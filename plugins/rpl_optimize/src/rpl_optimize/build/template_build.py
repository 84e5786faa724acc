"""Build by one command line with ``{source}`` and ``{output}`` in it: the user's own, or a compiler's."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import UsageError
from rpl_core.process.launch import require_program
from rpl_core.process.storage import make_directory
from rpl_core.values import frozen
from rpl_optimize.build.build_run import BuildRun, StepFailedError, TextBuilder
from rpl_optimize.build.environment import build_environment
from rpl_optimize.build.host_comparison import HostComparison, watching
from rpl_optimize.interfaces.builder import Builder, BuildSystem
from rpl_optimize.running.program_word import find_program

if TYPE_CHECKING:
    from rpl_optimize.interfaces.builder import Build, BuildFailure, BuildRequest
    from rpl_optimize.running.program_word import Program

SOURCE, OUTPUT = "{source}", "{output}"
_HEADERS = frozenset((".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".inc", ".inl", ".ipp", ".tpp"))
_SHELL_WORDS = frozenset(("&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"))


class CommandBuilds(BuildSystem):
    """``--build`` with ``{source}`` and ``{output}``: a command for one file."""

    name = "command"
    summary = "The command of --build, with {source} and {output} in it."
    priority = 30

    def builder(self, request: BuildRequest) -> Builder | None:
        words = given_words(request)
        named = [name for name in (SOURCE, OUTPUT) if any(name in word for word in words)]
        if not named:
            return None
        if len(named) == 1:
            missing = OUTPUT if named == [SOURCE] else SOURCE
            raise UsageError(
                f"--build has {named[0]}, but no {missing}",
                next_step=f"put {missing} into the command, or leave both out for a project's own build",
            )
        if is_header(request.source):
            raise UsageError(
                f"{request.source.name} is a header, so no command for one file builds it",
                next_step="give the project's own build without {source} and {output}: --build 'make app'",
            )
        require_program(words)
        return TemplateBuilder(
            summary=str(request.build_command),
            words=words,
            command=request.command,
            source=request.source,
            program=find_program(request.command, request.binary, request.place),
            place=request.place,
            time_limit_s=request.time_limit_s,
        )


def given_words(request: BuildRequest) -> tuple[str, ...]:
    """The words of ``--build``; none without it. Raises ``UsageError`` for what only a shell understands."""
    if request.build_command is None:
        return ()
    try:
        words = tuple(shlex.split(request.build_command))
    except ValueError as error:
        raise UsageError(f"--build can't be split into words: {error}") from None
    if not words:
        raise UsageError("--build is empty")
    shell = next((word for word in words if word in _SHELL_WORDS), None)
    if shell is not None or "=" in words[0]:
        raise UsageError(
            f"--build is not run by a shell, so {shell or words[0]!r} means nothing there",
            next_step="write --build \"sh -c '...'\", or a script",
        )
    return words


def is_header(path: Path) -> bool:
    return path.suffix.lower() in _HEADERS


@frozen
class TemplateBuilder(TextBuilder):
    """Runs ``words`` in ``place`` (the user's working directory), without a shell.

    The candidate keeps its file name, in a scratch directory. The directory of the user's source is searched
    for headers behind all ``-I`` of the command, by ``CPATH``: that covers ``#include "foo.h"`` and
    ``#include "../foo.h"``. Not covered: a header there that is named like one of the system's is found
    before it; a header that includes the source itself gets the user's. Besides ``{output}`` the command may
    write beside it and into ``TMPDIR``; without a sandbox it also writes where else it says.
    """

    summary: str
    words: tuple[str, ...]
    command: tuple[str, ...]
    source: Path
    program: Program
    place: Path
    time_limit_s: float

    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s, (self.source.parent,))) as run:
            candidate = run.directory / "source" / self.source.name
            output = run.directory / "bin" / self.program.path.name
            make_directory(output.parent)
            run.write(candidate, text)
            beside = (self.source.parent,)
            environment = build_environment(run.temporary, self.place, include=beside)
            try:
                watched = {} if original is None else watching(run.temporary)
                run.step(self._filled(candidate, output), self.place, environment | watched)
                if not output.is_file():
                    return run.failed("the build command ended well, but wrote no {output}")
                if original is None:
                    return run.finished(output)
                comparison = HostComparison(run, environment, candidate, {run.directory: run.directory})
                return run.finished(output, comparison.verdict(original, text, output))
            except StepFailedError as error:
                return run.failed(str(error))

    def _filled(self, candidate: Path, output: Path) -> tuple[str, ...]:
        return tuple(word.replace(SOURCE, str(candidate)).replace(OUTPUT, str(output)) for word in self.words)
