"""A browser without a window, driven by the protocol WebDriver of the W3C."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.extras.conftest import require_program

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key of a reference to an element, by the standard."""

_SECONDS = 60.0


class Browser:
    """A session; selectors are those of CSS."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}/{path}".rstrip("/"), data, method=method)
        with urlopen(request, timeout=_SECONDS) as answer:
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        self.ask("POST", "url", {"url": url})

    def run(self, script: str) -> Any:
        return self.ask("POST", "execute/sync", {"script": script, "args": []})

    def wait(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true."""
        until = time.monotonic() + _SECONDS
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < until, condition
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        self.ask("POST", f"element/{self._find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        self.ask("POST", f"element/{self._find(selector)}/value", {"text": text})

    def text(self, selector: str) -> str:
        return self.ask("GET", f"element/{self._find(selector)}/text")

    def resize(self, width: int, height: int) -> None:
        self.ask("POST", "window/rect", {"width": width, "height": height})

    def save_picture(self, path: Path) -> None:
        path.write_bytes(b64decode(self.ask("GET", "screenshot")))

    def errors(self) -> list[str]:
        """Return what the console reported since the last call, such as a refused request."""
        return [entry["message"] for entry in self.ask("POST", "se/log", {"type": "browser"})]

    def _find(self, selector: str) -> str:
        return self.ask("POST", "element", {"using": "css selector", "value": selector})[_ELEMENT]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser; skip the test without one."""
    driver = require_program("chromedriver")
    binary = require_program("chromium", "chromium-browser", "google-chrome")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'user'}",
    ]
    options = {"binary": binary, "args": arguments}
    capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    with subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL) as process:
        try:
            base = f"http://127.0.0.1:{port}"
            _wait_for(f"{base}/status")
            asked = Browser(base).ask(
                "POST", "session", {"capabilities": {"alwaysMatch": capabilities}}
            )
            session = Browser(f"{base}/session/{asked['sessionId']}")
            try:
                yield session
            finally:
                session.ask("DELETE", "")
        finally:
            process.terminate()


def _wait_for(url: str) -> None:
    until = time.monotonic() + _SECONDS
    while True:
        try:
            urlopen(url, timeout=_SECONDS).close()
            return
        except URLError:
            assert time.monotonic() < until, url
            time.sleep(0.05)
