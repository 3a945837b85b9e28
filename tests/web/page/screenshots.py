"""Screenshots for README and docs: `python -m tests.web.page.screenshots <folder>`. They show an invented example."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.web.page import example
from tests.web.page.browser import browsing, tab_of
from tests.web.rest.served import served

MOST_BYTES: Final = 120_000
_HEIGHT: Final = 720
_VIEWS: Final = {
    "ask": "/ask?q=When+is+the+launch%3F",
    "now": "/now",
    "given": "/given/{entry_id}",
    "known": "/known",
    "known-found": "/known?show=found",
    "known-disagree": "/known?show=disagree",
    "timeline": "/timeline",
    "session": "/s/{session_id}",
    "record": "/r/{record_id}",
    "house": "/house",
}


def save(folder: Path) -> None:
    """Write a picture of each view, and of Ask in the dark scheme."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as empty, served(Path(empty)) as server:
        filled = example.fill(server.database)
        with browsing() as browser:
            looks: list[tuple[str, str, Any]] = [(name, path, "light") for name, path in _VIEWS.items()]
            for name, path, scheme in [*looks, ("ask-dark", _VIEWS["ask"], "dark")]:
                with tab_of(browser, server, scheme=scheme) as tab:
                    tab.page.set_viewport_size({"width": 1_200, "height": _HEIGHT})
                    tab.open(path.format(**filled))
                    if name.startswith("ask"):
                        tab.says("document.querySelector('.why').open = true")
                    file = folder / f"{name}.png"
                    tab.page.screenshot(path=file)
                    assert file.stat().st_size <= MOST_BYTES, (name, file.stat().st_size)


if __name__ == "__main__":
    save(Path(sys.argv[1]))
