"""What inputs that were made to hurt cost: seconds, memory, exit code and the line that was said.

    python benchmarks/hostile_inputs.py [--only PART] [--small] [--keep DIR]

Every input is read by ``rpl analyze`` in a process of its own. ``tests/hostile/test_budgets.py`` reads the
same inputs, small, under limits of memory and processor time.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

START = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Case:
    """``make(folder, size)`` writes the input and returns its path; ``exit_code`` is what it ends with."""

    make: Callable[[Path, int], Path]
    small: int
    full: int
    exit_code: int
    says: str = ""


@dataclass(frozen=True)
class Ending:
    """How one command ended."""

    exit_code: int
    seconds: float
    megabytes: float
    out: str
    err: str


def run_limited(
    words: list[str | Path], *, cpu_s: int | None = None, memory: int | None = None, cwd: Path | None = None
) -> Ending:
    """``rpl`` with ``words``, ended by the system beyond ``cpu_s`` or ``memory`` bytes of address space."""

    def limit() -> None:
        if cpu_s is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            [sys.executable, "-c", START, *map(str, words)],
            stdout=out,
            stderr=err,
            preexec_fn=limit,
            cwd=cwd,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Ending(
            process.returncode, time.monotonic() - begin, usage.ru_maxrss / 1000, out.read(), err.read()
        )


# --- SQLite ------------------------------------------------------------------------------------------


def _rocpd(folder: Path, kernels: list[str] | None = None) -> Path:
    from rpl_testkit.recordings import RocpdBuilder

    names = kernels or ["gemm", "relu"]
    return RocpdBuilder(folder)([(name, 1000 * i, 1000 * i + 500) for i, name in enumerate(names, 1)])


def _table(database: sqlite3.Connection, start: str) -> str:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    (name,) = [row[0] for row in rows if row[0].startswith(start)]
    return str(name)


def _computed(folder: Path, expression: str, before: str = "") -> Path:
    """A recording whose kernel names are computed by a view."""
    path = _rocpd(folder)
    with closing(sqlite3.connect(path)) as database:
        table = _table(database, "rocpd_info_kernel_symbol_")
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        shown = ", ".join(f'{expression} AS "{c}"' if c == "display_name" else f'"{c}"' for c in columns)
        database.executescript(
            f'ALTER TABLE "{table}" RENAME TO symbols; DROP VIEW rocpd_info_kernel_symbol; {before}'
            f"CREATE VIEW rocpd_info_kernel_symbol AS SELECT {shown} FROM symbols"
        )
    return path


def _slow_function(folder: Path, size: int) -> Path:
    """One call that searches for hours: it can't be interrupted."""
    blob = f"hex(zeroblob({size}))"
    return _computed(folder, f"instr({blob} || {blob}, {blob} || 'x')")


def _slow_pattern(folder: Path, size: int) -> Path:
    pattern = "%a" * 20 + "b"
    return _computed(folder, f"(replace(hex(zeroblob({size})), '0', 'a') LIKE '{pattern}')")


def _computed_name(folder: Path, size: int) -> Path:
    return _computed(folder, f"hex(zeroblob({size // 2}))")


def _doubled_name(folder: Path, size: int) -> Path:
    """Texts put together without any function: every view doubles that of the one below."""
    views = "CREATE VIEW v0 AS SELECT 'kernel' AS t; "
    for number in range(1, size):
        views += f"CREATE VIEW v{number} AS SELECT t || t AS t FROM v{number - 1}; "
    return _computed(folder, f"(SELECT t FROM v{size - 1})", views)


def _doubled_rows(folder: Path, size: int) -> Path:
    """Views of views: to compile the last one takes 2 to the power of ``size`` steps."""
    path = _rocpd(folder)
    with closing(sqlite3.connect(path)) as database:
        table = _table(database, "rocpd_info_kernel_symbol_")
        views = f'ALTER TABLE "{table}" RENAME TO v0; DROP VIEW rocpd_info_kernel_symbol; '
        for number in range(1, size):
            below = f"SELECT * FROM v{number - 1}"
            views += f"CREATE VIEW v{number} AS {below} UNION ALL {below}; "
        database.executescript(views + f"CREATE VIEW rocpd_info_kernel_symbol AS SELECT * FROM v{size - 1}")
    return path


def _generated_column(folder: Path, size: int) -> Path:
    path = _rocpd(folder)
    with closing(sqlite3.connect(path)) as database:
        table = _table(database, "rocpd_string_")
        blob = f"hex(zeroblob({size}))"
        database.executescript(
            f'DROP TABLE "{table}"; CREATE TABLE strings (number INTEGER PRIMARY KEY, '
            f"guid TEXT, string TEXT); INSERT INTO strings (guid, string) VALUES ('', 'x'); "
            f"ALTER TABLE strings ADD COLUMN id AS (number + instr({blob} || {blob}, {blob} || 'x')); "
            f"DROP VIEW rocpd_string; CREATE VIEW rocpd_string AS SELECT * FROM strings"
        )
    return path


