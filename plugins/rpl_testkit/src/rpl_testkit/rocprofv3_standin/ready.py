"""Install a `rocprofv3` whose runs cost next to nothing to start, for tests that need many."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rpl_testkit.launchers import python_program
from rpl_testkit.rocprofv3_standin import install_standin
from rpl_testkit.rocprofv3_standin.main import main

_HERE = Path(__file__).parent
_START_LIMIT_S = 60.0
_SIZE = struct.Struct("=I")
_STATUS = struct.Struct("=i")


@contextmanager
def ready_standin(directory: Path, compiler: Path) -> Iterator[Path]:
    """A `rocprofv3` in `directory`, ready inside the context; afterwards it is the usual stand-in, slower.

    `compiler` compiles C. Runs are what the usual stand-in's are, but their processes belong to a session
    of their own: not for tests of what a killed profiler leaves behind.
    """
    usual = install_standin(directory / "usual")
    program = directory / "rocprofv3"
    # A socket's name may have 107 bytes; pytest's folders are often longer.
    with tempfile.TemporaryDirectory(prefix="rpl-ready-") as folder:
        place = Path(folder, "socket")
        words = (f'-DSOCKET="{place}"', f'-DUSUAL="{usual}"')
        subprocess.run([compiler, "-x", "c", *words, _HERE / "ready_client.c", "-o", program], check=True)
        server_words = python_program("rpl_testkit.rocprofv3_standin.ready", "serve(sys.argv[1])")
        with subprocess.Popen([*server_words, str(place)], stdin=subprocess.PIPE) as server:
            try:
                _await(place, server)
                yield program
            finally:
                assert server.stdin is not None
                server.stdin.close()
                server.wait()


def _await(place: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while not place.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the stand-in that is kept ready did not start (exit code {server.poll()})")
        time.sleep(0.005)


# The server. Starting Python and importing the stand-in is most of what a run costs; here each run is a
# fork of a process that has done both. It ends when its standard input does, so it never outlives whoever
# started it.


def serve(path: str) -> None:
    """Run one profiler per connection to the socket `path`, until standard input ends."""
    # Imported before the first fork, so that no run pays for it.
    import rpl_testkit.hipcc_standin  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that look after a run
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(16)
        while True:
            ready, _, _ = select.select([listener, sys.stdin.fileno()], [], [])
            if listener not in ready:
                # Whoever made the folder for it may have been killed.
                Path(path).unlink(missing_ok=True)
                Path(path).parent.rmdir()
                return
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _serve(connection)
            connection.close()


def _serve(client: socket.socket) -> None:
    """Run one command line in a process of its own; pass signals on and the end back. Does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    size, streams, _, _ = socket.recv_fds(client, _SIZE.size, 3)
    content = _receive(client, _SIZE.unpack(size)[0])
    worker = os.fork()
    if worker == 0:
        client.close()
        _work(content, streams)
    for stream in streams:
        os.close(stream)
    end = os.pidfd_open(worker)
    while True:
        ready, _, _ = select.select([client.fileno(), end], [], [])
        if end in ready:
            client.sendall(_STATUS.pack(os.waitpid(worker, 0)[1]))
            os._exit(0)
        numbers = client.recv(64)
        if not numbers:  # the client was killed: all of ours goes with it
            os.killpg(0, signal.SIGKILL)
        for number in numbers:
            os.kill(worker, number)


def _receive(client: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size and (part := client.recv(size - len(content))):
        content += part
    return content


def _work(content: bytes, streams: list[int]) -> None:
    """Become the profiler of the client. Does not return."""
    words = content.decode("utf-8", "surrogateescape").split("\0")[:-1]
    directory, count = words[0], int(words[1])
    arguments, variables = words[2 : 2 + count], words[2 + count :]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    code = 1
    try:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update((name, value) for name, _, value in (v.partition("=") for v in variables))
        code = main(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except Exception:  # noqa: BLE001 - as the interpreter does at its top
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
