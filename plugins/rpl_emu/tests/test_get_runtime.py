"""`rpl emu get-runtime`: from a mirror of this test's own, whole or not at all, and below its root."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rpl_emu import runtime_packages
from rpl_emu.runtime_packages import SUITES, Package, listed
from rpl_emu.software_gpu import environment

LIBRARIES = "usr/lib/x86_64-linux-gnu"


def deb(*members, **files):
    """A package's file with ``files`` by their path, and further members of any kind."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{LIBRARIES}/{name}")
            member.size, member.mode, member.uid = len(content), 0o4755, 1234
            tar.addfile(member, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": data.getvalue()}
    archive = b"!<arch>\n"
    for name, content in parts.items():
        archive += f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        archive += content + b"\n" * (len(content) % 2)
    return archive


def link(name, target, kind=tarfile.SYMTYPE):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.fixture
def mirror(monkeypatch, tmp_path):
    """``mirror.have(suite, name=file)``: what list and mirror hold; ``.asked``: its calls."""

    class Mirror:
        def __init__(self):
            self.files, self.lists, self.asked = {}, {}, []

        def have(self, suite, **packages):
            self.lists[suite] = []
            for name, content in packages.items():
                self.files[f"/debian/pool/{suite}/{name}"] = content
                digest = hashlib.sha256(content).hexdigest()
                self.lists[suite].append(Package(name, "1", f"pool/{suite}/{name}", len(content), digest))

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            found.asked.append(self.path)
            content = found.files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    found = Mirror()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.address = f"http://127.0.0.1:{server.server_port}/debian"
    monkeypatch.setattr(runtime_packages, "_MIRRORS", (found.address,))
    monkeypatch.setattr(runtime_packages, "listed", lambda suite: (found.lists[suite], "20260101T000000Z"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no apt
    monkeypatch.delenv("http_proxy", raising=False)
    yield found
    server.shutdown()
    server.server_close()


def kept(tmp_path):
    return sorted(path.name for path in (tmp_path / "cache/rpl/rocm-runtime").iterdir() if path.is_dir())


def test_it_is_fetched_once_and_lies_as_below_a_root(mirror, rpl_cli, tmp_path):
    library = {"libLLVM.so.21.1": b"code" * 1000}
    mirror.have(
        "forky", one=deb(link(f"./{LIBRARIES}/libLLVM.so", "libLLVM.so.21.1"), **library), two=deb(b=b"x")
    )
    ran = rpl_cli("emu", "get-runtime").assert_ok()
    folder = Path(ran.stdout.strip())
    assert ran.stderr == "2 packages of Debian, 0 MB, once\n"
    assert (folder / LIBRARIES / "libLLVM.so").read_bytes() == b"code" * 1000
    mode = (folder / LIBRARIES / "libLLVM.so.21.1").stat()
    assert (stat.S_IMODE(mode.st_mode), mode.st_uid) == (0o755, folder.stat().st_uid)
    assert (folder / "versions.txt").read_text() == "one 1\ntwo 1\n"
    assert kept(tmp_path) == [folder.name]
    asked = len(mirror.asked)
    assert rpl_cli("emu", "get-runtime").assert_ok().stdout.strip() == str(folder)
    assert (asked, len(mirror.asked)) == (2, 2)
    assert environment()["RPL_EMU_RUNTIME"] == str(folder)


def test_a_file_that_is_another_than_the_list_says_is_not_taken(mirror, rpl_cli, tmp_path):
    mirror.have("forky", one=deb(a=b"a"), two=deb(b=b"b"))
    mirror.files["/debian/pool/forky/two"] += b"and more"
    ran = rpl_cli("emu", "get-runtime", "--suite", "forky")
    assert (ran.exit_code, ran.stderr.count("\n")) == (69, 2)
    assert "pool/forky/two is another file than the list of this rpl says" in ran.stderr
    assert kept(tmp_path) == []


def test_what_has_been_replaced_leads_to_what_else_can_be_had(mirror, rpl_cli, tmp_path):
    mirror.have("forky", one=deb(a=b"a"))
    mirror.have("trixie", old=deb(a=b"a"))
    del mirror.files["/debian/pool/forky/one"]
    ran = rpl_cli("emu", "get-runtime").assert_ok()
    assert "trixie instead of forky, since the package one 1 can't be had" in ran.stderr
    assert "answers 404" in ran.stderr
    assert kept(tmp_path)[0].startswith("trixie-hip-")
    # One of other versions that was fetched before is better than none.
    before = tmp_path / "cache/rpl/rocm-runtime/forky-hip-0123456789ab"
    before.mkdir()
    (before / "versions.txt").write_text("one 0\n")
    assert rpl_cli("emu", "get-runtime").assert_ok().stdout.strip() == str(before)


def test_without_a_network_one_line_says_so(mirror, rpl_cli, monkeypatch):
    mirror.have("forky", one=deb(a=b"a"), two=deb(b=b"b"))
    mirror.have("trixie", old=deb(a=b"a"))
    nobody = "http://127.0.0.1:1"
    for words in (("--mirror", nobody), ()):
        ran = rpl_cli("emu", "get-runtime", *words)
        assert ran.exit_code == 69
        told = ran.stderr.splitlines()[-1]
        assert told.startswith(f"rpl: the package one 1 can't be had: {nobody} can't be reached (")
        assert "Next: with a network, or with --mirror URL" in told
        monkeypatch.setattr(runtime_packages, "_MIRRORS", (nobody,))
    assert mirror.asked == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--suite", "etch"),
            "there is no suite 'etch' to take it from. Next: forky or trixie or experimental.",
        ),
        (("--mirror", "file:///etc"), "'file:///etc' is no address of a mirror"),
        (("--latest", "--mirror", "http://127.0.0.1"), "--latest and --mirror exclude each other"),
    ],
)
def test_what_cannot_be_asked_for_is_usage(mirror, rpl_cli, words, said):
    ran = rpl_cli("emu", "get-runtime", *words)
    assert ran.exit_code == 64
    assert said in ran.stderr


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("../outside"),
        tarfile.TarInfo("/outside"),
        link("a", "/etc"),
        link("usr/a", "../../outside"),
        link("usr/a", "../outside", tarfile.LNKTYPE),
        link("a", "", tarfile.FIFOTYPE),
        link("a", "", tarfile.CHRTYPE),
    ],
    ids=lambda member: f"{member.name} {member.type.decode()} {member.linkname}",
)
def test_members_that_leave_the_root_are_refused(mirror, rpl_cli, tmp_path, member):
    mirror.have("forky", one=deb(member, a=b"a"))
    ran = rpl_cli("emu", "get-runtime", "--suite", "forky")
    assert ran.exit_code == 65
    assert "does not belong below its root" in ran.stderr
    assert kept(tmp_path) == []
    assert not list(tmp_path.rglob("outside"))


