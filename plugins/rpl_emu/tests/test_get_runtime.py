"""`rpl emu get-runtime`: from a mirror of this test's own, whole or not at all, and below its root."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import struct
import tarfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rpl_emu import runtime_index, runtime_packages
from rpl_emu.runtime_packages import SUITES, Package, hip_version, listed
from rpl_emu.software_gpu import environment, find_runtime

LIBRARIES = "usr/lib/x86_64-linux-gnu"


def deb(*members, folder=LIBRARIES, packed="xz", **files):
    """A package's file with ``files`` by their path, and further members of any kind."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=f"w:{packed}") as tar:
        tar.addfile(link(".", "", tarfile.DIRTYPE))
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{folder}/{name}")
            member.size, member.mode, member.uid = len(content), 0o4755, 1234
            tar.addfile(member, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", f"data.tar.{packed}": data.getvalue()}
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
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
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
        (
            ("--index", "http://127.0.0.1/rocm"),
            "'http://127.0.0.1/rocm' is no address of an index of packages",
        ),
        (("--index", "file:///rocm/dists/noble"), "is no address of an index of packages"),
        (("--index", "http://[/dists/noble"), "is no address of an index of packages"),
        (
            ("--index", "https://me:secret@h/dists/noble"),
            "the address of an index holds a name or a password",
        ),
        (("--index", ""), "'' is no address of an index of packages"),
        (("--index", "", "--latest"), "--index says what is taken"),
        (("--index", "http://127.0.0.1/dists/a", "--suite", "forky"), "--index says what is taken"),
    ],
)
def test_what_cannot_be_asked_for_is_usage(mirror, rpl_cli, words, said):
    mirror.have("forky")
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
        # Each stays below the root by its name, and leaves it by the links that came before.
        (link("here", "."), link("out", "here/.."), link("out/a", "b")),
        (link("later", "here/../outside"), link("here", "."), link("later", "", tarfile.REGTYPE)),
        (link("later", "here/../outside"), link("here", ".")),
    ],
    ids=lambda one: " ".join(
        f"{member.name} {member.type.decode()} {member.linkname}"
        for member in (one if isinstance(one, tuple) else [one])
    ),
)
def test_members_that_leave_the_root_are_refused(mirror, rpl_cli, tmp_path, member):
    mirror.have("forky", one=deb(*(member if isinstance(member, tuple) else [member]), a=b"a"))
    ran = rpl_cli("emu", "get-runtime", "--suite", "forky")
    assert ran.exit_code == 65
    assert "does not belong below its root" in ran.stderr
    assert kept(tmp_path) == []
    assert not list(tmp_path.rglob("outside"))


@pytest.mark.parametrize(
    "said", [{"path": "a\0b"}, {"mtime": "inf"}, {"mtime": "nan"}, {"path": "usr/lib"}], ids=str
)
def test_a_member_that_no_system_can_hold_is_damage(mirror, rpl_cli, tmp_path, said):
    member = tarfile.TarInfo("usr/a")
    member.pax_headers = said
    folder = link("usr/lib", "", tarfile.DIRTYPE)
    mirror.have("forky", one=deb(folder, member, a=b"a"))
    ran = rpl_cli("emu", "get-runtime", "--suite", "forky")
    assert (ran.exit_code, "1.deb is damaged: " in ran.stderr) == (65, True)
    assert kept(tmp_path) == []


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


# ROCr and HIP of AMD's packages: an index of this test's own beside the mirror of Debian.

ROCM = "opt/rocm-7.0.2/lib"


