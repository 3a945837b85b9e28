"""A day of twenty turns in two repositories, with one memory and a model that does what it is asked.

In each repository a morning, an afternoon that begins a new conversation, and an evening with one question. What is
said in one repository stays there; what the person is goes everywhere.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from tests.e2e_hosts.home import Home
from tests.e2e_hosts.model_api import ModelApi, Request
from tests.e2e_hosts.obedient import SEARCH, Obedient, steps_of
from tests.e2e_hosts.programs import Program
from tests.e2e_hosts.scenes import Report, remembered_in


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt and the reply to it. `told` are words that the memory must bring for a question."""

    prompt: str
    reply: str
    told: tuple[str, ...] = ()
    is_new: bool = False
    """Whether it begins a conversation."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with its day. `rule` is what is to be remembered there, `own` are words that belong to it alone,
    besides its name."""

    name: str
    rule: str
    own: tuple[str, ...]
    turns: tuple[Turn, ...]


_PERSON: Final = "allergic to walnuts"
_PARCELS: Final = Repository(
    "parcels",
    "we write migrations by hand, with a down step",
    ("Zephyrline", "HMAC-SHA512", "4 attempts", "down step", "Quince", "quince"),
    (
        Turn("The courier Zephyrline signs its webhooks with HMAC-SHA512.", "Noted for Zephyrline.", is_new=True),
        Turn(f"I'm {_PERSON}.", "I will keep that in mind when I suggest food."),
        Turn("Propose a retry policy for the Zephyrline adapter.", "I propose 5 attempts, 8 seconds apart."),
        Turn("Agreed, but make it 4 attempts, 6 seconds apart.", "Done: the policy has 4 attempts now."),
        Turn("Remember: in this repo we write migrations by hand, with a down step.", "I will keep to that."),
        Turn(
            "How many attempts did we agree on for the Zephyrline adapter?",
            "As to the attempts:",
            told=("4 attempts",),
            is_new=True,
        ),
        Turn("How does Zephyrline sign its webhooks?", "As to the webhooks of Zephyrline:", told=("HMAC-SHA512",)),
        Turn("The printer in Hall Quince takes ZPL, not PDF.", "ZPL for Hall Quince, then."),
        Turn(
            "Next I have to mend test_quince_jam, which still fails.", "That is where we go on, with test_quince_jam."
        ),
        Turn("Where did I leave off?", "You stopped here:", told=("test_quince_jam",), is_new=True),
    ),
)
_BAKERY: Final = Repository(
    "bakery",
    "we never use inline styles",
    ("Medusa", "kroner", "rye bread", "cardamom", "inline styles", "Signe"),
    (
        Turn(
            "The checkout runs on Medusa, and its prices are in kroner.", "Medusa, with prices in kroner.", is_new=True
        ),
        Turn("Do we ship the rye bread to Norway?", "As to shipping:"),
        Turn("Propose a layout for the landing page.", "I propose three columns, the rye bread in the middle."),
        Turn("Agreed, but only two columns, and the cardamom buns first.", "Done: two columns, cardamom buns first."),
        Turn("Remember: in this repo we never use inline styles.", "Never, then."),
        Turn(
            "How many columns did we agree on for the landing page?",
            "As to the columns:",
            told=("two columns",),
            is_new=True,
        ),
        Turn("What am I allergic to?", "As to what you cannot eat:", told=(_PERSON,)),
        Turn("Signe brings the photos on Thursday.", "Thursday, from Signe."),
        Turn(
            "Next I have to crop Signe's photos for the bun gallery.", "We go on with the photos for the bun gallery."
        ),
        Turn("Good evening, where did I leave off?", "You were here:", told=("bun gallery",), is_new=True),
    ),
)
_ORDER: Final = tuple(
    (repository, replace(repository, turns=repository.turns[part]))
    for part in (slice(0, 5), slice(5, 9), slice(9, 10))
    for repository in (_PARCELS, _BAKERY)
)
REPLIES: Final = {turn.prompt: turn.reply for one in (_PARCELS, _BAKERY) for turn in one.turns}


@dataclass(slots=True)
class _Seen:
    """What a day showed."""

    unanswered: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    """What the memory did not bring."""
    strays: list[str] = field(default_factory=list[str])
    """Words of one repository that reached the model in the other."""
    rules: list[str] = field(default_factory=list[str])
    """What a new conversation knew of the rule, where it was not there once."""