def test_the_latest_needs_apt_and_its_words_are_passed_on(mirror, rpl_cli, tmp_path):
    mirror.have("forky")
    ran = rpl_cli("emu", "get-runtime", "--suite", "forky", "--latest")
    assert ran.exit_code == 69
    assert "apt-get is not installed" in ran.stderr
    for name in ("apt-get", "apt-cache"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'no route to the mirror' >&2\nexit 100\n")
        (tmp_path / name).chmod(0o755)
    ran = rpl_cli("emu", "get-runtime", "--suite", "forky", "--latest")
    assert ran.exit_code == 69
    assert "no route to the mirror" in ran.stderr


def test_a_cache_folder_that_is_no_absolute_path_counts_as_unset(mirror, rpl_cli, tmp_path, monkeypatch):
    mirror.have("forky", one=deb(a=b"a"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    folder = Path(rpl_cli("emu", "get-runtime").assert_ok().stdout.strip())
    assert folder.parent == tmp_path / "home" / ".cache" / "rpl" / "rocm-runtime"
    assert not (tmp_path / "relative").exists()


def test_the_list_names_whole_runtimes():
    for suite, hip in zip(SUITES, ("libamdhip64-6", "libamdhip64-5", "libamdhip64-7"), strict=True):
        packages, _ = listed(suite)
        assert {hip, "libamdhip64-dev", "libhsa-runtime64-1", "libhsa-runtime-dev", "libc6"} <= {
            one.name for one in packages
        }
        for one in packages:
            assert len(bytes.fromhex(one.sha256)) == 32
            assert one.path.startswith("pool/main/")
            assert 1000 < one.size_bytes < 1 << 30
