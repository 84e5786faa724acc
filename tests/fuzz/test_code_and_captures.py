"""Damaged code objects and captures, and strange things beside recordings: work that follows the size."""

from __future__ import annotations

import os
import shutil
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_codeobject.reading import code_objects_from
from rpl_codeobject.reading.elf_file import code_digest, exported_symbols
from rpl_core.errors import RplError
from rpl_testkit.hand_made_code import CodeParts
from rpl_vmreplay.capture.folder import difference, open_capture
from rpl_vmreplay.capture.wholeness import problems_of

from .budget import fuzzed_least
from .counted import calls_of
from .mutations import byte_edits, cell_edits, edit_bytes, edit_json, places
from .refusals import check_refusal

CAPTURE = Path(__file__).parents[2] / "examples" / "captures" / "attention_values"
LISTS = ("dispatch.json", "memory_regions.json", "capture.json", "rpl_capture_complete")
#: Memory that reading may take: so often the size of the file, and for libraries that are loaded on the way.
MEMORY_RATIO, MEMORY_BYTES = 200, 8 << 20
numbers = st.sampled_from((0, 1, 2, 11, 64, 2**16 - 1, 2**31, 2**32 - 1)) | st.integers(0, 2**12)
number_edits = st.lists(st.tuples(places, numbers), min_size=1, max_size=8)
kinds = st.sampled_from(("link", "link out", "loop", "folder", "pipe", "empty", "absent", "twice"))


def _refused(work):
    try:
        work()
    except RplError as error:
        check_refusal(error)


def _look_at_code(data):
    codes = code_objects_from(data, "code")
    code_digest(codes)
    for code in codes:
        exported_symbols(code)


def _cost(work):
    """Calls of Python and bytes of memory at most."""
    tracemalloc.start()
    try:
        return calls_of(work), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("damage", ["numbers", "bytes"])
def test_code_objects(damage):
    source = CodeParts(relocations=2, functions=2, variables=2).build()
    whole, _ = _cost(lambda: _look_at_code(source))

    @fuzzed_least
    @given(number_edits if damage == "numbers" else byte_edits)
    def run(edits):
        damaged = bytearray(source if damage == "numbers" else edit_bytes(source, edits))
        for place, number in edits if damage == "numbers" else ():
            struct.pack_into("<I", damaged, 4 * place % (len(damaged) - 4) // 4 * 4, number)
        calls, memory = _cost(lambda: _refused(lambda: _look_at_code(bytes(damaged))))
        assert calls < 10 * whole * max(1, len(damaged) / len(source))
        assert memory < MEMORY_RATIO * len(damaged) + MEMORY_BYTES

    run()


def _look_at_capture(folder):
    capture = open_capture(folder)
    if not list(problems_of(capture)):
        difference(capture, open_capture(CAPTURE))


def _replace(path, kind, outside):
    """What is in the place of a file, or beside one."""
    path.unlink(missing_ok=True)
    if kind in ("link", "link out", "loop"):
        path.symlink_to({"link": "capture.json", "link out": outside, "loop": path.name}[kind])
    elif kind == "folder":
        path.mkdir()
        (path / "again").symlink_to(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "twice":
        path.write_bytes(b"{}" * 2)


def test_captures(fresh):
    texts = {name: (CAPTURE / name).read_text() for name in LISTS}
    files = sorted(str(p.relative_to(CAPTURE)) for p in CAPTURE.rglob("*") if p.is_file())
    whole, _ = _cost(lambda: _look_at_capture(CAPTURE))

    @fuzzed_least
    @given(st.sampled_from(LISTS), cell_edits, byte_edits | st.just([]), places, kinds | st.none())
    def run(name, values, edits, victim, kind):
        folder = fresh("capture")
        shutil.copytree(CAPTURE, folder)
        outside = folder.with_name("outside")
        outside.write_bytes(b"of the user")
        text = edit_json(texts[name], values).encode("utf-8", "surrogatepass")
        (folder / name).write_bytes(edit_bytes(text, edits))
        if kind:
            _replace(folder / files[victim % len(files)], kind, outside)
        calls, memory = _cost(lambda: _refused(lambda: _look_at_capture(folder)))
        assert calls < 10 * whole
        assert memory < MEMORY_RATIO * 2**17 + MEMORY_BYTES
        assert outside.read_bytes() == b"of the user"

    run()


def test_what_lies_beside_recordings(corpus, fresh, digest):
    """A folder is read with what else is in it: it may be anything."""
    names = st.sampled_from(
        (
            *("trace_results.db-journal", "trace_results.db-wal", "trace_results.db.gz", "other_results.db"),
            *("7_kernel_trace.csv", "7_agent_info.csv", "7_rpl_origin.json", "rpl_origin.json", "run.json"),
            *(
                "8_results.json",
                "sysinfo.csv",
                "pmc_perf.csv",
                "code.json",
                "x.att",
                "x.hsaco",
                "packages.json",
            ),
        )
    )

    @fuzzed_least
    @given(st.dictionaries(names, kinds, min_size=1, max_size=4))
    def run(companions):
        path = fresh("trace_results.db")
        shutil.copyfile(corpus / path.name, path)
        outside = path.parent.with_name("outside")
        outside.mkdir(exist_ok=True)
        (outside / "file").write_bytes(b"of the user")
        for name, kind in companions.items():
            _replace(path.with_name(name), kind, outside / "file")
        digest(path.parent)
        assert (outside / "file").read_bytes() == b"of the user"

    run()
