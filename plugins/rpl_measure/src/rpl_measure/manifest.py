"""``comparison.json``: the order in which an interleaved comparison ran, written after every run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

import attrs
from pydantic import Field, ValidationError

from rpl_core import __version__
from rpl_core.contracts.common import Part
from rpl_core.errors import BadDataError
from rpl_core.files import read_regular, refuse_countless, write_atomic
from rpl_core.text import encodable, masked_words

FILE_NAME = "comparison.json"
#: Folders of the two run directories, and of the discarded first runs.
FOLDERS = {"base": "base", "new": "new"}
WARM_UP_FOLDERS = {"base": "warm-up-base", "new": "warm-up-new"}
#: Number of a warm-up "pair".
WARM_UP = -1
_MAX_BYTES = 16 << 20


class Observation(Part):
    """One process run of an interleaved comparison, in the order of execution."""

    pair: int  # from 0; -1 for the discarded warm-up
    side: Literal["base", "new"]
    run: str  # name of the pass in the side's run directory
    complete: bool


class ComparisonManifest(Part):
    """``comparison.json``: what an interleaved comparison ran, kept true at every moment."""

    schema_version: str = Field(default="1.0", pattern=r"^1\.[0-9]+$")
    tool_version: str
    state: Literal["running", "complete", "incomplete"]
    reason: str | None = None
    created_utc: str
    base_command: tuple[str, ...]
    new_command: tuple[str, ...]
    looks: tuple[int, ...]
    seed: int | None = None  # of the order of the pairs; null: base and new took turns (older versions)
    observations: tuple[Observation, ...] = ()


@attrs.define
class ComparisonLog:
    """A comparison in progress; every change is on disk at once."""

    directory: Path
    manifest: ComparisonManifest

    @classmethod
    def create(
        cls,
        directory: Path,
        base: tuple[str, ...],
        new: tuple[str, ...],
        looks: tuple[int, ...],
        *,
        seed: int,
    ) -> ComparisonLog:
        manifest = ComparisonManifest(
            tool_version=__version__,
            state="running",
            created_utc=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            base_command=tuple(map(encodable, masked_words(base))),
            new_command=tuple(map(encodable, masked_words(new))),
            looks=looks,
            seed=seed,
        )
        log = cls(directory, manifest)
        log._save()
        return log

    @classmethod
    def reopen(cls, directory: Path) -> ComparisonLog:
        """Go on with a comparison that was begun here. Raises ``BadDataError``."""
        log = cls(directory, read_manifest(directory))
        log.manifest = log.manifest.model_copy(update={"state": "running", "reason": None})
        log._save()
        return log

    def add(self, observation: Observation) -> None:
        """Note one finished or failed run."""
        observations = (*self.manifest.observations, observation)
        self.manifest = self.manifest.model_copy(update={"observations": observations})
        self._save()

    def finish(self, reason: str | None) -> None:
        """Mark the comparison complete, or incomplete with ``reason``."""
        state = "complete" if reason is None else "incomplete"
        self.manifest = self.manifest.model_copy(update={"state": state, "reason": reason})
        self._save()

    def _save(self) -> None:
        write_atomic(self.directory / FILE_NAME, self.manifest.model_dump_json(indent=2) + "\n")


def complete_pairs(manifest: ComparisonManifest) -> tuple[Mapping[str, str], ...]:
    """Names of the runs of each complete pair, by side, in order. The last run of a side counts."""
    pairs: dict[int, dict[str, str]] = {}
    for observation in manifest.observations:
        if observation.pair >= 0 and observation.complete:
            pairs.setdefault(observation.pair, {})[observation.side] = observation.run
    return tuple(pairs[pair] for pair in sorted(pairs) if len(pairs[pair]) == len(FOLDERS))


def repeated_pairs(manifest: ComparisonManifest) -> int:
    """How often a pair was begun again because an interruption hit it."""
    begun = Counter(
        (observation.pair, observation.side) for observation in manifest.observations if observation.pair >= 0
    )
    attempts: dict[int, int] = {}
    for (pair, _), times in begun.items():
        attempts[pair] = max(attempts.get(pair, 0), times)
    return sum(times - 1 for times in attempts.values())


def is_comparison_directory(path: Path) -> bool:
    return (path / FILE_NAME).is_file()


def read_manifest(directory: Path) -> ComparisonManifest:
    """The manifest of ``directory``; it is data from elsewhere. Raises ``BadDataError``."""
    path = directory / FILE_NAME
    content = read_regular(path, _MAX_BYTES)
    refuse_countless(content, path)
    try:
        return ComparisonManifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise BadDataError(
            f"{path} is no manifest of a comparison that this version reads: {place}: {first['msg']}",
            next_step="compare its run directories: `rpl compare DIR/base DIR/new`",
        ) from None
