"""A server on this machine that answers like an OpenAI-compatible endpoint, with scripted replies.

What it answers is synthetic. Every request is kept, so that a test can look at what was sent.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["LlmServer", "Scripted"]

_CHUNK = 1 << 16


@frozen
class Scripted:
    """One answer. ``body`` replaces the chat completion that ``text`` would be wrapped in.

    ``delay_s`` passes before the first byte, ``drip_s`` between single bytes of the body; ``repeat`` sends
    the body that often without telling its length; ``cut`` closes the connection after that many bytes.
    """

    text: str | None = None
    finish_reason: str | None = "stop"
    usage: Mapping[str, Any] | None = attrs.field(
        factory=lambda: {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    )
    refusal: str | None = None
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes | None = None
    delay_s: float = 0.0
    drip_s: float = 0.0
    repeat: int = 1
    cut: int | None = None

    def content(self) -> bytes:
        """The bytes of the body."""
        if self.body is not None:
            return self.body
        message = {"role": "assistant", "content": self.text, "refusal": self.refusal}
        document = {
            "id": "scripted",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted-model",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason}],
        }
        if self.usage is not None:
            document["usage"] = dict(self.usage)
        return json.dumps(document).encode()


class LlmServer:
    """``with LlmServer([Scripted("..."), ...]) as server``: answers in order; the last one is repeated.

    ``requests`` are the JSON bodies, ``headers`` those of each request with lower-case names.
    """

    def __init__(self, script: list[Scripted]) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, body: bytes, headers: Mapping[str, str]) -> Scripted:
        """The next answer, with the request kept."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(json.loads(body))
            self.headers.append({name.lower(): value for name, value in headers.items()})
        return self.script[min(number, len(self.script) - 1)]

    def wait(self, seconds: float) -> None:
        """Sleep, but not beyond the server's end."""
        if seconds:
            self._stop.wait(seconds)

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: LlmServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    timeout = 30
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        answer = self.server.owner.take(body, dict(self.headers.items()))
        self.server.owner.wait(answer.delay_s)
        try:
            self._answer(answer)
        except OSError:  # the client gave up, as some tests want it to
            self.close_connection = True

    def _answer(self, answer: Scripted) -> None:
        content = answer.content()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.repeat == 1:
            self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if answer.cut is not None:
            self.wfile.write(content[: answer.cut])
        elif answer.drip_s:
            self._drip(content, answer.drip_s)
        else:
            for _ in range(answer.repeat):
                for begin in range(0, len(content), _CHUNK):
                    self.wfile.write(content[begin : begin + _CHUNK])

    def _drip(self, content: bytes, pause_s: float) -> None:
        for byte in content:
            if self.server.owner.stopped:
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(pause_s)

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests look at ``requests``."""
