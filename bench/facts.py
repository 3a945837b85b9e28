"""What is true now before what was true once: changed facts, asked for now and for before.

Each case is a memory with fillers, a fact and its change, from templates of this file. `current_first` is the share of
questions about now whose first hit is the newer record, `marked` that of the older records that are labelled with it,
and `older_first` the share of questions about the past whose first hit is the older record.

`false_pairs` are statements about different things in one memory, each with each: any that ends or contradicts another
is wrong. `--bench-data FOLDER` also records the conversations there, and counts what ended and what contradicts
(progress names each, to be read). `versions` are 10,000 versions of one fact: the time to record the last ones, and to
search.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal

from bench.report import emit, latency, options, progress
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

_PEOPLE: Final = ("Marta", "Jonas", "Priya", "Tomas", "Elin", "Omar", "Signe", "Pavel", "Chiara", "Henrik")
_TOWNS: Final = ("Porto", "Graz", "Turin", "Bergen", "Utrecht", "Leeds", "Malaga", "Gdansk", "Nantes", "Tartu")
_FIRMS: Final = ("Globex", "Initech", "Hooli", "Umbrella", "Vandelay", "Wonka", "Cyberdyne", "Tyrell", "Aperture")
_COLORS: Final = ("teal", "crimson", "amber", "violet", "beige", "navy", "maroon", "silver")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Saturday")
_SPORTS: Final = ("swimming", "climbing", "fencing", "sailing", "bowling")
_THINGS: Final = ("Django", "Postgres", "Kafka", "Grafana", "Redis", "Nginx")
_FILLERS: Final = (
    "The soup was too salty, but the bread was lovely.",
    "We watched a film about penguins on Sunday.",
    "The printer is out of paper again.",
    "It rained during the whole hike.",
    "The tomatoes on the balcony are finally red.",
    "There was a long queue at the post office.",
)


@dataclass(frozen=True, slots=True)
class Template:
    """A fact, its change, and what is asked. `{a}` and `{b}` are the values, `{who}` is a name."""

    old: str
    new: str
    now: str
    past: str
    pool: Sequence[str]


_TEMPLATES: Final = (
    Template("I live in {a}.", "I moved to {b} in spring.", "Where do I live now?", "Where did I live before?", _TOWNS),
    Template(
        "{who} lives in {a}.",
        "{who} now lives in {b}.",
        "Where does {who} live?",
        "Where did {who} live before?",
        _TOWNS,
    ),
    Template("I work at {a}.", "I quit, and I joined {b}.", "Where do I work now?", "Where did I work before?", _FIRMS),
    Template(
        "{who} works for {a}.",
        "{who} no longer works for {a}, {who} works for {b}.",
        "Who does {who} work for?",
        "Where did {who} work previously?",
        _FIRMS,
    ),
    Template("My boss is {a}.", "My new boss is {b}.", "Who is my current boss?", "Who was my previous boss?", _PEOPLE),
    Template(
        "{who}'s favorite color is {a}.",
        "{who} switched to {b}.",
        "What is {who}'s favorite color?",
        "What was {who}'s favorite color before?",
        _COLORS,
    ),
    Template(
        "{who} goes to chess club on {a}s.",
        "{who} now goes to chess club on {b}s.",
        "What day does {who} go to chess club?",
        "On what day did {who} go to chess club before?",
        _DAYS,
    ),
    Template(
        "My phone number is 555-01{a}.",
        "I changed my phone number to 555-01{b}.",
        "What is my phone number?",
        "What was my old phone number?",
        [str(n) for n in range(10, 99)],
    ),
    Template(
        "We run Django 4.{a}.",
        "We upgraded Django to 5.{b}.",
        "Which Django version do we run?",
        "Which Django version did we run before?",
        [str(n) for n in range(9)],
    ),
    Template(
        "Our deadline is May {a}.",
        "Our deadline moved to June {b}.",
        "When is our deadline now?",
        "When was our deadline before?",
        [str(n) for n in range(10, 28)],
    ),
    Template("I am vegetarian.", "I switched to a vegan diet.", "What is my diet?", "What was my diet before?", _TOWNS),
    Template(
        "{who} is engaged to {a}.",
        "{who} got married last week.",
        "Is {who} married?",
        "What was {who}'s status before, engaged?",
        _PEOPLE,
    ),
    Template("Ich wohne in {a}.", "Ich wohne jetzt in {b}.", "Wo wohne ich jetzt?", "Wo wohnte ich früher?", _TOWNS),
    Template("Trabajo en {a}.", "Ahora trabajo en {b}.", "¿Dónde trabajo ahora?", "¿Dónde trabajo antes?", _FIRMS),
)


@contextmanager
def opened(portal: BlockingPortal) -> Iterator[Memory]:
    """A memory in a database of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        portal.wrap_async_context_manager(open_memory(Path(folder) / "memory.db")) as memory,
    ):
        yield memory


