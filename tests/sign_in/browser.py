"""Chromium without a window, driven over a pipe (the Chrome DevTools protocol)."""

import json
import os
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.server.wire import PATIENCE_S

CHROMIUM: Final = next((found for name in ("chromium", "chromium-browser", "google-chrome")
                        if (found := shutil.which(name))), None)  # fmt: skip


class Chromium:
    """One tab. `events` are what it told on its own, such as messages of the console."""

    def __init__(self, to: int, back: int) -> None:
        self._to = os.fdopen(to, "wb", buffering=0)
        self._back = os.fdopen(back, "rb", buffering=0)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Open the tab."""
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command, and wait for its result."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        self._to.write(json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    @contextmanager
    def other(self, target: str) -> Iterator[None]:
        """Talk to another tab until the block ends."""
        mine, self._session = self._session, None
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        yield
        self._session = mine

    def open(self, url: str) -> None:
        """Load a page to its end."""
        self._loads(lambda: self.do("Page.navigate", url=url))

    def reload(self) -> None:
        self._loads(lambda: self.do("Page.reload"))

    def press_enter(self) -> None:
        """Press Enter, and wait for the page that follows."""

        def press() -> None:
            key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
            self.do("Input.dispatchKeyEvent", type="keyDown", **key)
            self.do("Input.dispatchKeyEvent", type="keyUp", **key)

        self._loads(press)

    def click_twice(self, selector: str) -> None:
        """Double-click in the middle of an element, and wait for the page that follows."""
        middle = "(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector({}).getBoundingClientRect())"
        x, y = self.says(middle.format(json.dumps(selector)))

        def click() -> None:
            for count in (1, 2):
                for kind in ("mousePressed", "mouseReleased"):
                    self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

        self._loads(click)

    def type(self, text: str) -> None:
        self.do("Input.insertText", text=text)

    def says(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.do("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def comes_to_say(self, expression: str, value: object) -> bool:
        """Whether the expression gets the value: the browser sets the focus only when it first draws the page."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.says(expression) == value:
                return True
        return False

    def photograph(self, path: Path, *, scheme: str = "light", width: int = 800) -> None:
        """Write what is seen into a file."""
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=760, deviceScaleFactor=1, mobile=width < 600)
        path.write_bytes(b64decode(self.do("Page.captureScreenshot")["data"]))

    def complaints(self) -> list[str]:
        """What the browser told the console: violations of a policy, and errors."""
        entries = [one["params"]["entry"] for one in self.events if one["method"] == "Log.entryAdded"]
        return [one["text"] for one in entries if one["level"] in ("error", "warning")]

    def _loads(self, act: Any) -> None:
        before = len(self.events)
        act()
        while not any(one["method"] == "Page.loadEventFired" for one in self.events[before:]):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = self._back.read(65_536)
            assert piece, "the browser has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def close(self) -> None:
        self._to.close()
        self._back.close()


@contextmanager
def chromium(folder: Path) -> Iterator[Chromium]:
    """A browser that has seen nothing yet, until the block ends."""
    assert CHROMIUM is not None
    to_read, to = os.pipe()
    back, back_write = os.pipe()
    # The browser expects its pipe at the descriptors 3 and 4.
    command = f'exec "$0" "$@" 3<&{to_read} 4>&{back_write}'
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        f"--user-data-dir={folder / 'browser'}",
        "--remote-debugging-pipe",
    ]
    process = subprocess.Popen(
        ["bash", "-c", command, CHROMIUM, *options],
        pass_fds=(to_read, back_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(back_write)
    tab = Chromium(to, back)
    try:
        tab.attach()
        yield tab
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        tab.close()
