"""The answer about a job as one HTML page, with ranks over time as a picture. It loads and runs nothing."""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.ranks.text import job_text
from rpl_core.text import printable

if TYPE_CHECKING:
    from rpl_analysis.contracts.rank_job import PicturePart, RankJob

__all__ = ["job_page"]

#: Computing and communication; what is left to white is the host's. Apart for colour-blind readers too
#: (Wong, "Points of view: Color blindness", Nature Methods 8, 441, 2011).
_BLUE, _ORANGE = np.array([0, 114, 178]), np.array([230, 159, 0])
_STYLE = (
    "body{font:15px/1.4 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}"
    "pre{overflow:auto;background:#f6f6f6;padding:1em}img{width:100%;image-rendering:pixelated;"
    "border:1px solid #999}table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:right}"
    "td:first-child,th:first-child{text-align:left}.b{background:#0072b2;color:#fff}.o{background:#e69f00}"
    "span{padding:0 .5em}"
)


def job_page(job: RankJob) -> str:
    """A page of its own."""
    text = escape(printable(job_text(job)))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{job.ranks:,} ranks</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{job.ranks:,} ranks</h1>\n<pre>{text}</pre>\n"
        f"{_picture(job.picture)}{_ranks(job)}</body></html>\n"
    )


def _picture(picture: PicturePart | None) -> str:
    if picture is None:
        return "<p>No picture: the clocks of the ranks can't be compared.</p>\n"
    shape = (picture.rows, picture.columns, 1)
    computing, talking = (
        np.frombuffer(part, np.uint8).reshape(shape) / 255
        for part in (picture.computing, picture.communicating)
    )
    white = 255 * (1 - np.minimum(computing + talking, 1))
    pixels = np.clip(computing * _BLUE + talking * _ORANGE + white, 0, 255).astype(np.uint8)
    image = base64.b64encode(_png(pixels)).decode("ascii")
    each = "a rank" if picture.ranks_per_row == 1 else f"{picture.ranks_per_row} ranks"
    return (
        f"<h2>Ranks over time</h2>\n<p>A row is {each}, the first on top; a column {picture.column_ns:,} ns. "
        '<span class="b">computing</span> <span class="o">communication and waiting</span> white: nothing '
        f'runs.</p>\n<img alt="ranks over time" src="data:image/png;base64,{image}">\n'
    )


def _png(pixels: np.ndarray) -> bytes:
    """Pixels (rows, columns, 3) of 8 bits, as PNG (W3C, "Portable Network Graphics", third edition)."""
    rows, columns, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = np.zeros((rows, 1 + 3 * columns), np.uint8)  # each begins with 0: no filter
    lines[:, 1:] = pixels.reshape(rows, -1)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def _ranks(job: RankJob) -> str:
    columns: tuple[str, ...]
    columns = ("computing_ns", "communication_ns", "wait_ns", "copies_ns", "host_ns", "last", "late_ns")
    note = ""
    if any(rank.open_longest for rank in job.by_rank):
        columns += ("last_or_clock", "open_longest", "open_excess_ns")
        note = (
            "<p>No clock decides who came last to the operations of <i>last or clock</i>; before those of "
            "<i>open longest</i> this rank's kernels and copies took longer than any other rank's, by "
            "<i>open excess ns</i> in all: durations need no common clock. Equal ranks take turns.</p>\n"
        )
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in ("rank", *columns))
    lines = []
    for rank in job.by_rank:
        cells = [getattr(rank, name) for name in columns]
        shown = "".join(f"<td>{'-' if value is None else f'{value:,}'}</td>" for value in cells)
        lines.append(f"<tr><td>{escape(printable(rank.recording))}</td>{shown}</tr>\n")
    return f"<h2>Every rank</h2>\n{note}<table><tr>{head}</tr>\n{''.join(lines)}</table>\n"
