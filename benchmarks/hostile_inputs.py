"""What inputs that were made to hurt cost: seconds, memory, exit code and the line that was said.

    python benchmarks/hostile_inputs.py [--only PART] [--small] [--keep DIR]

Every input is read by ``rpl analyze`` in a process of its own. ``tests/hostile/test_budgets.py`` reads the
same inputs, small, under limits of memory and processor time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    from rpl_testkit.fixtures import RocpdBuilder

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


# --- JSON --------------------------------------------------------------------------------------------


def _document(dispatches: int = 2, **changes: Any) -> dict[str, Any]:
    """A results JSON of one process, as a value."""
    records = [
        {
            "kind": 1,
            "operation": 1,
            "correlation_id": {"internal": number},
            "start_timestamp": 1000 * number,
            "end_timestamp": 1000 * number + 500,
            "dispatch_info": {
                "agent_id": {"handle": 900},
                "queue_id": {"handle": 1},
                "kernel_id": 1,
                "dispatch_id": number,
                "workgroup_size": {"x": 64, "y": 1, "z": 1},
                "grid_size": {"x": 64, "y": 1, "z": 1},
            },
            "stream_id": {"handle": 0},
        }
        for number in range(1, dispatches + 1)
    ]
    return {
        "metadata": {"pid": 4242, "init_time": 1, "fini_time": 10**15, "command": ["./app"]},
        "agents": [{"id": {"handle": 900}, "type": 2, "name": "gfx942", "node_id": 2, "cu_count": 304}],
        "strings": {"buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "KERNEL_DISPATCH"}]},
        "kernel_symbols": [{"kernel_id": 1, "kernel_name": "k.kd", "formatted_kernel_name": "k"}],
        "buffer_records": {"kernel_dispatch": records},
        **changes,
    }


def _json(folder: Path, process: dict[str, Any], hole: str = "") -> Path:
    """Written with ``hole`` where a value is ``"HOLE"``."""
    path = folder / "1_results.json"
    before, _, behind = json.dumps({"rocprofiler-sdk-tool": [process]}).partition('"HOLE"')
    with path.open("w") as file:
        file.write(before)
        file.write(hole)
        file.write(behind)
    return path


def _deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def _long_integer(folder: Path, size: int) -> Path:
    process = _document()
    process["buffer_records"]["kernel_dispatch"][0]["thread_id"] = "HOLE"
    return _json(folder, process, "7" * size)


def _deep_unknown(folder: Path, size: int) -> Path:
    return _json(folder, _document(unknown="HOLE"), _deep(size))


def _deep_metadata(folder: Path, size: int) -> Path:
    return _json(folder, _document(metadata={"pid": 1, "rpl_origin": "HOLE"}), _deep(size))


def _deep_agent(folder: Path, size: int) -> Path:
    return _json(folder, _document(agents=[{"id": {"handle": 900}, "type": 2, "name": "HOLE"}]), _deep(size))


def _deep_operand(folder: Path, size: int) -> Path:
    process = _document()
    call = {"kind": 1, "operation": 0, "args": [{"name": "stream", "value": "HOLE"}]}
    process["buffer_records"]["hip_api"] = [call]
    return _json(folder, process, _deep(size))


def _deep_mark(folder: Path, size: int) -> Path:
    """The mark of origin beside a set of CSV tables."""
    path = _kernel_trace(folder, ["k"])
    path.with_name("7_rpl_origin.json").write_text('{"rpl_origin": ' + _deep(size) + "}")
    return folder


def _long_string(folder: Path, size: int) -> Path:
    return _json(folder, _document(unknown="HOLE"), '"' + "x" * size + '"')


def _long_number(folder: Path, size: int) -> Path:
    return _json(folder, _document(unknown="HOLE"), "1" * size + ".5")


def _small_values(folder: Path, size: int) -> Path:
    """One value of many small ones, which take more memory than text."""
    return _json(folder, _document(agents=["HOLE"]), "[" + "[]," * (size // 3) + "0]")


def _large_document(folder: Path, size: int) -> Path:
    """A sound document of ``size`` bytes."""
    records = json.dumps(_document(1000)["buffer_records"]["kernel_dispatch"])[1:-1] + ","
    process = _document()
    process["buffer_records"]["kernel_dispatch"].append("HOLE")
    return _json(folder, process, records * (size // len(records)) + "{}")


def _endless_clock(folder: Path, _size: int) -> Path:
    agent = {"id": {"handle": 900}, "type": 2, "name": "gfx942", "node_id": 2}
    facts = dict.fromkeys(("cu_count", "max_engine_clk_fcompute", "wave_front_size", "lds_size_in_kb"), 1e308)
    facts |= dict.fromkeys(("simd_per_cu", "max_waves_per_simd", "num_xcc", "device_id"), 10**300)
    facts["mem_banks"] = [{"heap_type": 1, "size_in_bytes": 1e308}]
    return _json(folder, _document(agents=[agent | facts]))


def _late_end(folder: Path, size: int) -> Path:
    from rpl_testkit.fixtures import RocpdBuilder

    return RocpdBuilder(folder)([("k", 1, 2), ("k", size, size + 1), ("j", 5, 6)])


# --- CSV and gzip ------------------------------------------------------------------------------------

_COLUMNS = (
    "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,"
    "Start_Timestamp,End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,"
    "Grid_Size_X,Grid_Size_Y,Grid_Size_Z\n"
)


def _row(number: int, name: str) -> str:
    return (
        f"KERNEL_DISPATCH,Agent 2,1,0,7,{number},1,{name},{number},{1000 * number},{1000 * number + 500},"
        "64,1,1,256,1,1\n"
    )


def _kernel_trace(folder: Path, names: Iterable[str]) -> Path:
    path = folder / "7_kernel_trace.csv"
    with path.open("w") as file:
        file.write(_COLUMNS)
        file.writelines(_row(number, name) for number, name in enumerate(names, 1))
    return path


def _distinct_kernels(folder: Path, size: int) -> Path:
    return _kernel_trace(folder, (f"kernel_{number}" for number in range(size)))


def _long_header(folder: Path, size: int) -> Path:
    path = folder / "7_kernel_trace.csv"
    path.write_text(_COLUMNS.rstrip() + "," + "x" * size + "\n" + _row(1, "k"))
    return path


def _long_line(folder: Path, size: int) -> Path:
    path = _kernel_trace(folder, ["k"])
    with path.open("a") as file:
        file.write("y" * size)
    return path


def _sparse_table(folder: Path, size: int) -> Path:
    path = _kernel_trace(folder, ["k"])
    os.truncate(path, size)
    return path


def _empty_members(folder: Path, size: int) -> Path:
    path = folder / "7_kernel_trace.csv.gz"
    content = gzip.compress((_COLUMNS + _row(1, "k")).encode())
    path.write_bytes(content + gzip.compress(b"") * (size // 20))
    return path


def _bomb(folder: Path, size: int) -> Path:
    path = folder / "7_kernel_trace.csv.gz"
    row = _row(1, "k").encode() * 10_000
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(_COLUMNS.encode())
        for _ in range(size // len(row)):
            file.write(row)
    return path


def _bomb_of_json(folder: Path, size: int) -> Path:
    path = folder / "1_results.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"rocprofiler-sdk-tool": [' + b" " * size)
    return path


def _cut_gzip(folder: Path, _size: int) -> Path:
    path = folder / "7_kernel_trace.csv.gz"
    content = gzip.compress((_COLUMNS + "".join(_row(i, f"k{i * 7919 % 977}") for i in range(999))).encode())
    path.write_bytes(content[: len(content) // 2])
    return path


def _endless_kernels(folder: Path, size: int) -> Path:
    """Every kernel takes a time that a clock could show; together they take more than 64 bits can."""
    from rpl_testkit.fixtures import RocpdBuilder

    return RocpdBuilder(folder)([("k", number, (1 << 62) - number) for number in range(1, size + 1)])


CASES = {
    "times: a sum of durations beyond 64 bits": Case(_endless_kernels, 3, 3, 65, "add up"),
    "json: an integer of many digits": Case(_long_integer, 4301, 50 * MEGABYTE, 65, "JSON"),
    "json: a deep value that nobody reads": Case(_deep_unknown, 40_000, 40_000, 65, "deep"),
    "json: deep metadata": Case(_deep_metadata, 5000, 5000, 65, "deep"),
    "json: a deep agent": Case(_deep_agent, 5000, 5000, 65, "deep"),
    "json: a less deep agent": Case(_deep_agent, 930, 930, 0),
    "json: a deep operand": Case(_deep_operand, 5000, 5000, 65, "deep"),
    "json: a deep mark of origin": Case(_deep_mark, 1900, 1900, 0, "unknown"),
    "json: a long string": Case(_long_string, 40 * MEGABYTE, 200 * MEGABYTE, 65, "JSON"),
    "json: a long number": Case(_long_number, 40 * MEGABYTE, 200 * MEGABYTE, 65, "JSON"),
    "json: one value of small ones": Case(_small_values, 40 * MEGABYTE, 200 * MEGABYTE, 65, "JSON"),
    "json: a sound large document": Case(_large_document, MEGABYTE, 600 * MEGABYTE, 0),
    "agents: numbers beyond any GPU": Case(_endless_clock, 1, 1, 0),
    "times: near the end of 62 bits": Case(_late_end, (1 << 62) - 2, (1 << 62) - 2, 0),
    "csv: distinct kernels": Case(_distinct_kernels, 2000, 100_000, 0),
    "csv: too many kernels": Case(_distinct_kernels, 100_001, 1_000_000, 65, "more than 100,000 kernels"),
    "csv: a long header": Case(_long_header, 40 * MEGABYTE, 100 * MEGABYTE, 65, "no line of column names"),
    "csv: a long line": Case(_long_line, 40 * MEGABYTE, 200 * MEGABYTE, 65, "8 MiB"),
    "csv: a sparse file": Case(_sparse_table, 64 << 30, 64 << 30, 65, "hole"),
    "gzip: empty members": Case(_empty_members, 10 * MEGABYTE, 100 * MEGABYTE, 65, "tiny parts"),
    "gzip: a bomb": Case(_bomb, 80 * MEGABYTE, 3000 * MEGABYTE, 65, "unpacks to more"),
    "gzip: a bomb of JSON": Case(_bomb_of_json, 80 * MEGABYTE, 3000 * MEGABYTE, 65, "unpacks to more"),
    "gzip: cut off": Case(_cut_gzip, 1, 1, 65, "unpack"),
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
