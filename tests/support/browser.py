"""A headless Chromium, controlled over a pipe by the DevTools protocol, without further
packages."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def found() -> str | None:
    """The installed browser, or None."""
    if sys.platform == "win32":  # Windows has no pipes at the file numbers that the browser reads.
        return None
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """One page. `problems` are the errors of its scripts, and all its requests to a network."""

    def __init__(self, write: int, read: int) -> None:
        self._write = write
        self._read = read
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command; returns the browser's answer."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._read, 1 << 16)
            if not data:
                raise RuntimeError("the browser has ended")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                self.problems.append(details.get("exception", {}).get("description", str(details)))
            case "Log.entryAdded" if event["params"]["entry"]["level"] == "error":
                self.problems.append(event["params"]["entry"]["text"])
            case "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "about:")):
                    self.problems.append(f"asks for {url}")

    def open(self, path: Path) -> None:
        """Opens a file and waits until it is loaded."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.run("new Promise(done => document.readyState === 'complete' ? done() : "
                 "addEventListener('load', () => done()))")  # fmt: skip

    def run(self, script: str) -> Any:
        """The value of a script in the page; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def first_paint(self) -> float:
        """Seconds from the page's beginning to its first contents on the screen."""
        milliseconds = self.run("""new Promise(done => new PerformanceObserver(list => {
            for (const entry of list.getEntries())
              if (entry.name === "first-contentful-paint") done(entry.startTime);
        }).observe({ type: "paint", buffered: true }))""")
        return float(milliseconds) / 1000

    def type(self, text: str) -> None:
        """Types into the focused element."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Presses a key by its name in the DOM, as `ArrowDown`."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def look(self, path: Path, width: int, height: int, dark: bool = False) -> None:
        """Saves a picture of the page on a screen of this size."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser() -> Iterator[Page]:
    """A page of a new browser."""
    command = found()
    assert command is not None
    flags = (
        "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--mute-audio",
    )  # fmt: skip
    theirs, write = os.pipe()
    read, other = os.pipe()

    def place() -> None:
        # It reads commands from 3 and writes answers to 4.
        first, second = os.dup(theirs), os.dup(other)
        os.dup2(first, 3)
        os.dup2(second, 4)

    with tempfile.TemporaryDirectory(prefix="bridge-browser-", ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            [command, *flags, f"--user-data-dir={home}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=place,
        )
        os.close(theirs)
        os.close(other)
        try:
            yield Page(write, read)
        finally:
            os.close(write)
            os.close(read)
            process.terminate()
            process.wait(30)
