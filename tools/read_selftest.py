"""Archives of ``rpl selftest`` as rows of docs/validation.md.

    python tools/read_selftest.py ARCHIVE...

Prints one table: a row for each check of each archive. What others sent is data: it is read within bounds,
unpacked to no disk, and its texts can't end a cell. Exit 65: an archive is none; the others are still read.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import ExitCode, RplError
from rpl_core.text import readable
from rpl_selftest.kept import document_in, read_archive

if TYPE_CHECKING:
    from rpl_selftest.check import SelftestDocument

HEAD = ("GPU", "rpl", "date", "origin", "check", "outcome", "expected", "found", "rests on it")
_LONGEST_CELL = 300
#: What Markdown or HTML would read as more than text.
_MARKS = re.compile(r"[\\`*_{}\[\]<>|#~!&$^]")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("archives", type=Path, nargs="+", metavar="ARCHIVE")
    status = ExitCode.OK
    print(_row(HEAD), _row(["---"] * len(HEAD)), sep="\n")
    for path in parser.parse_args(arguments).archives:
        try:
            document = document_in(read_archive(path), path)
        except RplError as error:
            print(error.one_line(), file=sys.stderr)
            status = ExitCode.BAD_DATA
            continue
        print(*rows(document), sep="\n")
    return int(status)


def rows(document: SelftestDocument) -> Iterator[str]:
    """Only what was measured is called confirmed alone: every other outcome carries its origin."""
    origin = document.origin or "nothing recorded"
    about = (document.product or document.device or "not known", document.rpl_version, document.date, origin)
    for line in document.lines:
        found = (line.check, line.outcome + document.label, line.expected, line.found, line.document)
        yield _row([cell(text) for text in (*about, *found)])


def cell(text: str) -> str:
    """``text`` as one cell that shows it: no mark of Markdown, HTML or a terminal means anything."""
    return _MARKS.sub(lambda mark: f"&#{ord(mark[0])};", readable(text, _LONGEST_CELL))


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    raise SystemExit(main())
