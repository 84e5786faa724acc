"""CSV rows that are read many at once give what the csv module gives, or are left to it."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpl_core.errors import BadDataError
from rpl_rocprofv3.readers.csv import tables
from rpl_rocprofv3.readers.csv.tables import plain_rows

_ASKED = {"integers": ("n", "m", "absent"), "floats": ("x",), "texts": ("t", "u")}
_HEADER = b"n,t,x,m,u"

_NUMBERS = st.one_of(
    st.integers(0, 10**19).map(str),
    st.sampled_from(["", "-1", "+5", " 7", "007", "8.1E+14", "12.5", "1_0", "nan", "٣", "9" * 18, "9" * 19]),
)
_TEXTS = st.text(alphabet='ab,"\n\r é\ufeff\0\u2028', max_size=6)


@st.composite
def _written(draw: st.DrawFn) -> bytes:
    """A table as csv.writer writes it, most of the time."""
    some = st.tuples(_NUMBERS, _TEXTS, _NUMBERS, _NUMBERS, st.sampled_from(["GPU 0", "GPU 1", ""]))
    rows = draw(st.lists(some, max_size=8))
    text = io.StringIO(newline="")
    end = draw(st.sampled_from(["\n", "\n", "\n", "\r\n"]))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    csv.writer(text, lineterminator=end, quoting=quoting).writerows(rows)
    content = text.getvalue().encode()
    return content[: len(content) - draw(st.integers(0, 3))]


_CHAOS = st.lists(st.sampled_from([*b'",\n\r\0 1e.-a\xff\xe2']), max_size=60).map(bytes)
_HEADERS = st.sampled_from(
    [_HEADER, b'"n","t","x","m","u"', b" N ,t,X,m,u", b'n,t,x,m,"u', b'n,t,x,m,"u\nv"', b"n,n,x,t", b""]
)


def _outcome(path) -> object:
    try:
        read = tables.read_columns(path, **_ASKED)
    except BadDataError as error:
        return str(error)
    columns = {**read.integers, **read.floats, **{name: each.code for name, each in read.texts.items()}}
    return (
        {name: (column.dtype, column.tobytes()) for name, column in columns.items()},
        {name: each.texts for name, each in read.texts.items()},
        (read.row_count, read.misshapen_rows, read.unreadable, read.rounded, read.averaged),
    )


@settings(deadline=None, derandomize=True, max_examples=400)
@given(
    header=_HEADERS,
    rows=st.one_of(_written(), _CHAOS, st.tuples(_written(), _CHAOS, _written()).map(b"".join)),
    start=st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    block=st.sampled_from([1, 7, 40, 1 << 20]),
)
def test_both_ways_give_the_same_columns_and_refusals(tmp_path_factory, header, rows, start, block):
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    path.write_bytes(start + header + b"\n" + rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "_BLOCK_BYTES", block)
        found = _outcome(path)
        patched.setattr(tables, "plain_rows", lambda _data, _width: None)
        assert found == _outcome(path)


def test_what_profilers_write_is_read_at_once(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv.gz"
    lines = "".join(f'{i},"k<{i % 3}, int>",0.5,"{i}","GPU 0"\n' for i in range(5000))
    path.write_bytes(gzip.compress(b"n,t,x,m,u\n" + lines.encode()))
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 10_000)
    monkeypatch.setattr(tables._Builder, "add", lambda *_: pytest.fail("left to the csv module"))
    read = tables.read_columns(path, **_ASKED)
    assert (read.integers["n"] == np.arange(5000)).all()
    assert (read.integers["m"] == np.arange(5000)).all()
    assert read.texts["t"].texts == ("k<0, int>", "k<1, int>", "k<2, int>")
    assert (read.texts["t"].code == np.arange(5000) % 3).all()


@pytest.mark.parametrize(
    "data",
    [
        b"1,2\r\n",
        b"1,2\n1\n",
        b"1,2,3,4\n",
        b'1,"a\n',
        b'1,a"b"\n',
        b'1,"a""b"\n',
        b"1,\0\n",
        b"\n",
        b'",1\n',
    ],
)
def test_what_another_reader_could_understand_otherwise_is_not_plain(data):
    assert plain_rows(data, 2) is None


def test_a_field_beyond_the_limit_is_refused_with_its_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(_HEADER + b"\n" + b"1,a,1,1,b\n" * 3 + b"2," + b"a" * 200_000 + b",1,1,b\n")
    with pytest.raises(BadDataError, match=r"line 5: field larger than field limit"):
        tables.read_columns(path, **_ASKED)
