"""Output names: the keys of rocprofv3 in -d and -o, and the files that come of them.

Keys are written `%key%` or `{key}`, a few have short forms, and environment variables are reached by
`%env{X}%`, `$ENV{X}` or `%q{X}` (docs/reference/formats.md, 4.3).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["NameKeys", "expand_name", "output_file"]

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
