"""A headless Chromium behind its DevTools protocol: one page at a time, every complaint of it kept.

Plain protocol messages over one WebSocket are all that the tests need: no driver program whose version must
match the browser's, and no download of a browser.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_PATIENCE_S = 60


class Page:
    """The open page. ``complaints`` holds console messages of warnings and errors, uncaught exceptions and
    violations of the page's policy; ``requests`` every address that was asked for.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._sent = 0
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def attach(self) -> None:
        """Open an empty page and listen to it."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """Call a protocol method and return its result."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=_PATIENCE_S))
            if answer.get("id") == self._sent:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(
        self, path: Path, *, scripts: bool = True, dark: bool = False, width: int = 1280, height: int = 900
    ) -> None:
        """Load a file and wait until it is drawn."""
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.media(dark=dark)
        self.resize(width, height)
        self._events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait(lambda: any(event["method"] == "Page.loadEventFired" for event in self._events))
        if scripts:
            self.settle()

    def media(self, *, dark: bool = False, media: str = "") -> None:
        """Light or dark, screen or print."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", media=media, features=features)

    def resize(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def settle(self) -> None:
        """Let two frames go by, which is when observers and redraws have run."""
        self.send(
            "Runtime.evaluate",
            expression="new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))",
            awaitPromise=True,
        )

    def wait(self, condition: Callable[[], object]) -> None:
        """Until ``condition`` holds; events of the page are read meanwhile."""
        end = time.monotonic() + _PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("the page did not get there in time")
            with suppress(TimeoutError):
                self._note(json.loads(self._socket.recv(timeout=0.05)))

    def evaluate(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys one after the other, such as "Tab", "Enter", "+"."""
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = {"Tab": 9, "Enter": 13, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}.get(key, 0)
            event = {"key": key, "windowsVirtualKeyCode": code}
            self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
            self.send("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path: Path, *, full: bool = True) -> bytes:
        """Write a PNG of the page."""
        options: dict[str, Any] = {"format": "png"}
        if full:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            options |= {
                "captureBeyondViewport": True,
                "clip": {
                    "x": 0,
                    "y": 0,
                    "width": size["width"],
                    "height": min(size["height"], 16000),
                    "scale": 1,
                },
            }
        data = base64.b64decode(self.send("Page.captureScreenshot", **options)["data"])
        path.write_bytes(data)
        return data

    def pdf(self, path: Path) -> bytes:
        """Print to PDF on A4."""
        answer = self.send("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)
        data = base64.b64decode(answer["data"])
        path.write_bytes(data)
        return data

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method", ""), event.get("params", {})
        self._events.append({"method": method})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:500])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])


@contextmanager
def chromium(program: Path, profile: Path) -> Iterator[Page]:
    """A running browser with an empty page; ``profile`` is an empty folder for it."""
    process = subprocess.Popen(
        [str(program), *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        port, path = _address(profile / "DevToolsActivePort", process)
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as socket:
            page = Page(socket)
            page.attach()
            yield page
            page._session = None
            page.send("Browser.close")
        process.wait(timeout=_PATIENCE_S)
    finally:
        process.kill()
        process.wait()


def _address(file: Path, process: subprocess.Popen[bytes]) -> tuple[int, str]:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"Chromium ended with {process.returncode}")
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return int(lines[0]), lines[1]
        time.sleep(0.05)
    raise AssertionError("Chromium did not start in time")
