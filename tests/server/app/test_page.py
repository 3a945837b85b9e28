"""The App's page in a host that plays a part: what it shows, and what it sends."""

from typing import Any

from playwright.sync_api import Browser, expect

from tests.server.app.standin import host

TWO: dict[str, Any] = {
    "content": [{"type": "text", "text": "2 hits."}],
    "_meta": {
        "kalito/records": [
            {
                "record_id": "msg_1",
                "type": "message",
                "role": "user",
                "text": "I live in Lyon.",
                "created_at": "2026-03-02T10:00:00Z",
                "why": 'says "live" (+0.38)',
            },
            {"record_id": "pin_2", "type": "pin", "text": "Tea at five.", "created_at": "2026-03-03T10:00:00Z"},
        ]
    },
}


def test_the_records_of_a_result_are_shown_with_why(browser: Browser) -> None:
    with host(browser) as opened:
        opened.notify("tool-input", {"arguments": {"query": "where do I live"}})
        opened.notify("tool-result", TWO)
        expect(opened.app.locator("h1")).to_have_text("What I used for “where do I live”")
        expect(opened.app.locator("li")).to_have_count(2)
        expect(opened.app.locator("li").first).to_contain_text("you said it, 2 Mar 2026")
        expect(opened.app.locator("li").first).to_contain_text('says "live" (+0.38)')
        assert opened.hidden_height() <= 0
