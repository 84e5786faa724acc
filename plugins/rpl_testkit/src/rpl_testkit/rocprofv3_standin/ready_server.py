"""A stand-in that is kept ready: `python ready_server.py SOCKET` runs one profiler per connection.

Starting Python and importing the stand-in is most of what a run costs; here each run is a fork of a process
that has done both. It ends when its standard input does, so it never outlives whoever started it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
import traceback
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

# Imported before the first fork, so that no run pays for it.
from rpl_testkit.rocprofv3_standin.application import timing_model  # noqa: E402, F401
from rpl_testkit.rocprofv3_standin.main import main  # noqa: E402

_SIZE = struct.Struct("=I")
_STATUS = struct.Struct("=i")


def serve(path: str) -> None:
    """Accept until standard input ends."""
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


if __name__ == "__main__":
    serve(sys.argv[1])