def _endless_view(folder: Path, _size: int) -> Path:
    path = _rocpd(folder)
    with closing(sqlite3.connect(path)) as database:
        table = _table(database, "rocpd_kernel_dispatch_")
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        shown = ", ".join(f'n + 1 AS "{c}"' for c in columns if c != "guid")
        database.executescript(
            f'DROP TABLE "{table}"; DROP VIEW rocpd_kernel_dispatch; CREATE VIEW rocpd_kernel_dispatch AS '
            f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n FROM c) SELECT {shown} FROM c WHERE n < 0"
        )
    return path


def _long_names(folder: Path, size: int) -> Path:
    """``size`` kernels with names of 30 MB each."""
    path = _rocpd(folder, [f"kernel_{number}" for number in range(size)])
    with closing(sqlite3.connect(path)) as database:
        table = _table(database, "rocpd_info_kernel_symbol_")
        database.execute(f'UPDATE "{table}" SET display_name = hex(zeroblob({15 * MEGABYTE})) || id')
        database.commit()
    return path


def _super_journal(folder: Path, _size: int) -> Path:
    """A leftover journal that names another file: SQLite deletes that file once it rolled back."""
    victim = folder / "precious.txt"
    victim.write_text("of the user")
    path = _rocpd(folder)
    name = str(victim).encode()
    page, record = 4096, bytearray()
    magic = bytes.fromhex("d9d505f920a163d7")
    size = path.stat().st_size // page
    header = magic + (0).to_bytes(4, "big") + b"\1\2\3\4" + size.to_bytes(4, "big")
    record += (header + (512).to_bytes(4, "big") + page.to_bytes(4, "big")).ljust(512, b"\0")
    record += ((1 << 30) // page + 1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
    record += (sum(name) & 0xFFFFFFFF).to_bytes(4, "big") + magic
    path.with_name(f"{path.name}-journal").write_bytes(record)
    return path


def _large_journal(folder: Path, size: int) -> Path:
    """A journal that says that the database had ``size`` pages: rolling back makes it as large."""
    path = _rocpd(folder)
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + (0).to_bytes(4, "big") + b"\1\2\3\4" + size.to_bytes(4, "big")
    header += (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")
    path.with_name(f"{path.name}-journal").write_bytes(header.ljust(512, b"\0"))
    return path


def _sparse_database(folder: Path, size: int) -> Path:
    path = _rocpd(folder)
    os.truncate(path, size)
    return path


def _endless_kernels(folder: Path, size: int) -> Path:
    """Every kernel takes a time that a clock could show; together they take more than 64 bits can."""
    from rpl_testkit.recordings import RocpdBuilder

    return RocpdBuilder(folder)([("k", number, (1 << 62) - number) for number in range(1, size + 1)])


CASES = {
    "times: a sum of durations beyond 64 bits": Case(_endless_kernels, 3, 3, 65, "add up"),
    "sqlite: a function that never ends": Case(_slow_function, 1_000_000, 400_000_000, 65, "computes"),
    "sqlite: a pattern that never ends": Case(_slow_pattern, 100_000, 200_000_000, 65, "computes"),
    "sqlite: a computed name": Case(_computed_name, 900 * MEGABYTE, 900 * MEGABYTE, 65, "computes"),
    "sqlite: a name out of doubled texts": Case(_doubled_name, 28, 28, 65, "computes"),
    "sqlite: rows out of doubled views": Case(_doubled_rows, 24, 40, 65, "computes"),
    "sqlite: a generated column": Case(_generated_column, 1_000_000, 100_000_000, 65, "computes"),
    "sqlite: a view that never ends": Case(_endless_view, 1, 1, 65, "computes"),
    "sqlite: names of 30 MB": Case(_long_names, 2, 20, 65, "30,000,00"),
    "sqlite: a super-journal": Case(_super_journal, 1, 1, 65, "several databases"),
    "sqlite: a journal of a large database": Case(_large_journal, 1 << 20, 1 << 28, 65, "would grow"),
    "sqlite: a sparse file": Case(_sparse_database, 64 << 30, 64 << 30, 65, "hole"),
}


def main() -> int:
    """Make every input, read it, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names of the inputs")
    parser.add_argument("--small", action="store_true", help="the sizes of the tests")
    parser.add_argument("--keep", type=Path, help="a folder in which the inputs stay")
    parser.add_argument("--cpu", type=int, default=300, help="seconds of processor time (default 300)")
    options = parser.parse_args()
    wrong = 0
    for name, case in CASES.items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory(dir=options.keep) as place:
            folder = Path(place)
            path = case.make(folder, case.small if options.small else case.full)
            ending = run_limited(
                ["analyze", path, "-o", folder / "out", "--device", "gfx942"], cpu_s=options.cpu
            )
            size = sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
        good = ending.exit_code == case.exit_code and re.search(case.says, ending.err) is not None
        wrong += not good
        last = ending.err.strip().splitlines()[-1:] or [""]
        print(
            f"{'ok   ' if good else 'WRONG'} {name}: {size / MEGABYTE:.0f} MB, exit {ending.exit_code}, "
            f"{ending.seconds:.1f} s, {ending.megabytes:.0f} MB: {last[0][:200]}",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
