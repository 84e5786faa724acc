"""The result files of one process: their names, announcements, planned damage."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from rpl_core.model.metric import ORIGIN_MARK
from rpl_core.values import frozen
from rpl_testkit.rocpd_writer import write_rocpd
from rpl_testkit.rocpd_writer.rows import RocpdContents

if TYPE_CHECKING:
    from rpl_testkit.rocprofv3_standin.emulated_rocm import EmulatedRocm
    from rpl_testkit.rocprofv3_standin.messages import Log
    from rpl_testkit.rocprofv3_standin.outputs.pc_samples import PcSampleSet
    from rpl_testkit.rocprofv3_standin.request.passes import Pass


DEFAULT_NAME: Final = "%hostname%/%pid%"
_SHORT: Final = {"%h": "hostname", "%p": "pid", "%j": "job", "%r": "rank", "%s": "size"}
_ENVIRONMENT: Final = re.compile(r"%env\{([^}]*)\}%|\$ENV\{([^}]*)\}|%q\{([^}]*)\}")


@frozen
class NameKeys:
    """What the keys stand for in one process."""

    values: Mapping[str, str]
    environment: Mapping[str, str]

    @classmethod
    def of_process(
        cls,
        pid: int,
        ids: tuple[int, int, int],
        application: Sequence[str],
        environment: Mapping[str, str],
        launched: str = "",
    ) -> NameKeys:
        """Collect keys for process `pid`; `ids` are parent, group and session, `launched` is `DATE TIME`."""
        parent, group, session = ids
        words = [word.strip().replace("/", "_").lstrip("._") for word in application]
        launch_date, _, launch_time = launched.partition(" ")
        rank = environment.get("OMPI_COMM_WORLD_RANK", "0")
        values = {
            "hostname": os.uname().nodename,
            "pid": str(pid),
            "ppid": str(parent),
            "pgid": str(group),
            "psid": str(session),
            "psize": "1",
            "job": environment.get("SLURM_JOB_ID", "0"),
            "rank": environment.get("SLURM_PROCID", rank),
            "size": environment.get("OMPI_COMM_WORLD_SIZE", "1"),
            "nid": environment.get("SLURM_PROCID", environment.get("OMPI_COMM_WORLD_RANK", str(pid))),
            "cwd": str(Path.cwd()),
            "launch_date": launch_date,
            "launch_time": launch_time,
            "argv": "_".join(words),
            "args": "_".join(words[1:]),
            "tag": Path(application[0]).name if application else "",
            **{f"arg{i}": word for i, word in enumerate(words)},
        }
        return cls(values, environment)


def expand_name(pattern: str, keys: NameKeys) -> str:
    """Replace all keys in `pattern`; an environment variable that is not set becomes nothing."""
    text = _ENVIRONMENT.sub(
        lambda match: keys.environment.get(next(filter(None, match.groups()), ""), ""), pattern
    )
    for key, value in keys.values.items():
        text = text.replace(f"%{key}%", value).replace(f"{{{key}}}", value)
    for short, key in _SHORT.items():
        text = text.replace(short, keys.values[key])
    return text


def output_file(directory: str | None, name: str | None, ending: str, keys: NameKeys) -> Path:
    """Return DIR/NAME_ending with all keys replaced; neither has to exist."""
    folder = expand_name(directory or str(Path.cwd()), keys)
    return Path(folder) / f"{expand_name(name or DEFAULT_NAME, keys)}_{ending}"


# Write the result files of one process: names, announcements, planned damage.
#
# An existing file of the same name is replaced, whoever wrote it (docs/reference/formats.md, 4.3).

_ORIGIN_NOTE: Final = {ORIGIN_MARK: "synthetic", "written_by": "rpl stand-in for rocprofv3"}


class DiskFullError(Exception):
    """The planned failure of a full disk happened; the real tool aborts here."""


class NotEmulatedError(Exception):
    """A format that only the real profiler can write was asked for."""


def write_outputs(
    contents: RocpdContents,
    one: Pass,
    keys: NameKeys,
    release: EmulatedRocm,
    log: Log,
    damage: Mapping[str, str],
    samples: PcSampleSet | None = None,
) -> None:
    """Write every requested format. OSError when a place can't be written."""
    for binary in ("pftrace", "otf2"):
        if binary in one.formats:
            raise NotEmulatedError(f"rpl's stand-in can't write {binary}; ask for rocpd, csv or json")
    if "empty" in damage:
        contents = attrs.evolve(contents, dispatches=(), copies=(), regions=(), counters=())
    writer = _Files(one, keys, log, damage)
    kernel_trace = "kernel_trace" in one.traces
    # Each format's writer is imported on demand: most of a run's time is the start of the program.
    if "csv" in one.formats:
        from rpl_testkit.rocprofv3_standin.outputs.csv_files import csv_files, csv_text

        for ending, text in csv_files(contents, wide=release.wide_csv, kernel_trace=kernel_trace):
            writer.text(ending, text)
        if samples is not None and samples.samples:
            writer.text(f"pc_sampling_{samples.method}.csv", csv_text(list(samples.csv_rows())))
        writer.text(f"{ORIGIN_MARK}.json", json.dumps(_ORIGIN_NOTE) + "\n", announced=False)
    if "json" in one.formats:
        from rpl_testkit.rocprofv3_standin.outputs.json_file import json_text

        writer.text("results.json", json_text(contents, kernel_trace=kernel_trace, samples=samples))
    if "rocpd" in one.formats and release.schema_version:
        writer.database(contents, release.schema_version)


@frozen
class _Files:
    one: Pass
    keys: NameKeys
    log: Log
    damage: Mapping[str, str]

    def _prepare(self, ending: str) -> Path:
        path = output_file(self.one.directory, self.one.name, ending, self.keys)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def text(self, ending: str, text: str, *, announced: bool = True) -> None:
        path = self._prepare(ending)
        if announced:
            self.log.opened(path)
        cut = len(text) // 2 if {"truncated", "disk_full"} & self.damage.keys() and announced else len(text)
        path.write_text(text[:cut], encoding="utf-8")

    def database(self, contents: RocpdContents, schema_version: str) -> None:
        self.log.writing_database(contents.process.pid, contents.node.node_id)
        path = self._prepare("results.db")
        self.log.opened(path, contents.guid)
        if "disk_full" in self.damage:
            path.write_bytes(b"SQLite format 3\0")
            self.log.sqlite_failure(13, "database or disk is full")
            raise DiskFullError
        write_rocpd(path, contents, synthetic=True, schema_version=schema_version)
        if "truncated" in self.damage:
            os.truncate(path, path.stat().st_size // 2)
