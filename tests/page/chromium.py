"""A real headless Chromium, driven over its DevTools pipe: two descriptors, JSON between NUL bytes, nothing to install beside it.

Only what the tests of the page need: open an address, evaluate an expression, take a picture, and remember everything that went wrong.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or ""
MISSING = "Chromium is not installed (Debian package chromium)"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--mute-audio",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 60.0  # seconds in which anything that must happen has happened, on any machine
POLL_INTERVAL = 0.05
HIGH_DESCRIPTOR = 64  # above 3 and 4, which the browser reads and writes


class Browser:
    """One browser process. Each page in it has a window of its own, so that none is slowed down because another hides it."""

    def __init__(self, folder: Path) -> None:
        self._serial = 0
        self._rest = b""
        self._answers: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}
        to_read, self._to = _pipe()
        self._from, to_write = _pipe()
        actions = [
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, to_read, 3),
            (os.POSIX_SPAWN_DUP2, to_write, 4),
        ]
        command = [PROGRAM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self.pid = os.posix_spawn(PROGRAM, command, os.environ, file_actions=actions, setpgroup=0)
        os.close(to_read)
        os.close(to_write)

    @contextmanager
    def page(self) -> Iterator[Page]:
        """An empty page with storage of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context, newWindow=True)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        try:
            for domain in ("Page", "Runtime", "Network", "Log"):
                page.call(f"{domain}.enable")
            yield page
        finally:
            del self._pages[session]
            self.call("Target.disposeBrowserContext", browserContextId=context)

    def call(self, method: str, *, session: str = "", **params: Any) -> dict[str, Any]:
        self._serial += 1
        serial = self._serial
        message: dict[str, Any] = {"id": serial, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        self._read_until(lambda: serial in self._answers, method)
        answer = self._answers.pop(serial)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    def _read_until(self, holds: Callable[[], bool], what: str) -> None:
        end_at = time.monotonic() + PATIENCE
        while not holds():
            ready, _, _ = select.select([self._from], [], [], max(0.0, end_at - time.monotonic()))
            assert ready, f"the browser does not answer: {what}"
            data = os.read(self._from, 1 << 20)
            assert data, f"the browser ended: {what}"
            *messages, self._rest = (self._rest + data).split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
        elif message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]].hear(message["method"], message.get("params", {}))

    def close(self) -> None:
        os.close(self._to)
        os.close(self._from)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Page:
    """One page, and everything that went wrong in it."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.errors: list[str] = []  # console errors and warnings, exceptions, failed requests
        self._browser, self._session = browser, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, session=self._session, **params)

    def open(self, url: str, *, dark: bool = False, width: int = 1440, height: int = 1000, scale: float = 1.0, calm: bool = False) -> None:
        """Show an address in a window of this size; ``calm`` asks for reduced motion."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 500)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, motion])
        self.call("Page.navigate", url=url)

    def js(self, expression: str) -> Any:
        """The value of an expression, awaited; what it throws is raised here."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {_told(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until it is true; says what the page showed if it never is."""
        end_at = time.monotonic() + PATIENCE
        while not self.js(f"Boolean({expression})"):
            assert time.monotonic() < end_at, f"never true: {expression}\n{self.js('document.body.innerText')}\n{self.errors}"
            time.sleep(POLL_INTERVAL)

    def press(self, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path, part: str = "") -> None:
        """Of the window, or of the part of the page that this selector names."""
        clip: dict[str, Any] = {}
        if part:
            box = self.js(f"document.querySelector({part!r}).getBoundingClientRect().toJSON()")
            clip = {"clip": {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"], "scale": 1.0}}
            clip["captureBeyondViewport"] = True
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **clip)["data"]))

    def hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.errors.append(_told(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str([each.get("value", each.get("description")) for each in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.loadingFailed" and not params.get("canceled"):
            self.errors.append(f"request failed: {params['errorText']}")
        elif method == "Network.responseReceived" and params["response"]["status"] >= 400:
            self.errors.append(f"{params['response']['status']} {params['response']['url']}")


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    started = Browser(folder)
    try:
        yield started
    finally:
        started.close()


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are high enough not to be overwritten by the descriptors they become."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR) for each in low)
    for each in low:
        os.close(each)
    return high[0], high[1]


def _told(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details.get("text"))