def library(soname, *needed):
    """A shared library that holds nothing but its dynamic section."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in (soname, *needed))
    offset = {name: strings.index(b"\0" + name.encode() + b"\0") + 1 for name in (soname, *needed)}
    tags = [(14, offset[soname]), *((1, offset[name]) for name in needed)]
    begin = 64 + 2 * 56
    tags += [(5, begin + 16 * (len(tags) + 3)), (10, len(strings)), (0, 0)]  # DT_STRTAB, DT_STRSZ, DT_NULL
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    end = begin + len(dynamic) + len(strings)
    header = b"\x7fELF" + bytes([2, 1, 1, *9 * [0]])
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, end, end, 4096)
    at = struct.pack("<IIQQQQQQ", 2, 6, begin, begin, begin, len(dynamic), len(dynamic), 8)
    return header + load + at + dynamic + strings


def paragraph(name, content, version="7.0.2.70002-56~24.04", **other):
    fields = {
        "Package": name,
        "Version": version,
        "Depends": "hipcc, libelf1 (>= 0.17)",
        "Filename": f"pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb",
        "Size": len(content),
        "SHA256": hashlib.sha256(content).hexdigest(),
    } | other
    return "\n".join(f"{key}: {value}" for key, value in fields.items()) + "\n"


@pytest.fixture
def amd(mirror):
    """``amd.have(name=file)``: what AMD's index holds; ``amd.address``."""

    class Index:
        def __init__(self):
            self.address = mirror.address.replace("/debian", "/rocm/dists/noble")
            hip = library("libamdhip64.so.7", "libhsa-runtime64.so.1")
            rocr = library("libhsa-runtime64.so.1", "libelf.so.1", "libc.so.6")
            self.packages = {
                "hsa-rocr": {"libhsa-runtime64.so.1": rocr},
                "hip-runtime-amd": {"libamdhip64.so.7.0.70002": hip, "libamdhip64.so.7": hip},
                "comgr": {"libamd_comgr.so.3": library("libamd_comgr.so.3", "libc.so.6")},
            }

        def have(self, *others, **changed):
            files = {
                name: deb(folder=ROCM, packed="gz", **libraries) for name, libraries in self.packages.items()
            }
            found = [paragraph(name, content, **changed) for name, content in files.items()]
            for name, content in files.items():
                version = "7.0.2.70002-56~24.04"
                mirror.files[f"/rocm/pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb"] = content
            # An older one of the same name, and what nobody asks for.
            old = paragraph("hip-runtime-amd", b"old", version="7.0.1.70001-42~24.04")
            self.lists("\n".join([old, *found, paragraph("hipcc", b"large", Size=1 << 50), *others]))

        def lists(self, text):
            packed = gzip.compress(text.encode())
            mirror.files["/rocm/dists/noble/main/binary-amd64/Packages.gz"] = packed
            digest = hashlib.sha256(packed).hexdigest()
            release = f"Suite: noble\nMD5Sum:\n 0123 {len(packed)} main/binary-amd64/Packages.gz\nSHA256:\n"
            release += f" {digest} {len(packed):8} main/binary-amd64/Packages.gz\n"
            release += f" {digest[::-1]} 7 main/binary-i386/Packages.gz\nValid-Until: never\n"
            mirror.files["/rocm/dists/noble/Release"] = release.encode()

    mirror.have(
        "forky",
        **{
            "libc6": deb(**{"libc.so.6": library("libc.so.6"), "ld-linux-x86-64.so.2": b"loader"}),
            "libelf1t64": deb(**{"libelf.so.1": library("libelf.so.1", "libc.so.6")}),
            "libamdhip64-6": deb(**{"libamdhip64.so.6": b"Debian's"}),
            "libhsa-runtime64-1": deb(**{"libhsa-runtime64.so.1": b"Debian's"}),
        },
    )
    return Index()


def test_the_runtime_of_an_index_has_its_rocr_and_hip_and_the_rest_of_debian(mirror, amd, rpl_cli, tmp_path):
    amd.have()
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address).assert_ok()
    folder = Path(ran.stdout.strip())
    assert ran.stderr.splitlines()[-1] == (
        "HIP 7.0.2.70002-56~24.04 (libamdhip64.so.7) and ROCr (libhsa-runtime64.so.1) of " + amd.address
    )
    assert "it is asked without TLS" in ran.stderr
    assert sorted(path.name for path in (folder / LIBRARIES).iterdir()) == [
        "ld-linux-x86-64.so.2",
        "libamd_comgr.so.3",
        "libamdhip64.so.7",
        "libamdhip64.so.7.0.70002",
        "libc.so.6",
        "libelf.so.1",
        "libhsa-runtime64.so.1",
    ]
    linked = folder / LIBRARIES / "libhsa-runtime64.so.1"
    assert linked.resolve() == (folder / ROCM / "libhsa-runtime64.so.1").resolve()
    assert not Path(linked.readlink()).is_absolute()
    # A program that was linked with that HIP finds it, and what was fetched is not fetched again.
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF libamdhip64.so.7\0")
    assert find_runtime([str(program)], None, system=()).root == folder
    assert hip_version(folder) == "HIP 7.0.2.70002-56~24.04"
    before = sum(".deb" in path or "pool/forky" in path for path in mirror.asked)
    assert rpl_cli("emu", "get-runtime", "--index", amd.address).assert_ok().stdout.strip() == str(folder)
    assert before == sum(".deb" in path or "pool/forky" in path for path in mirror.asked) == 5
    assert kept(tmp_path) == [folder.name]


