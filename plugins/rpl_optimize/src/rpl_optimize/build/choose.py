"""Choose how candidates are built: the one entry point of this package."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import UsageError
from rpl_core.process.program import require_program
from rpl_optimize.build.compile_database import find_database, read_database
from rpl_optimize.build.database_build import DatabaseBuilder
from rpl_optimize.build.default_build import default_builder, is_header
from rpl_optimize.build.program_word import find_program
from rpl_optimize.build.project_build import project_builder
from rpl_optimize.build.template_build import OUTPUT, SOURCE, TemplateBuilder

if TYPE_CHECKING:
    from rpl_optimize.build.model import Builder, BuildOptions
    from rpl_optimize.build.program_word import Program

_SHELL_WORDS = frozenset(("&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"))


def choose_builder(options: BuildOptions) -> Builder:
    """The way to build that ``options`` ask for, else a compile database, else the compiler that is there.

    ``--build`` with ``{source}`` and ``{output}`` is a command for one file, without them the project's own
    build. A compile database is used when it was named, or when one is found above the source that has an
    entry for it. Relative paths are those of the working directory at this moment.

    Raises ``UsageError`` where the options contradict each other or the files, ``MissingError`` without a
    compiler or build program, ``BadDataError`` for a broken compile database.
    """
    place = Path.cwd()
    options = attrs.evolve(options, source=(place / options.source).resolve())
    if not options.source.is_file():
        raise UsageError(f"no source file at {options.source}", next_step="check --source")
    program = find_program(options.command, options.binary, place)
    if options.template is not None:
        return _given(options, options.template, program, place)
    database = options.compile_database or find_database(options.source)
    if database is not None:
        entries = read_database(database)
        if options.compile_database is not None or any(e.file == options.source for e in entries):
            return DatabaseBuilder.choose(options, database, entries, program)
    return default_builder(options, program, place)


def _given(options: BuildOptions, template: str, program: Program, place: Path) -> Builder:
    words = _split(template)
    named = [name for name in (SOURCE, OUTPUT) if any(name in word for word in words)]
    if not named:
        require_program(words)
        return project_builder(options, words, program, place)
    if len(named) == 1:
        missing = OUTPUT if named == [SOURCE] else SOURCE
        raise UsageError(
            f"--build has {named[0]}, but no {missing}",
            next_step=f"put {missing} into the command, or leave both out for a project's own build",
        )
    if is_header(options.source):
        raise UsageError(
            f"{options.source.name} is a header, so no command for one file builds it",
            next_step="give the project's own build without {source} and {output}: --build 'make app'",
        )
    require_program(words)
    return TemplateBuilder(
        summary=template,
        words=words,
        command=options.command,
        source=options.source,
        program=program,
        place=place,
        time_limit_s=options.time_limit_s,
    )


def _split(template: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(template))
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
