"""The archive that is sent back: what it never holds, and what is refused when one comes from elsewhere."""

from __future__ import annotations

import gzip
import importlib.util
import io
import tarfile
from pathlib import Path

import pytest

from rpl_core.errors import BadDataError
from rpl_selftest.bench import Bench
from rpl_selftest.check import LinePart, SelftestDocument
from rpl_selftest.kept import (
    KeptResult,
    document_in,
    html_page,
    keep,
    read_archive,
    read_kept,
    scrubber,
    write_archive,
)

ROOT = Path(__file__).parents[3]
EVIL = "x` | <script>alert(1)</script>\n| forged | confirmed \x1b[31m"


def document(found="1 of 1", origin="measured", outcome="refuted"):
    line = LinePart(
        check="times",
        outcome=outcome,
        runs="rpl profile",
        expected="equal",
        found=found,
        document="docs/compare.md",
        essential=True,
        seconds=1.5,
        figures={"slope": 0.01},
    )
    return SelftestDocument(
        rpl_version="0.1.0",
        date="2026-11-26",
        mode="quick",
        origin=origin,
        device="mi300x",
        product="AMD Instinct MI300X",
        profiler="rocpd 3",
        verdict="refuted",
        confirmed=int(outcome == "confirmed"),
        refuted=int(outcome == "refuted"),
        not_possible=0,
        seconds=2.0,
        lines=(line,),
    )