def test_a_library_that_lacks_another_makes_no_runtime(mirror, amd, rpl_cli, tmp_path):
    amd.packages = amd.packages | {
        "comgr": {"libamd_comgr.so.3": library("libamd_comgr.so.3", "libLLVM.so.22")}
    }
    amd.have()
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
    assert ran.exit_code == 69
    assert (
        "libamd_comgr.so.3 needs libLLVM.so.22, which neither AMD's packages nor Debian's hold" in ran.stderr
    )
    whole = library("libamd_comgr.so.3")
    # Cut off; without the segment that is loaded; with its segments at no place.
    for odd in (whole[:150], whole[:64] + b"\0" + whole[65:], whole[:39] + b"\xff" + whole[40:]):
        amd.packages = amd.packages | {"comgr": {"libamd_comgr.so.3": odd}}
        amd.have()
        ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
        assert (ran.exit_code, "libamd_comgr.so.3 is no library that can be read" in ran.stderr) == (65, True)
    # What the system has elsewhere is none of the folder's.
    (tmp_path / "libout.so").write_bytes(library("libout.so"))
    needed = str(tmp_path / "libout.so")
    amd.packages = amd.packages | {"comgr": {"libamd_comgr.so.3": library("libamd_comgr.so.3", needed)}}
    amd.have()
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
    assert (ran.exit_code, f"libamd_comgr.so.3 needs {needed}, which" in ran.stderr) == (69, True)
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "status", "said"),
    [
        ({"SHA256": "0" * 64}, 69, "is another file than its index says (its size or SHA-256 differs)"),
        ({"Size": 100}, 69, "is another file than its index says (its size or SHA-256 differs)"),
        ({"Size": 1 << 40}, 65, "has no sound file, size or SHA-256 of hsa-rocr"),
        ({"Size": "9" * 5000}, 65, "has no sound file, size or SHA-256 of hsa-rocr"),
        ({"Version": "9" * 5000}, 65, "has no sound file, size or SHA-256 of hsa-rocr"),
        ({"SHA256": ""}, 65, "has no sound file, size or SHA-256 of hsa-rocr"),
        ({"Filename": "../../etc/passwd.deb"}, 65, "has no sound file, size or SHA-256 of hsa-rocr"),
        ({"Filename": "https://elsewhere/a.deb"}, 65, "has no sound file, size or SHA-256 of hsa-rocr"),
        ({"Package": "amdrocm-runtime"}, 69, "has no package hsa-rocr for amd64"),
    ],
)
def test_what_an_index_must_say(mirror, amd, rpl_cli, tmp_path, changed, status, said):
    amd.have(**changed)
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
    assert (ran.exit_code, ran.stdout) == (status, "")
    assert said in ran.stderr
    assert kept(tmp_path) == []


def test_a_list_that_its_release_does_not_know_is_not_read(mirror, amd, rpl_cli, tmp_path):
    amd.have()
    mirror.files["/rocm/dists/noble/main/binary-amd64/Packages.gz"] += b"\0"
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
    assert (ran.exit_code, "is another file than its index says" in ran.stderr) == (69, True)
    amd.lists("")
    for packed in (
        b"no gzip",
        gzip.compress(b"text" * 9)[:10] + b"\xff" * 9,
        gzip.compress(b"text" * 9)[:-9],
    ):
        mirror.files["/rocm/dists/noble/main/binary-amd64/Packages.gz"] = packed
        said = f"{hashlib.sha256(packed).hexdigest()} {len(packed)}"
        release = f"SHA256:\n {said} main/binary-amd64/Packages.gz\n"
        mirror.files["/rocm/dists/noble/Release"] = release.encode()
        ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
        assert (ran.exit_code, "the list of packages is damaged" in ran.stderr) == (65, True)
    mirror.files["/rocm/dists/noble/Release"] = b"<html>a proxy's page</html>"
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
    assert (ran.exit_code, "names no list of packages for amd64 with its SHA-256" in ran.stderr) == (65, True)
    del mirror.files["/rocm/dists/noble/Release"]
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
    assert (ran.exit_code, "/rocm/dists/noble/Release can't be had" in ran.stderr) == (69, True)
    assert kept(tmp_path) == []


def test_an_index_asked_with_tls_is_not_read_without(mirror, amd, rpl_cli, monkeypatch):
    """As urllib follows https to http."""
    amd.have()
    opened = urllib.request.urlopen
    monkeypatch.setattr(
        urllib.request, "urlopen", lambda url, **named: opened(url.replace("https:", "http:"), **named)
    )
    secure = amd.address.replace("http:", "https:")
    ran = rpl_cli("emu", "get-runtime", "--index", secure)
    assert (ran.exit_code, ran.stdout) == (69, "")
    assert f"{secure}/Release leads to {amd.address}/Release, which is asked without TLS" in ran.stderr


def test_lists_have_bounds(mirror, amd, rpl_cli, monkeypatch):
    amd.have()
    monkeypatch.setattr(runtime_index, "_LARGEST_LIST_BYTES", 100)
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
    assert (ran.exit_code, "the list of packages unfolds to more than" in ran.stderr) == (65, True)
    monkeypatch.setattr(runtime_index, "_LARGEST_PACKED_LIST_BYTES", 100)
    ran = rpl_cli("emu", "get-runtime", "--index", amd.address)
    assert (ran.exit_code, "none of AMD's has so many" in ran.stderr) == (65, True)
    monkeypatch.setattr(runtime_index, "_LARGEST_RELEASE_BYTES", 100)
    assert rpl_cli("emu", "get-runtime", "--index", amd.address).exit_code == 65


def test_a_package_that_unfolds_without_end_is_not_unpacked(mirror, rpl_cli, tmp_path, monkeypatch):
    monkeypatch.setattr(runtime_packages, "_MOST_UNPACKED_BYTES", 100)
    mirror.have("forky", one=deb(a=b"a" * 60, b=b"b" * 60))
    ran = rpl_cli("emu", "get-runtime", "--suite", "forky")
    assert (ran.exit_code, "a package unfolds to more than" in ran.stderr) == (65, True)
    assert kept(tmp_path) == []
