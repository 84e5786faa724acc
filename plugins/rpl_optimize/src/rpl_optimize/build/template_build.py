"""Build by one command line with ``{source}`` and ``{output}`` in it: the user's own, or a compiler's."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.process.storage import make_directory
from rpl_optimize.build.build_run import BuildRun, StepFailedError
from rpl_optimize.build.environment import build_environment
from rpl_optimize.build.model import Builder

if TYPE_CHECKING:
    from rpl_optimize.build.model import Build, BuildFailure
    from rpl_optimize.build.program_word import Program

SOURCE, OUTPUT = "{source}", "{output}"


@attrs.frozen
class TemplateBuilder(Builder):
    """Runs ``words`` in ``place`` (the user's working directory), without a shell.

    The candidate keeps its file name, in a scratch directory. With ``search_beside`` the directory of the
    user's source is searched for headers behind all ``-I`` of the command, by ``CPATH``: that covers
    ``#include "foo.h"`` and ``#include "../foo.h"``. Not covered: a header there that is named like one of
    the system's is found before it; a header that includes the source itself gets the user's; what the
    command writes besides ``{output}`` lands where the command says, as it does for the user.
    """

    summary: str
    words: tuple[str, ...]
    command: tuple[str, ...]
    source: Path
    program: Program
    place: Path
    time_limit_s: float
    search_beside: bool = True

    def build(self, text: bytes, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s)) as run:
            candidate = run.directory / "source" / self.source.name
            output = run.directory / "bin" / self.program.path.name
            make_directory(output.parent)
            run.write(candidate, text)
            include = (self.source.parent,) if self.search_beside else ()
            environment = build_environment(run.temporary, self.place, include=include)
            try:
                run.step(self._filled(candidate, output), self.place, environment)
                if not output.is_file():
                    return run.failed("the build command ended well, but wrote no {output}")
                return run.finished(output)
            except StepFailedError as error:
                return run.failed(str(error))

    def command_for(self, build: Build) -> tuple[str, ...]:
        return self.program.replaced(self.command, build.binary)

    def _filled(self, candidate: Path, output: Path) -> tuple[str, ...]:
        return tuple(word.replace(SOURCE, str(candidate)).replace(OUTPUT, str(output)) for word in self.words)