def packed(tmp_path, *members, text=None):
    """An archive of (entry, content) pairs, the document with ``text`` first."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        if text is not None:
            entry = tarfile.TarInfo("selftest.json")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
        for entry, content in members:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    path = tmp_path / "sent.tar.gz"
    path.write_bytes(gzip.compress(stream.getvalue()))
    return path


def test_what_is_written_is_read_again_and_equal_content_gives_equal_bytes(tmp_path):
    one, two = tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"
    for path in (one, two):
        write_archive(path, document(), html_page(document()))
    assert one.read_bytes() == two.read_bytes()
    assert document_in(read_archive(one), one) == document()


def test_names_and_places_of_a_machine_are_taken_out(monkeypatch, tmp_path):
    monkeypatch.setattr("socket.gethostname", lambda: "queenbee.example.org")
    monkeypatch.setenv("USER", "secretive")
    monkeypatch.setenv("HOME", "/home/secretive")
    scrubbed = scrubber([tmp_path / "work"])
    assert scrubbed("Secretive@queenbee.example.org") == "...@..."
    assert scrubbed(f"no {tmp_path}/work/x, /home/secretive/y; queenbee: 3") == "no .../x, .../y; ...: 3"
    assert scrubbed("the queenbees of secretively") == "the queenbees of secretively"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (
            "srun --nodelist=queenbee,queenbee-2 rocprofv3 -d /home/secretive/out -- /home/other/app",
            "srun --nodelist=...,...-2 rocprofv3 -d .../out -- .../app",
        ),
        (
            "[rocprofv3] output: /data/queenbee.intra.example.org/31415_results.db",
            "[rocprofv3] output: /data/.../31415_results.db",
        ),
        ("QUEENBEE:/scratch/SECRETIVE/x_secretive_y", "...:/scratch/.../x_..._y"),
        ("HIP_API_TOKEN=hunter2-token and 'hunter2-token'", "HIP_API_TOKEN=... and '...'"),
        ("cd '/Users/somebody'; ls \"/home/else where\"", "cd '...'; ls \"... where\""),
    ],
)
def test_names_inside_command_lines_and_output_of_others(monkeypatch, said, left):
    monkeypatch.setattr("socket.gethostname", lambda: "queenbee")
    monkeypatch.setenv("USER", "secretive")
    monkeypatch.setenv("HIP_API_TOKEN", "hunter2-token")
    assert scrubber()(said) == left


def test_a_name_that_is_cut_off_leaves_no_part_of_itself(monkeypatch, rpl_host, tmp_path):
    monkeypatch.setattr("socket.gethostname", lambda: "queenbee")
    bench = Bench(folder=tmp_path, host=rpl_host(), scrubbed=scrubber())
    assert "quee" not in bench.shown("x" * 36 + " queenbee is down", 40)


def test_administrators_and_short_names_leave_words_alone(monkeypatch):
    monkeypatch.setenv("USER", "root")
    monkeypatch.setenv("LOGNAME", "me")
    monkeypatch.setattr("socket.gethostname", lambda: "localhost")
    assert scrubber()("tell me of root on localhost") == "tell me of root on localhost"


def entry(name, kind=tarfile.REGTYPE, link=""):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([(entry("../../etc/cron.d/x"), b"x")], "which no self-test writes"),
        ([(entry("/etc/passwd"), b"x")], "which no self-test writes"),
        ([(entry("selftest.html", tarfile.SYMTYPE, "/etc/passwd"), b"")], "which no self-test writes"),
        ([(entry("selftest.html", tarfile.FIFOTYPE), b"")], "which no self-test writes"),
        ([(entry("selftest.html"), b"1"), (entry("selftest.html"), b"2")], "holds selftest.html twice"),
        ([], "holds no selftest.json"),
        ([(entry("selftest.json"), b"{}")], "breaks its contract"),
        ([(entry("selftest.json"), b"[" * 5000)], None),
        ([(entry("selftest.json"), b'{"a": 1e999}')], None),
    ],
)
def test_archives_that_no_self_test_wrote_are_refused(tmp_path, members, told):
    path = packed(tmp_path, *members)
    with pytest.raises(BadDataError) as refused:
        document_in(read_archive(path), path)
    assert told is None or told in refused.value.cause
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_bomb_a_cut_one_and_no_archive_are_refused(tmp_path):
    path = tmp_path / "sent.tar.gz"
    for content, told in (
        (gzip.compress(bytes(64 << 20)), "unpacks to more than 32 MiB"),
        (gzip.compress(b"x" * 5000)[:-9], "was cut off"),
        (b"no gzip at all", "incorrect header"),
        (gzip.compress(b"no tar at all" * 100), ""),
    ):
        path.write_bytes(content)
        with pytest.raises(BadDataError) as refused:
            read_archive(path)
        assert told in refused.value.cause
    path.write_bytes(bytes(5 << 20))
    with pytest.raises(BadDataError, match="larger than 4 MiB"):
        read_archive(path)


@pytest.fixture
def reader():
    spec = importlib.util.spec_from_file_location("read_selftest", ROOT / "tools" / "read_selftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_for_the_validation_page(reader, tmp_path, capsys):
    path = tmp_path / "a.tar.gz"
    write_archive(path, document(), "page")
    assert reader.main([str(path)]) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    cells = [text.strip() for text in row.strip("|").split("|")]
    assert len(cells) == head.count("|") - 1
    told = ["AMD Instinct MI300X", "0.1.0", "2026-11-26", "measured", "times", "refuted", "equal", "1 of 1"]
    assert cells == [*told, "docs/compare.md"]


def test_rows_of_hostile_and_of_synthetic_archives(reader, tmp_path, capsys):
    evil, bad = tmp_path / "evil.tar.gz", tmp_path / "bad.tar.gz"
    write_archive(evil, document(EVIL, "synthetic", "confirmed"), "page")
    bad.write_bytes(b"bad")
    assert reader.main([str(bad), str(evil)]) == 65
    captured = capsys.readouterr()
    assert "is no archive of rpl selftest" in captured.err
    (row,) = captured.out.splitlines()[2:]
    assert row.count("|") == 10
    assert not {"<", "`", "\x1b"} & set(row)
    assert "| confirmed (synthetic) |" in row


def test_the_page_shows_text_as_text():
    page = html_page(document(EVIL))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "AMD Instinct MI300X" in page


def test_what_was_measured_is_kept_before_what_was_not(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert keep(document(origin="measured")) == tmp_path / "rpl" / "selftest.json"
    assert keep(document(origin="synthetic")) is None
    assert read_kept() == {"mi300x": KeptResult("mi300x", "measured", "2026-11-26", ("times",), 0, 0)}
    assert keep(document().model_copy(update={"device": None})) is None