def spend(program: Program, home: Home, api: ModelApi, model: Obedient, report: Report) -> None:
    """The whole day. AssertionError if it cannot go on."""
    home.write(program.files(api.url))
    for one in (_PARCELS, _BAKERY):
        made = home.run("git", "init", "--quiet", str(home.folder / one.name))
        assert made.code == 0, made.said
    home.kalito("install", program.key, "--yes")
    seen = _Seen()
    with ExitStack() as windows:
        if not program.starts_in_time:
            windows.enter_context(home.another_window())
        for repository, part in _ORDER:
            for turn in part.turns:
                _take(turn, repository, program, home, api, seen)
    _judge(seen, model, home, report)


def _take(turn: Turn, repository: Repository, program: Program, home: Home, api: ModelApi, seen: _Seen) -> None:
    first = len(api.requests)
    words = program.new if turn.is_new else program.resumed
    done = home.run(*words, *(program.allowed or ()), turn.prompt, folder=home.folder / repository.name)
    requests = api.requests[first:]
    if done.code or turn.reply not in done.said:
        seen.unanswered.append(f"{turn.prompt}: exit code {done.code}, {len(requests)} requests: {done.said[-600:]}")
    [other] = {_PARCELS, _BAKERY} - {repository}
    sent = "\n".join(request.text for request in requests)
    seen.strays += [f"{word!r} at: {turn.prompt}" for word in (f"/{other.name}", *other.own) if word in sent]
    brought = "\n".join(text for request in requests for text in _brought(request, turn.prompt))
    seen.missing += [f"{word!r} at: {turn.prompt}" for word in turn.told if word not in brought]
    at_once = next((remembered_in(request) for request in requests if request.body.get("tools")), [])
    known = [line for line in at_once if repository.rule in line]
    if turn.is_new and turn.told and len(known) != 1:
        seen.rules.append(f"at {turn.prompt}: {known}")


def _brought(request: Request, prompt: str) -> list[str]:
    """What the memory brought for a prompt, by hooks and by tools."""
    steps = list(steps_of(request))
    began = max((at for at, one in enumerate(steps) if (one.kind, one.text) == ("user", prompt)), default=len(steps))
    return [*remembered_in(request), *(one.text for one in steps[began:] if one.kind == "result")]


def _judge(seen: _Seen, model: Obedient, home: Home, report: Report) -> None:
    calls = ", ".join(f"{name} {count} times" for name, count in sorted(Counter(model.calls).items()))
    report.note(f"its model called {calls}")
    _claim(f"its user sees the answer to each of {len(REPLIES)} prompts", seen.unanswered, report)
    said = [(role, text) for kind, role, text in home.records().elements() if kind == "message"]
    wanted = [*(("user", prompt) for prompt in REPLIES), *(("assistant", reply) for reply in REPLIES.values())]
    stored = [(role, _as_wanted(text)) for role, text in said if role in ("user", "assistant")]
    wrong = (Counter(stored) - Counter(wanted)) + (Counter(wanted) - Counter(stored))
    _claim("each prompt and each answer is in the database once, and nothing else that was said", sorted(wrong), report)
    asked = {prompt for prompt in REPLIES if prompt.endswith("?")}
    _claim(f"{SEARCH} was called at each question", sorted(asked - {one.prompt for one in model.searches}), report)
    firsts = [(one.prompt, str(one.hits[0]["text"])) for one in model.searches if one.hits]
    echoes = [prompt for prompt, first in firsts if prompt.casefold() in first.casefold()]
    _claim("its first hit is never the prompt itself, nor a copy", echoes, report)
    _claim("no words of one repository reach the model in the other", seen.strays, report)
    _claim("what was asked about does: decisions, the person, where the work ended", seen.missing, report)
    _claim("a new conversation knows the rule of its repository, once", seen.rules, report)


def _as_wanted(text: str) -> str:
    """The text without the hit that a question got."""
    return next((reply for reply in REPLIES.values() if text.startswith(f"{reply} ")), text)


def _claim(words: str, faults: Sequence[object], report: Report) -> None:
    """That there is no fault."""
    report.claim(words, holds=not faults, seen="\n".join(map(str, faults)))
