"""Decide which reader reads which files: the highest priority wins, refusals are kept for the message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import (
    BadDataError,
    ForeignFileError,
    InterruptedRunError,
    MissingError,
    PluginError,
    RplError,
)
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import require_sound
from rpl_core.model.value_checks import value_violation
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.plugins.entry_points import missing_provider, missing_providers, provider_of
from rpl_core.run_directory import DOCUMENTS
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.trace import Trace
    from rpl_core.plugins.host import Contribution

    Readers = Sequence[Contribution[Reader]]


@frozen
class Claim:
    """A set of files with the reader that knows them and the plugin which offers that reader."""

    plugin: str
    reader: Reader
    inputs: InputSet
    trusted: bool = False

    def read(self) -> Sequence[Trace]:
        """The traces of the set. Raises ``PluginError`` when the reader breaks instead of refusing."""
        with plugin_boundary(self.plugin, f"reader {self.reader.name!r} on {self.inputs.paths[0]}"):
            answer: object = self.reader.read(self.inputs)
            if not isinstance(answer, (tuple, list)) or not answer:
                given = "no trace" if isinstance(answer, (tuple, list)) else type(answer).__name__
                raise TypeError(f"read gave {given} where a tuple of traces was expected")
            for trace in answer:
                require_sound(trace, trusted=self.trusted)
                if not trace.source.paths or not all(Path(path).is_file() for path in trace.source.paths):
                    raise ValueError("Trace: source.paths must name the files that it was read from")
            return tuple(answer if self.trusted else map(_without_hashes, answer))


def _without_hashes(trace: Trace) -> Trace:
    """What a stranger says of the bytes of a file would stand in documents as if it were known."""
    return attrs.evolve(trace, source=attrs.evolve(trace.source, sha256=()))


@frozen
class Claims:
    """Sets to read, sets that were recognised but can't be read, and files that nobody knows."""

    readable: tuple[Claim, ...]
    refused: tuple[InputSet, ...]
    unknown: tuple[Path, ...]
    diagnostics: tuple[Diagnostic, ...] = ()  # readers that failed while they looked


def claim_files(files: Sequence[Path], readers: Readers) -> Claims:
    """Ask ``readers`` in order of priority; a file that one can read is not offered to the next.

    A refusal counts only where no other reader can read the file.
    """
    left = list(files)
    readable: list[Claim] = []
    refused: list[InputSet] = []
    problems: list[Diagnostic] = []
    for offered in sorted(readers, key=lambda offer: -offer.value.priority):
        for inputs in _claimed_by(offered, tuple(left), problems):
            if inputs.refusal is None:
                taken = set(inputs.paths)
                left = [path for path in left if path not in taken]
                readable.append(Claim(offered.plugin, offered.value, inputs, offered.trusted))
            else:
                refused.append(inputs)
    refused = _first_of_each(refused, frozenset(left))
    recognised = {path for inputs in refused for path in inputs.paths}
    unknown = tuple(path for path in left if path not in recognised)
    return Claims(tuple(readable), tuple(refused), unknown, tuple(problems))


def _first_of_each(refused: Sequence[InputSet], unread: frozenset[Path]) -> list[InputSet]:
    """Refusals of files that nobody reads; of several for one file the first."""
    first: list[InputSet] = []
    spoken_for: set[Path] = set()
    for inputs in refused:
        if unread.issuperset(inputs.paths) and not spoken_for.intersection(inputs.paths):
            first.append(inputs)
            spoken_for.update(inputs.paths)
    return first


def _claimed_by(
    offered: Contribution[Reader], files: tuple[Path, ...], problems: list[Diagnostic]
) -> Sequence[InputSet]:
    reader, what = offered.value, f"reader {offered.value.name!r} while it looked at files"
    try:
        with plugin_boundary(offered.plugin, what):
            claimed = tuple(reader.claim(files))
            return claimed if offered.trusted else _checked(claimed, frozenset(files))
    except InterruptedRunError:
        raise
    except RplError as error:  # costs only what this reader would have claimed
        failure = error if isinstance(error, PluginError) else PluginError(offered.plugin, what, error.fact)
        problems.append(reader_failed(failure))
        return ()


def reader_failed(error: PluginError) -> Diagnostic:
    """What an analysis says of a reader that broke while others could read."""
    return Diagnostic(
        "ingest.reader_failed",
        error.fact,
        severity=Severity.ERROR,
        where=f"plugin {error.plugin}",
        remedy=error.next_step,
    )


def _checked(claimed: Sequence[object], offered: frozenset[Path]) -> Sequence[InputSet]:
    """``claimed`` if these are sets of offered files. Raises ``TypeError`` or ``ValueError`` otherwise."""
    for inputs in claimed:
        if not isinstance(inputs, InputSet):
            raise TypeError(f"claim gave {type(inputs).__name__} where an InputSet was expected")
        problem = value_violation(inputs)
        if problem is not None:
            raise TypeError(f"InputSet: {problem}")
        if not inputs.paths or not offered.issuperset(inputs.paths):
            raise ValueError("claim gave a set without files, or with files that were not offered")
    if len(set(claimed)) < len(claimed):
        raise ValueError("claim gave the same set twice, which would count as two runs")
    return [inputs for inputs in claimed if isinstance(inputs, InputSet)]


def require_readable(claims: Claims, named: Sequence[Path], *, has_readers: bool) -> None:
    """Raise unless something can be read and every file that the user named himself is understood."""
    explicit = {path for path in named if path.is_file()}
    for inputs in claims.refused:
        if not claims.readable or explicit.intersection(inputs.paths):
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
    for path in claims.unknown:
        if path in explicit:
            raise _unknown(path, claims.diagnostics, has_readers=has_readers)
    if not claims.readable:
        where = named[0] if named else Path()
        if not has_readers:
            raise _unknown(where, (), has_readers=False)
        if any((where / name).is_file() for name in DOCUMENTS):
            raise BadDataError(
                f"{where} holds the documents of an analysis, not the recording that they were made from",
                next_step=f"see `rpl report {where}`; its profile.json names the recording (provenance)",
            )
        raise BadDataError(
            f"{where} holds no recording that rpl knows",
            cause="the profiler wrote nothing there, its files may not be read, or the folder is another one",
            next_step="`rpl plugins list` shows the installed readers",
        )


def _unknown(path: Path, problems: Sequence[Diagnostic], *, has_readers: bool) -> Exception:
    if not has_readers:
        return MissingError(
            f"{path} can't be read: no reader is installed",
            next_step=f"pip install {provider_of('kinds', 'readers') or 'rocm-perf-lab'}",
        )
    package = missing_provider("kinds", "readers")
    if package is not None:
        return MissingError(f"no installed reader knows {path}", next_step=f"pip install {package}")
    others = [f"{name}: pip install {package}" for name, package in missing_providers("formats").items()]
    return BadDataError(
        f"{path} is not a recording that rpl knows",
        cause=problems[0].fact if problems else "a damaged or empty file, or a format of another tool",
        next_step="; ".join(["`rpl plugins list` shows the installed readers", *others]),
    )
