"""What is played with each host: told in one conversation, asked in another, and all that must and must not happen.

Each scene says its claims to a report. A claim that does not hold is a fault of kalito, or of what it knows of a host.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from tests.e2e_hosts.home import Home
from tests.e2e_hosts.model_api import ModelApi, Request
from tests.e2e_hosts.programs import Program

TOLD: Final = "My dentist is Dr. Okafor in Harbour Street."
ASKED: Final = "Who is my dentist?"
AGAIN: Final = "In which street is my dentist?"
PAUSED: Final = "My plumber is Mr. Quist in Mill Lane."
AFTER: Final = "Is my dentist far from here?"
SUMMARY: Final = "The user asked for the dentist twice, and was told the name and the street."
REPLIES: Final = {
    TOLD: "Noted, I will remember the name.",
    ASKED: "That is the doctor you told me of.",
    AGAIN: "It is the street you told me of.",
    PAUSED: "Good to know for the next leak.",
    AFTER: "I cannot say how far.",
}
SCRIPT: Final = (
    ("detailed summary", f"<analysis>Short.</analysis>\n<summary>\n{SUMMARY}\n</summary>"),
    # What is remembered is put before a prompt by some hosts, and was said before it.
    *((prompt, REPLIES[prompt]) for prompt in (AFTER, PAUSED, AGAIN, ASKED, TOLD)),
)
_TRIES: Final = 3
_BLOCK: Final = re.compile(r"(?:<|&lt;)kalito-memory \w+(?:>|&gt;)(.*?)(?:<|&lt;)/kalito-memory", re.DOTALL)


@dataclass(slots=True)
class Report:
    """What held, and what did not. `say` gets each line as it comes."""

    say: Callable[[str], object]
    faults: int = 0
    notes: list[str] = field(default_factory=list[str])

    def claim(self, words: str, *, holds: bool, seen: object = "") -> None:
        """Say whether a claim holds, and what was seen if it does not."""
        self.faults += not holds
        self.say(f"  {'ok   ' if holds else 'FAULT'} {words}")
        if not holds and seen:
            self.say("        " + str(seen).strip()[-2000:].replace("\n", "\n        "))

    def note(self, words: str) -> None:
        """Say what is no fault, but was not tried."""
        self.say(f"  --    {words}")


def play(program: Program, home: Home, api: ModelApi, report: Report) -> None:
    """All scenes, in order. AssertionError if one cannot go on."""
    home.write(program.files(api.url))
    before = home.files()
    _install_and_uninstall(program, home, report)
    home.kalito("install", program.key, "--yes")
    written = {path for path, content in home.files().items() if before.get(path) != content}

    _said(program.new, TOLD, home, api, report)
    with ExitStack() as windows:
        if not program.starts_in_time:
            windows.enter_context(home.another_window())
        _recall(program, home, api, report)
        records = home.records()
        for prompt, times in ((TOLD, 1), (ASKED, None), (AGAIN, 1)):
            _recorded(records, "user", prompt, times, report)
            _recorded(records, "assistant", REPLIES[prompt], times, report)
        _compaction(program, home, report)
        _pause(program, home, api, report)
    _leave(program, home, api, before, written, report)
    report.claim("the stand-in was asked nothing that it does not know", holds=not api.unknown, seen=api.unknown)


def remembered_in(request: Request) -> list[str]:
    """The lines that kalito put before the model."""
    return [line for block in _BLOCK.findall(request.text) for line in block.splitlines() if line.startswith("- ")]


def _install_and_uninstall(program: Program, home: Home, report: Report) -> None:
    before = home.files()
    home.kalito("install", program.key, "--yes")
    once = home.files()
    home.kalito("install", program.key, "--yes")
    twice = home.files()
    home.kalito("uninstall", program.key, "--yes")
    report.claim("install writes something", holds=once != before)
    report.claim("a second install changes nothing", holds=once == twice, seen=_changed(once, twice))
    after = home.files()
    report.claim("uninstall gives back every byte", holds=after == before, seen=_changed(before, after))


def _said(words: tuple[str, ...], prompt: str, home: Home, api: ModelApi, report: Report) -> Request | None:
    """Say a prompt; the request that the model got of it, if it did."""
    first = len(api.requests)
    done = home.run(*words, prompt)
    requests = [request for request in api.requests[first:] if prompt in request.newest]
    # Hosts let the model also find a title and the like, in shorter requests.
    request = max(requests, key=lambda one: len(one.text), default=None)
    report.claim(
        f"its user sees the reply to: {prompt}",
        holds=done.code == 0 and request is not None and REPLIES[prompt] in done.said,
        seen=f"exit code {done.code}, {len(requests)} requests: {done.said}",
    )
    return request


def _recall(program: Program, home: Home, api: ModelApi, report: Report) -> None:
    lines: list[str] = []
    silent = 0
    for _ in range(_TRIES):
        request = _said(program.new, ASKED, home, api, report)
        lines = remembered_in(request) if request else []
        if lines:
            break
        silent += 1
    held = any("Okafor" in line for line in lines)
    report.claim("what the model receives in a new conversation holds what an earlier one told", holds=held, seen=lines)
    if held and silent:
        report.note(f"{silent} new conversations before it were given nothing: the memory was not open in time")
    request = _said(program.resumed, AGAIN, home, api, report)
    before, lines = Counter(lines), remembered_in(request) if request else []
    own = [line for line in lines for said in (ASKED, REPLIES[ASKED], AGAIN) if said in line]
    twice = [line for line in Counter(lines) - before if "Okafor" in line]
    report.claim("the resumed conversation is not given its own words", holds=not own or bool(silent), seen=own)
    report.claim("and nothing a second time", holds=not twice, seen=twice)


def _recorded(
    records: "dict[tuple[str, str, str], int]", role: str, text: str, times: int | None, report: Report
) -> None:
    """That a message is in the memory, so often if that is known."""
    found = records.get(("message", role, text), 0)
    holds = found == times if times is not None else found > 0
    report.claim(f"{role}: {text!r} is in the database{' once' if times else ''}", holds=holds, seen=f"{found} times")


def _compaction(program: Program, home: Home, report: Report) -> None:
    if not program.compact:
        report.note(f"compaction was not tried: {program.why_no_compaction}")
        return
    done = home.run(*program.compact)
    report.claim("the conversation is compacted", holds=done.code == 0, seen=done.said)
    summaries = [text for (_, role, text) in home.records() if role not in ("user", "assistant")]
    held = any(SUMMARY in text for text in summaries)
    report.claim("the host's summary is in the database", holds=held, seen="\n".join(summaries))


def _pause(program: Program, home: Home, api: ModelApi, report: Report) -> None:
    before = home.records()
    home.kalito("pause")
    request = _said(program.new, PAUSED, home, api, report)
    lines = remembered_in(request) if request else []
    report.claim("while it is paused, the model is given nothing", holds=not lines, seen=lines)
    home.kalito("resume")
    after = home.records()
    report.claim("and nothing is recorded", holds=before == after, seen=sorted(after - before))
    report.claim("nor written anywhere", holds=not home.is_written_anywhere("Quist"))


def _leave(
    program: Program, home: Home, api: ModelApi, before: dict[str, bytes], written: set[str], report: Report
) -> None:
    home.kalito("uninstall", program.key, "--yes")
    after = home.files()
    kept = {path for path in written if b"kalito" in after.get(path, b"")}
    report.claim("uninstall takes out everything, also of files that the host has changed", holds=not kept, seen=kept)
    same = [path for path in written & set(before) if after.get(path) == before[path]]
    rewritten = sorted(written & set(before) - set(same))
    if rewritten:
        report.note(f"the host itself has changed {', '.join(rewritten)}")
    records = home.records()
    request = _said(program.new, AFTER, home, api, report)
    lines = remembered_in(request) if request else []
    is_left = not lines and home.records() == records
    report.claim("after that, nothing is given and nothing is recorded", holds=is_left, seen=lines)


def _changed(before: dict[str, bytes], after: dict[str, bytes]) -> Iterator[str] | list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
