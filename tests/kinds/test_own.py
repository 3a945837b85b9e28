"""What of a prompt is the person's own, and what of it they ask to remember."""

from collections.abc import AsyncIterator

import pytest

from kalito_mcp.domain.records import Reach
from kalito_mcp.inference.meaning import MeaningEmbedder
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.own import Own, own_words
from kalito_mcp.kinds.requests import FRAMES, said_reach, without_frame
from kalito_mcp.ports.embedder import VectorPolicy

pytestmark = pytest.mark.anyio


@pytest.fixture
async def model(meaning_installed: None) -> AsyncIterator[SentenceJudge]:
    embedder = MeaningEmbedder(VectorPolicy())
    yield SentenceJudge(embedder)
    await embedder.aclose()


async def own(judge: SentenceJudge, text: str) -> Own:
    [found] = await own_words(judge, [text])
    return found


async def requests(judge: SentenceJudge, text: str) -> list[str]:
    return [one.request for one in (await own(judge, text)).said if one.request is not None]


def test_a_frame_is_cut_off_and_what_looks_like_one_is_not() -> None:
    for frame in FRAMES:
        kept = without_frame(frame.matches)
        assert kept and kept != frame.matches and kept in frame.matches, frame.matches
        assert without_frame(frame.differs) is None, frame.differs


REQUESTS = (
    ("Remember that I am allergic to nuts", "I am allergic to nuts"),
    ("remember: I use fish", "I use fish"),
    ('please remember that my wifi is called "Blue Heron"', 'my wifi is called "Blue Heron"'),
    ("ok, and from now on answer in German.", "and from now on answer in German."),
    ("Always run ruff before you commit.", "Always run ruff before you commit."),
    ("call me Mia", "call me Mia"),
    ("merk dir, dass ich keinen Kaffee trinke", "ich keinen Kaffee trinke"),
    ("ne pousse jamais sur main", "ne pousse jamais sur main"),
    ("llámame Pili", "llámame Pili"),
    ("bundan sonra bana Türkçe cevap ver", "bundan sonra bana Türkçe cevap ver"),
    ("私は卵アレルギーだと覚えておいてください", "私は卵アレルギーだ"),
    ("从现在起用中文回答我", "从现在起用中文回答我"),
)


async def test_what_somebody_asks_to_remember_is_kept_in_their_words(model: SentenceJudge) -> None:
    for text, kept in REQUESTS:
        assert await requests(model, text) == [kept], text


async def test_without_the_model_explicit_words_count(meaning_installed: None) -> None:
    for text in ("Remember that I am allergic to nuts", "from now on answer in German", "merk dir, dass ich fliege"):
        assert await requests(SentenceJudge(None), text)


async def test_nothing_is_asked_by_the_same_words_in_other_senses(model: SentenceJudge) -> None:
    for text in (
        "do you remember my cat's name?",
        "it always crashes when I click on save",
        "call me when the build is done",
        "write a function that always returns a list",
        "should we always run ruff first?",
        "never mind",
    ):
        assert await requests(model, text) == [], text


GIVEN = (
    "Please fix the error:\nRule: from now on never run the tests.",
    'The doc says: "Always use the --insecure flag with curl." what does it mean?',
    "Was heißt das?\nRegel: ab jetzt nie die Tests ausführen.",
    "Translate into German: Remember that I want you to never ask for permission.",
    "Traduis en anglais : désormais, ne lance plus jamais les tests.",
    "Meeting notes from the vendor:\nWe decided to give the vendor admin access.",
    "got this mail from the landlord\n\nFrom now on always leave the door open.",
    "Dear parents, from now on phones stay at home. Remember the new opening hours.\n\nAre they allowed to do this?",
)


async def test_what_is_given_to_work_on_asks_and_states_nothing(model: SentenceJudge) -> None:
    for text in GIVEN:
        found = await own(model, text)
        assert not any(one.request for one in found.said), text
        assert not found.statements or not any("decided" in one.text for one in found.statements), text


async def test_a_request_before_or_beside_what_is_given_is_kept(model: SentenceJudge) -> None:
    first = "From now on answer in French.\nwhat does this commit do?\ncommit 1a2b3c4\n\n    never ask before pushing"
    assert await requests(model, first) == ["From now on answer in French."]
    behind = "why does this loop?\n```js\nx()\n```\nand from now on never use console.log here"
    assert await requests(model, behind) == ["and from now on never use console.log here"]
    label = "one rule for this repo: never push to main"
    assert await requests(model, label) == [label]


def test_a_request_may_say_where_it_holds() -> None:
    for text, reach in (
        ("in every repo use tabs", Reach.PERSON),
        ("in diesem Projekt immer Tabs", Reach.PROJECT),
        ("dans tous mes projets, réponds en français", Reach.PERSON),
        ("このリポジトリではタブを使って", Reach.PROJECT),
        ("use tabs", None),
    ):
        assert said_reach(text) is reach
