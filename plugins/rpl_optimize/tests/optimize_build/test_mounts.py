"""Commands that see a built file in the place of the user's own."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from rpl_optimize.running.program_word import mounted, why_no_mounts

pytestmark = pytest.mark.skipif(why_no_mounts() is not None, reason="nothing can be mounted here")
#: As a profiler that starts a thread in every process that it is loaded into.
THREAD = """
#include <pthread.h>
#include <unistd.h>
static void* sleeps(void* unused) { for (;;) pause(); return unused; }
__attribute__((constructor)) static void start(void) {
  pthread_t thread;
  pthread_create(&thread, 0, sleeps, 0);
}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "built").write_text("built\n")
    (tmp_path / "users").write_text("users\n")
    return tmp_path / "built", tmp_path / "users"


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_only_the_command_sees_it_and_ends_as_itself(files):
    built, users = files
    done = run(mounted(("sh", "-c", f"cat {users}; id -u; exit 7"), ((built, users),)))
    assert (done.stdout.splitlines(), done.returncode) == (["built", str(os.getuid())], 7), done.stderr
    assert users.read_text() == "users\n"
    done = run(mounted(("no-such-program",), ((built, users),)))
    assert (done.returncode, done.stderr) == (
        127,
        "error: cannot run no-such-program: No such file or directory\n",
    )


def test_behind_a_link_and_where_the_command_runs(files, tmp_path):
    built, users = files
    work, link = tmp_path / "work", tmp_path / "link"
    work.mkdir()
    (work / "users").write_text("a copy\n")
    link.symlink_to("users")
    command = mounted(("cat", "users", str(users)), ((built, link),), tmp_path)
    assert run(command, cwd=tmp_path).stdout == "built\n" * 2
    command = mounted(("cat", "users", str(users)), ((built, users),), tmp_path)
    assert run(command, cwd=work).stdout == "built\n" * 2
    assert (work / "users").read_text() == "a copy\n"


def test_threads_of_a_profiler_do_not_hinder_it(files, tmp_path, rpl_require):
    built, users = files
    library = tmp_path / "thread.so"
    compiler = str(rpl_require("clang++-22"))
    words = (compiler, "-x", "c", "-", "-shared", "-fPIC", "-pthread", "-o", str(library))
    subprocess.run(words, input=THREAD, text=True, check=True)
    command = mounted(("sh", "-c", f"cat {users}; kill -TERM $$"), ((built, users),))
    done = run(command, env=os.environ | {"LD_PRELOAD": str(library)})
    assert (done.stdout, done.returncode) == ("built\n", -signal.SIGTERM), done.stderr


def test_what_can_not_be_mounted_is_said(tmp_path):
    done = run(mounted(("true",), ((tmp_path / "absent", tmp_path),)))
    assert done.returncode == 125
    assert done.stderr.startswith("error: nothing can be mounted here: ")
