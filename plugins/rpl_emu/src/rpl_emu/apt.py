"""apt in a root of its own: what a suite of Debian holds today, checked by apt's own keys.

Own lists, own status, own archives; the system's mirror, proxy and keys. Nothing of the system changes and
no root is needed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from rpl_core.errors import MissingError

#: For each need the names that releases gave it, the newest first; the first that the suite has is taken.
_WANTED = (
    ("libhsa-runtime64-1",),
    ("libhsa-runtime-dev",),
    ("libamdhip64-7", "libamdhip64-6", "libamdhip64-5"),
    ("libamdhip64-dev",),
    ("rocm-device-libs-22", "rocm-device-libs-21", "rocm-device-libs-17"),
)
#: Development packages pull a whole compiler in; only their own files are wanted.
_ALONE = {"libamdhip64-dev", "libhsa-runtime-dev"}
_LISTS_LAST_S = 24 * 3600


class Apt:
    """Raises MissingError where there is no apt, no Debian mirror or no network."""

    def __init__(self, root: Path, suites: Sequence[str]) -> None:
        if missing := [name for name in ("apt-get", "apt-cache") if not shutil.which(name)]:
            raise MissingError(
                f"{missing[0]} is not installed", cause="this is neither Debian nor a child of it"
            )
        self._root = root
        for name in ("lists/partial", "archives/partial", "etc/preferences.d"):
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "status").touch()
        self.mirror = _mirror()
        sources = "".join(f"deb {self.mirror} {suite} main\n" for suite in suites)
        self._same_sources = _write(root / "etc" / "sources.list", sources)
        _write(root / "apt.conf", self._configuration(suites[-1]))

    def _configuration(self, preferred: str) -> str:
        settings = {
            # Nothing is taken from a suite such as experimental unless it is asked for.
            "APT::Default-Release": preferred,
            "Dir::State": self._root,
            "Dir::State::lists": self._root / "lists",
            "Dir::State::status": self._root / "status",
            "Dir::Cache": self._root,
            "Dir::Cache::archives": self._root / "archives",
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Etc::sourcelist": self._root / "etc" / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": self._root / "etc" / "preferences.d",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",
        }
        cleared = ("APT::Update::Post-Invoke", "APT::Update::Post-Invoke-Success", "DPkg::Post-Invoke")
        lines = [f'{name} "{value}";' for name, value in settings.items()]
        return "\n".join([*lines, *(f"#clear {name};" for name in cleared)]) + "\n"

    def update(self) -> float:
        """When the lists were fetched, which happens at most once a day."""
        stamp = self._root / "updated"
        if self._same_sources and stamp.exists() and time.time() - stamp.stat().st_mtime < _LISTS_LAST_S:
            return stamp.stat().st_mtime
        self._call("apt-get", "update", "-qq", "--error-on=any")
        stamp.touch()
        return stamp.stat().st_mtime

    def versions(self) -> list[tuple[str, str]]:
        """What installing ROCr, HIP, headers and device bitcode on an empty system takes: name, version."""
        wanted = [self._first_there(names) for names in _WANTED]
        whole = [name for name in wanted if name not in _ALONE]
        plan = self._call("apt-get", "install", "--simulate", "-qq", "--no-remove", *whole)
        found = set(re.findall(r"^Inst (\S+) \((\S+) ", plan, re.MULTILINE))
        for name in _ALONE.intersection(wanted):
            version = self._call("apt-cache", "show", "--no-all-versions", name)
            found.add((name, re.findall(r"^Version: (\S+)", version, re.MULTILINE)[0]))
        return sorted(found)

    def _first_there(self, names: Sequence[str]) -> str:
        for name in names:
            if self._call("apt-cache", "madison", name).strip():
                return name
        raise MissingError(f"the suite has none of {', '.join(names)}")

    def download(self, packages: Sequence[tuple[str, str]]) -> list[Path]:
        """The packages' files; apt checks signatures and hashes of what it downloads."""
        archives = self._root / "archives"
        for left in archives.glob("*.deb"):
            left.unlink()
        names = [f"{name}={version}" for name, version in packages]
        self._call("apt-get", "download", "-qq", *names, cwd=archives)
        return sorted(archives.glob("*.deb"))

    def addresses(self, packages: Sequence[tuple[str, str]]) -> list[tuple[str, int, str]]:
        """Of each package the address, bytes and hash (``SHA256:...``), as the signed lists say."""
        names = [f"{name}={version}" for name, version in packages]
        lines = [
            line.split() for line in self._call("apt-get", "download", "--print-uris", *names).splitlines()
        ]
        return [(address.strip("'"), int(size), digest) for address, _, size, digest in lines]

    def _call(self, program: str, *arguments: str, cwd: Path | None = None) -> str:
        return _run(program, "-c", str(self._root / "apt.conf"), *arguments, cwd=cwd)


def _mirror() -> str:
    """The mirror that this system takes Debian's main archive from."""
    fields = "$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)"
    for line in _run("apt-get", "indextargets", "--format", fields, "Created-By: Packages").splitlines():
        uri, codename, component, origin = (*line.split(), "", "", "", "")[:4]
        if origin == "Debian" and component == "main" and "-" not in codename:
            return uri
    raise MissingError("apt of this machine knows no Debian mirror, or `apt-get update` never ran")


def _write(path: Path, text: str) -> bool:
    """Whether the file held that text already."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return True
    path.write_text(text, encoding="utf-8")
    return False


def _run(*command: str, cwd: Path | None = None) -> str:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise MissingError(f"`{command[0]} ... {command[-1]}` failed ({done.returncode}): {reason}")
    return done.stdout
