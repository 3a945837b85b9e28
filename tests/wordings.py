"""The sentences that callers read, approved in one file, so that tests assert codes and fields and no words.

After a change on purpose, run the tests that failed with RENEW_WORDINGS=1, and read the difference.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("wordings.json")


def approve(chapter: str, sentences: Any) -> None:
    """Check that a chapter of the file holds these sentences and no others."""
    approved = json.loads(FILE.read_text(encoding="utf-8"))
    if os.environ.get("RENEW_WORDINGS"):
        approved[chapter] = sentences
        FILE.write_text(json.dumps(approved, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert approved.get(chapter) == sentences, "renew tests/wordings.json if that was on purpose: see tests/wordings.py"
