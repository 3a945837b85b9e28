"""A host that shows MCP Apps, in Chromium: a sandboxed frame with the specification's default policy. It keeps the
order of the handshake, checks each message of the page, and passes calls of tools on to a real server."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import ConsoleMessage, Frame, FrameLocator, Page

from kalito_mcp.server.app.offering import PAGE

CHROMIUM: Final = Path("/usr/bin/chromium")
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)
"""What a host sets for a page that declares no domains."""
TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
MARGINS: Final = (
    "addEventListener('securitypolicyviolation', e => console.error('violation of ' + e.violatedDirective))"
)
CAPABILITIES: Final[Mapping[str, Any]] = {"serverTools": {}, "updateModelContext": {"text": {}}}
INITIALIZED: Final = {
    "protocolVersion": "2026-01-26",
    "hostInfo": {"name": "stand-in", "version": "1"},
    "hostCapabilities": CAPABILITIES,
    "hostContext": {
        "theme": "light",
        "displayMode": "inline",
        "containerDimensions": {"width": 640, "maxHeight": 500},
        "locale": "en-GB",
        "timeZone": "UTC",
    },
}
_HOST: Final = """<!doctype html><html lang="en"><head><title>Host</title></head><body>
<iframe title="App" sandbox="allow-scripts" style="border:0;width:640px;height:0"></iframe></body></html>"""
_SCRIPT: Final = """
(() => {
const frame = document.querySelector("iframe"), app = () => frame.contentWindow;
window.messages = [];
window.post = message => app().postMessage({jsonrpc: "2.0", ...message}, "*");
addEventListener("message", async event => {
  if (event.source !== app()) return;
  const message = event.data;
  messages.push(message);
  if (message.method === "ui/notifications/size-changed") {
    frame.style.height = message.params.height + "px";
    return;
  }
  for (const answer of await window.answers(message)) post(answer);
});
window.show = html => { frame.srcdoc = html; };
})();
"""
Call = Callable[[str, dict[str, Any]], dict[str, Any]]
Scheme = Literal["light", "dark"]
"""Calls a tool, and returns its result as on the wire."""


def no_call(name: str, _arguments: dict[str, Any]) -> dict[str, Any]:
    """For pages that have to call nothing."""
    raise AssertionError(f"{name} was called")


class Host:
    """A page of the host, with the App in it. `faults` are errors of the console and violations of the policy."""

    def __init__(self, page: Page, call: Call, initialized: Mapping[str, Any]) -> None:
        self.page = page
        self.faults: list[str] = []
        self._call = call
        self._initialized = initialized
        self._is_answered = self._is_ready = False
        self._queue: list[dict[str, Any]] = []
        page.set_content(_HOST)
        page.evaluate(_SCRIPT)

    @property
    def app(self) -> FrameLocator:
        """What the App shows."""
        return self.page.frame_locator("iframe")

    @property
    def frame(self) -> Frame:
        """The App's document."""
        return self.page.frames[1]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What the App has sent."""
        found: list[dict[str, Any]] = self.page.evaluate("messages")
        return found

    def sent(self, method: str) -> list[Any]:
        """The parameters of its messages with this method."""
        return [one.get("params") for one in self.messages if one.get("method") == method]

    def load(self) -> None:
        """Load the App into its frame."""
        html = PAGE.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">')
        self.page.evaluate("html => show(html)", html)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification, as soon as the App has said that it is ready."""
        message = {"method": f"ui/notifications/{method}", "params": dict(params)}
        if self._is_ready:
            self.page.evaluate("message => post(message)", message)
        else:
            self._queue.append(message)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The App's answer to a request of the host."""
        self.page.evaluate("message => post(message)", {"id": 900, "method": method, "params": dict(params or {})})
        self.page.wait_for_function("messages.some(one => one.id === 900 && !one.method)")
        return next(one for one in self.messages if one.get("id") == 900 and "method" not in one)

    def violations(self) -> list[str]:
        """What axe finds wrong by WCAG 2.2 AA."""
        self.frame.evaluate(AXE_SCRIPT)
        found = self.frame.evaluate("tags => axe.run({runOnly: tags})", TAGS)
        return [f"{one['id']}: {node['html']}" for one in found["violations"] for node in one["nodes"]]

    def height(self) -> int:
        """How high the App's frame is, in pixels."""
        found: int = self.page.evaluate("document.querySelector('iframe').offsetHeight")
        return found

    def hidden_height(self) -> int:
        """How many pixels of the App's page can only be seen by scrolling in it."""
        found: int = self.frame.evaluate("document.documentElement.scrollHeight - innerHeight")
        return found

    def heard(self, message: ConsoleMessage) -> None:
        """Keep it if it is a fault."""
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def answers(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """What the host posts after a message of the App."""
        method = message.get("method")
        if method == "ui/initialize":
            assert not self._is_answered
            self._is_answered = True
            key = "error" if "code" in self._initialized else "result"
            return [{"id": message["id"], key: dict(self._initialized)}]
        assert self._is_answered, f"{method} came before the handshake"
        if method == "ui/notifications/initialized":
            assert "code" not in self._initialized, "the App went on after it was refused"
            self._is_ready = True
            waiting, self._queue = self._queue, []
            return waiting
        assert self._is_ready or method is None, f"{method} came before the App was ready"
        if method == "tools/call":
            assert "serverTools" in self._initialized["hostCapabilities"]
            return [self._called(message)]
        if method == "ui/update-model-context":
            assert "updateModelContext" in self._initialized["hostCapabilities"]
            return [{"id": message["id"], "result": {}}]
        assert "id" not in message or method is None, f"nobody answers {method}"
        return []

    def _called(self, message: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {
                "id": message["id"],
                "result": self._call(message["params"]["name"], message["params"]["arguments"]),
            }
        except ConnectionError as error:
            return {"id": message["id"], "error": {"code": -32603, "message": str(error)}}


class Screen:
    """One page of a browser, for one host after the other: a page of its own would cost a second for each."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._host: Host | None = None
        page.add_init_script(MARGINS)
        page.on("console", lambda message: self._shown().heard(message))
        page.on("pageerror", lambda error: self._shown().faults.append(str(error)))
        page.expose_function("answers", lambda message: self._shown().answers(message))

    def show(self, call: Call, initialized: Mapping[str, Any], *, scheme: Scheme, width: int) -> Host:
        """A host with an App that is loaded, instead of the one before."""
        self._page.goto("about:blank")
        self._page.emulate_media(color_scheme=scheme)
        self._page.set_viewport_size({"width": width + 40, "height": 700})
        self._host = Host(self._page, call, initialized)
        self._page.evaluate("width => document.querySelector('iframe').style.width = width + 'px'", width)
        self._host.load()
        return self._host

    def _shown(self) -> Host:
        assert self._host is not None
        return self._host


@contextmanager
def host(
    screen: Screen, call: Call = no_call, *, scheme: Scheme = "light", width: int = 640, **initialized: Any
) -> Iterator[Host]:
    """A host whose App is loaded, and has no fault when the block ends. `initialized` replaces parts of what it answers
    to `ui/initialize`; with a `code`, it refuses."""
    said = initialized if "code" in initialized else {**INITIALIZED, **initialized}
    opened = screen.show(call, said, scheme=scheme, width=width)
    yield opened
    assert opened.faults == []
    for message in opened.messages:
        check(message)


_PARAMS: Final[Mapping[str, Mapping[str, type | tuple[type, ...]]]] = {
    "ui/initialize": {"protocolVersion": str, "appInfo": dict, "appCapabilities": dict},
    "ui/notifications/initialized": {},
    "ui/notifications/size-changed": {"width": (int, float), "height": (int, float)},
    "ui/update-model-context": {"content": list},
    "tools/call": {"name": str, "arguments": dict},
}
"""By method, the parameters that the specification requires, or that this App always sends, with their types."""


def check(message: Mapping[str, Any]) -> None:
    """Raise AssertionError unless this is what the specification lets an App send."""
    assert message["jsonrpc"] == "2.0"
    method = message.get("method")
    if method is None:
        assert ("result" in message) != ("error" in message)
        assert message.keys() <= {"jsonrpc", "id", "result", "error"}
        return
    fields = _PARAMS[method]
    assert message.keys() <= {"jsonrpc", "id", "method", "params"}
    assert ("id" in message) == ("notifications" not in method)
    assert message["params"].keys() == fields.keys(), method
    assert all(isinstance(message["params"][name], kind) for name, kind in fields.items()), method
    if method == "ui/initialize":
        assert message["params"]["appInfo"].keys() == {"name", "title", "version"}
        assert message["params"]["appCapabilities"] == {"availableDisplayModes": ["inline"]}
    for block in message["params"].get("content", ()):
        assert block.keys() == {"type", "text"}