def record(portal: BlockingPortal, memory: Memory, texts: Sequence[str], session: str = "s") -> list[str]:
    """Record what the user said. Returns the ids."""
    messages = [NewMessage(Role.USER, text) for text in texts]
    return portal.call(memory.record_messages, session, messages).message_ids


def batched(texts: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """The items in runs of this size."""
    return (texts[start : start + size] for start in range(0, len(texts), size))


def changes(portal: BlockingPortal, count: int, seed: int) -> dict[str, float]:
    """The shares of changed facts that are told right."""
    rng = random.Random(seed)
    current = marked = older = 0
    for number in range(count):
        one = _TEMPLATES[number % len(_TEMPLATES)]
        a, b = rng.sample(list(one.pool), 2)
        who = rng.choice([name for name in _PEOPLE if name not in (a, b)])
        with opened(portal) as memory:
            said = [text.format(a=a, b=b, who=who) for text in (one.old, one.new)]
            fillers = rng.sample(_FILLERS, 4)
            ids = record(portal, memory, [*fillers[:2], said[0], *fillers[2:], said[1]])
            old_id, new_id = ids[2], ids[5]
            now = portal.call(memory.search_memory, SearchRequest(query=one.now.format(who=who))).hits
            past = portal.call(memory.search_memory, SearchRequest(query=one.past.format(who=who))).hits
        is_current = bool(now) and now[0].record_id == new_id
        is_marked = any(hit.record_id == old_id and hit.outdated for hit in (*now, *past))
        is_older = bool(past) and past[0].record_id == old_id
        current, marked, older = current + is_current, marked + is_marked, older + is_older
        if not (is_current and is_marked and is_older):
            progress(f"{said}: current first {is_current}, marked {is_marked}, older first {is_older}")
    return {"n": count, "current_first": current / count, "marked": marked / count, "older_first": older / count}


def different_things() -> list[str]:
    """Statements of which no two are about the same thing."""
    found = [f"{who} lives in {town}." for who, town in zip(_PEOPLE, _TOWNS, strict=True)]
    found += [f"{who} works at {firm}." for who, firm in zip(_PEOPLE, _FIRMS, strict=False)]
    found += [f"{who}'s favorite color is {color}." for who, color in zip(_PEOPLE, _COLORS, strict=False)]
    found += [
        f"{who} goes {sport} on {day}s."
        for who, (sport, day) in zip(_PEOPLE, combinations((*_SPORTS, *_DAYS), 2), strict=False)
    ]
    found += [f"{who}'s boss now is {other}." for who, other in zip(_PEOPLE, reversed(_PEOPLE), strict=True)]
    found += [f"We upgraded {thing} to 3.{place}." for place, thing in enumerate(_THINGS)]
    found += [f"{who} now drinks {drink}." for who, drink in zip(_PEOPLE, ("tea", "cocoa") * 5, strict=True)]
    found += [f"{who} no longer smokes." for who in _PEOPLE]
    found += [
        f"My {kin} now lives in {town}."
        for kin, town in zip(("aunt", "uncle", "niece", "cousin"), _TOWNS, strict=False)
    ]
    found += [
        f"Now I like {thing}."
        for thing in ("opera", "jazz", "ballet", "chess", "poker", "rugby", "sudoku", "karaoke", "darts", "fishing")
    ]
    found += [
        f"The {thing} meeting is now on {day}."
        for thing, day in zip(("budget", "design", "staff", "parents'"), _DAYS, strict=False)
    ]
    found += [
        f"We decided to use {thing} for {what}."
        for thing, what in zip(_THINGS, ("search", "billing", "mail", "logs"), strict=False)
    ]
    found += ["I live in Oslo.", "I joined Monsters Inc.", "My boss is Sulley.", "I'm now a vegan.", "I got married."]
    found += [
        f"I moved my {thing} to the {place}."
        for thing, place in (("desk", "attic"), ("bike", "cellar"), ("piano", "hall"))
    ]
    found += [f"{who} visited {town} last week." for who, town in zip(_PEOPLE, reversed(_TOWNS), strict=True)]
    found += [
        f"{who} actually met {other} in {town}."
        for who, other, town in zip(_PEOPLE, reversed(_PEOPLE), _TOWNS, strict=True)
    ]
    found += [f"{who} switched off the {thing}." for who, thing in zip(_PEOPLE, ("oven", "radio") * 5, strict=True)]
    found += [f"I have a {thing}." for thing in ("canoe", "telescope", "violin", "kiln", "hammock")]
    found += [f"I no longer need the {thing}." for thing in ("ladder", "tent", "drill", "crib")]
    return found


def links(portal: BlockingPortal, memory: Memory, ids: Sequence[str]) -> list[str]:
    """What ended, and what contradicts, in words."""
    return portal.call(_links, memory, [int(one.removeprefix("msg_")) for one in ids])


async def _links(memory: Memory, keys: Sequence[int]) -> list[str]:
    found: list[str] = []
    async with memory._store.read() as view:
        for facts in (await view.facts.of_records(Scope(), keys)).values():
            for one in facts:
                ended_by = one.superseded_by or one.conflicts_with
                if ended_by is not None and ended_by != one.record_id:
                    kind = "ended" if one.superseded_by else "contradicted"
                    found.append(f"{one.record_id} {one.subject} {one.attribute} {one.value}: {kind} by {ended_by}")
    return found


def false_pairs(portal: BlockingPortal, count: int) -> dict[str, int]:
    """How many pairs of statements about different things were linked."""
    texts = different_things()
    wanted = next((n for n in range(2, len(texts)) if n * (n - 1) // 2 >= count), len(texts))
    with opened(portal) as memory:
        wrong = links(portal, memory, record(portal, memory, texts[:wanted]))
    for one in wrong:
        progress(f"false: {one}")
    return {"pairs": wanted * (wanted - 1) // 2, "false": len(wrong)}


def conversations(portal: BlockingPortal, folder: Path) -> dict[str, Any]:
    """What ended in conversations, for reading."""
    figures: dict[str, Any] = {}
    for path in sorted((folder / "data").glob("*.json")):
        turns = pairs = ended = 0
        for conversation in json.loads(path.read_text())["conversations"]:
            said = [turn for turn in conversation["turns"] if turn["speaker"] != "assistant"]
            with opened(portal) as memory:
                ids: list[str] = []
                for batch in batched(said, 500):
                    messages = [NewMessage(Role.USER, one["text"], name=_name(one["speaker"])) for one in batch]
                    ids += portal.call(memory.record_messages, "s", messages).message_ids
                found = links(portal, memory, ids)
            turns, pairs, ended = turns + len(said), pairs + len(said) * (len(said) - 1) // 2, ended + len(found)
            for one in found:
                progress(f"{path.stem}: {one}")
        figures[path.stem] = {"turns": turns, "pairs": pairs, "links": ended}
    return figures


def _name(speaker: str) -> str | None:
    return None if speaker == "user" else speaker


def versions(portal: BlockingPortal, count: int) -> dict[str, Any]:
    """Many versions of one fact."""
    written: list[float] = []
    with opened(portal) as memory:
        said = [f"I now live in {_TOWNS[place % len(_TOWNS)]}{place}." for place in range(count)]
        for batch in batched(said, 200):
            begun = time.perf_counter()
            newest = record(portal, memory, batch)[-1]
            written.append((time.perf_counter() - begun) / len(batch))
        asked: list[float] = []
        for _ in range(20):
            begun = time.perf_counter()
            found = portal.call(memory.search_memory, SearchRequest(query="Where do I live now?")).hits
            asked.append(time.perf_counter() - begun)
    tail = written[-5:]
    is_newest = bool(found) and found[0].record_id == newest
    return {
        "n": count,
        "record_first_ms": 1000 * written[0],
        "record_last_ms": 1000 * sum(tail) / len(tail),
        "search": latency(asked),
        "newest_first": is_newest,
    }


def main() -> None:
    """Measure all of it."""
    parser = options(__doc__)
    parser.add_argument("--bench-data", type=Path, metavar="FOLDER", help="the folder with data/")
    parser.add_argument("--cases", type=int, default=280, help="changed facts (default 280, quick 28)")
    asked = parser.parse_args()
    with start_blocking_portal() as portal:
        figures: dict[str, Any] = {
            "changes": changes(portal, 28 if asked.quick else asked.cases, seed=1),
            "false_pairs": false_pairs(portal, 1_000 if asked.quick else 10_000),
            "versions": versions(portal, 1_000 if asked.quick else 10_000),
        }
        if asked.bench_data is not None:
            figures["conversations"] = conversations(portal, asked.bench_data)
    emit("facts", figures)


if __name__ == "__main__":
    main()
