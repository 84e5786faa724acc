"""Whether the files of a session are those that its ledger tells of: sources, programs and the result."""

from __future__ import annotations

import errno
import hashlib
import os
from typing import TYPE_CHECKING

import attrs
from pydantic import ValidationError

from rpl_core.files.digest import sha256_of
from rpl_optimize.contracts.ledger import (
    AcceptedData,
    BaselineProfiledData,
    BuiltData,
    FinishedData,
    MeasuredData,
    PlacementData,
    ProposedData,
    RolledBackData,
    SessionStartedData,
)
from rpl_optimize.contracts.optimize import OptimizeDocument
from rpl_optimize.ledger.events import CONTRACTS
from rpl_optimize.ledger.read import read_ledger
from rpl_optimize.session_layout import DOCUMENT, LEDGER, ORIGINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rpl_core.contracts.common import Part
    from rpl_optimize.contracts.optimize import BuildPart


@attrs.define
class SessionFiles:
    """``problems`` are (line of the ledger, sentence); ``checked`` counts files."""

    root: Path
    problems: list[tuple[int, str]] = attrs.field(factory=list)
    checked: int = 0
    _sources: dict[int, str] = attrs.field(factory=dict)
    _decided: dict[int, tuple[str, str]] = attrs.field(factory=dict)
    _finished: bool = False

    def take(self, line: int, data: Part) -> None:
        for name, digest in _named(data):
            self._compare(line, name, digest, sha256_of, ("", "the recorded one"))
        if isinstance(data, BaselineProfiledData | MeasuredData | PlacementData):
            for name, digest in data.recordings.items():
                self._compare(
                    line, name, digest, digest_of_recording, ("the recording ", "the one that was made")
                )
        if isinstance(data, ProposedData):
            self._sources[data.candidate] = data.source_sha256
        elif isinstance(data, AcceptedData):
            self._decided[data.candidate] = (data.source_sha256, "accepted")
        elif isinstance(data, RolledBackData):
            self._decided[data.candidate] = (self._sources.get(data.candidate, ""), data.verdict)
        # Without a verdict it was interrupted: the result may be behind the decisions.
        self._finished = isinstance(data, FinishedData) and data.verdict is not None

    def _compare(
        self, line: int, name: str, digest: str, digest_of: Callable[[Path], str], words: tuple[str, str]
    ) -> None:
        what, expected = words
        path = (self.root / name).resolve()
        self.checked += 1
        try:
            if not path.is_relative_to(self.root.resolve()):
                self.problems.append((line, f"{name} lies outside of the session"))
            elif digest_of(path) != digest:
                self.problems.append((line, f"{what}{name} is not {expected}"))
        except OSError as error:
            self.problems.append((line, f"{what}{name} can't be read: {error.strerror}"))

    def end(self, line: int) -> None:
        """Compare the result with the decisions; of a session under way it may be behind."""
        self.checked += 1
        try:
            document = OptimizeDocument.model_validate_json((self.root / DOCUMENT).read_bytes())
        except (OSError, ValidationError) as error:
            self.problems.append((line, f"{DOCUMENT} can't be read: {type(error).__name__}"))
            return
        stated = {c.number: (c.source_sha256, c.judgement.verdict) for c in document.candidates}
        different = [n for n, fact in stated.items() if self._decided.get(n, fact) != fact]
        # An interrupted session writes candidates without a decision; none of them is an accepted one.
        different += [
            n for n, (_, verdict) in stated.items() if n not in self._decided and verdict == "accepted"
        ]
        missing = [n for n in self._decided if n not in stated and self._finished]
        for number in sorted((*different, *missing)):
            self.problems.append((line, f"{DOCUMENT} says something else of candidate {number}"))


def digest_of_recording(directory: Path) -> str:
    """A hash over the names and contents of all files below ``directory``, whatever their order on the disk.

    Of a link its target's name counts. Raises ``OSError``.
    """
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            content = b"link " + os.fsencode(path.readlink())
        elif path.is_file():
            content = sha256_of(path).encode()
        else:
            continue
        digest.update(b"%s\0%s\n" % (os.fsencode(path.relative_to(directory)), content))
    if not directory.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory))
    return digest.hexdigest()


def verify_session_files(root: Path) -> SessionFiles:
    """Raises as ``read_ledger`` does. Nothing is checked where the ledger lies alone."""
    files = SessionFiles(root)
    if not (root / ORIGINAL).is_dir():
        return files
    line = 0
    for entry in read_ledger(root / LEDGER):
        line = entry.sequence
        files.take(line, CONTRACTS[entry.event].model_validate(entry.data))
    files.end(line)
    return files


def _named(data: Part) -> Iterator[tuple[str, str]]:
    """Files with their hashes, relative to the session's directory."""
    if isinstance(data, SessionStartedData):
        yield f"{ORIGINAL}/{data.source.rpartition('/')[2]}", data.source_sha256
    elif isinstance(data, ProposedData) and data.source is not None:
        yield data.source, data.source_sha256
    elif isinstance(data, BaselineProfiledData | BuiltData) and data.build is not None:
        yield from _program(data.build)


def _program(build: BuildPart) -> Iterator[tuple[str, str]]:
    if build.binary is not None and build.binary_sha256 is not None:
        yield build.binary, build.binary_sha256
