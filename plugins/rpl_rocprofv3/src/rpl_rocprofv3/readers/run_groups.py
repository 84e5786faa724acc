"""Which files are processes of one execution: same folder, overlapping lifetimes.

Profilers write one file per process. Ranks of one run live at the same time, repeated runs do not, so
lifetimes on one clock tell them apart; so does a process id that occurs twice. Clocks of different nodes
can't be compared: nodes are joined only when each has exactly one group. Files whose lifetime is unknown
stay alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["RecordedFile", "execution_groups", "repeated_files"]


@frozen
class RecordedFile:
    """When and where the processes of a file lived, and by which guids they are known."""

    path: Path
    node: str
    hostname: str | None
    begin_ns: int | None
    end_ns: int | None
    guids: frozenset[str] = frozenset()
    pids: frozenset[int] = frozenset()

    @property
    def folder(self) -> Path:
        """The folder of the run: the default layout puts a folder per host below it."""
        parent = self.path.parent
        return parent.parent if self.hostname and parent.name == self.hostname else parent


def execution_groups(files: Sequence[RecordedFile]) -> list[list[RecordedFile]]:
    """Files grouped by execution, each group and the groups in order of path."""
    groups: list[list[RecordedFile]] = []
    by_folder: dict[Path, list[RecordedFile]] = {}
    for file in files:
        by_folder.setdefault(file.folder, []).append(file)
    for _, here in sorted(by_folder.items()):
        per_node = [
            _split_by_pid(_overlapping([file for file in here if file.node == node]))
            for node in sorted({file.node for file in here})
        ]
        if all(len(clusters) == 1 for clusters in per_node) and all(_has_lifetime(file) for file in here):
            groups.append([file for clusters in per_node for file in clusters[0]])
        else:
            groups.extend(cluster for clusters in per_node for cluster in clusters)
    return sorted(
        (sorted(group, key=lambda file: file.path) for group in groups), key=lambda group: group[0].path
    )


def _has_lifetime(file: RecordedFile) -> bool:
    return file.begin_ns is not None and file.end_ns is not None


def _overlapping(files: Sequence[RecordedFile]) -> list[list[RecordedFile]]:
    """Clusters of files whose lifetimes are connected by overlaps."""
    clusters: list[list[RecordedFile]] = [[file] for file in files if not _has_lifetime(file)]
    latest = -1
    for file in sorted((f for f in files if _has_lifetime(f)), key=lambda f: (f.begin_ns or 0, f.path)):
        if file.begin_ns is not None and file.begin_ns < latest:
            clusters[-1].append(file)
        else:
            clusters.append([file])
        latest = max(latest, file.end_ns or 0)
    return clusters


def _split_by_pid(clusters: list[list[RecordedFile]]) -> list[list[RecordedFile]]:
    """Two files of one process id are two runs, whatever their times say."""
    groups: list[list[RecordedFile]] = []
    for cluster in clusters:
        pids = [pid for file in cluster for pid in file.pids]
        groups += [cluster] if len(pids) == len(set(pids)) else [[file] for file in cluster]
    return groups


def repeated_files(files: Sequence[RecordedFile]) -> dict[Path, Path]:
    """Files whose processes are all in another file too: copies, and sources of a merged database."""
    owner: dict[str, Path] = {}
    repeated: dict[Path, Path] = {}
    for file in sorted(files, key=lambda f: (-len(f.guids), f.path)):
        if file.guids and file.guids <= owner.keys():
            repeated[file.path] = owner[min(file.guids)]
        for guid in file.guids:
            owner.setdefault(guid, file.path)
    return repeated
