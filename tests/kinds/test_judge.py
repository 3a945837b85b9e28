"""What a sentence is: by the model of every installation, and by explicit words alone."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from kalito_mcp import open_memory
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.errors import ModelUnavailable
from kalito_mcp.inference.meaning import MeaningEmbedder
from kalito_mcp.inference.registry import ModelRegistry
from kalito_mcp.kinds.cues import judged_by_words, names_its_speaker
from kalito_mcp.kinds.first_person import in_first_person
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.judged import PERSONAL_FROM, PINNED_FROM, Sentence
from kalito_mcp.ports.embedder import VectorPolicy
from tests.scripted import ScriptedClock
from tests.scripted_embedder import ScriptedEmbedder
from tests.stored import said

pytestmark = pytest.mark.anyio

SAID_IN_PROJECTS = Path(__file__).with_name("said_in_projects.tsv")
KEPT = (
    "we use pnpm here, not npm",
    "the staging database listens on 5433 since the move",
    "for hotfixes in this repo: always branch from the release tag, not main",
    "Meine Schwester ist gegen Penicillin allergisch.",
    "a partir de ahora los informes van en PDF, no en Word",
    "our release train leaves every other wednesday",
)
PASSING = (
    "thanks, looks good",
    "can you make the button blue for a second so I see it",
    "I'm going to lunch",
    "Ja, genau so.",
    "let me think about that for a moment",
    "¿Qué tal va todo?",
)


@pytest.fixture
async def model(meaning_installed: None) -> AsyncIterator[SentenceJudge]:
    embedder = MeaningEmbedder(VectorPolicy())
    yield SentenceJudge(embedder)
    await embedder.aclose()


async def test_what_a_colleague_would_write_down_is_worth_more_than_what_passes(model: SentenceJudge) -> None:
    kept = await model.judge([Sentence(text) for text in KEPT])
    passing = await model.judge([Sentence(text) for text in PASSING])
    assert min(one.worth for one in kept) > 0.5
    assert max(one.worth for one in passing) < 0.6


async def test_how_somebody_is_called_is_worth_keeping_and_the_person_s(model: SentenceJudge) -> None:
    named = (
        "call me Mia",
        "my name's Jonas btw",
        "you can call me Sam",
        "I go by Alex",
        "everybody calls me Lou",
        "please call me Max instead of Maximilian",
        "nenn mich bitte Alex",
        "je m'appelle Claire",
    )
    passing = ("call me when the build is done", "call me crazy, but I like it", "call it a day", "I go by bike today")
    judged = await model.judge([Sentence(text) for text in named])
    assert min(one.worth for one in judged) >= PINNED_FROM
    assert min(one.is_personal for one in judged) >= PERSONAL_FROM
    assert max(one.worth for one in await model.judge([Sentence(text) for text in passing])) < PINNED_FROM


async def test_an_order_for_one_piece_of_work_is_no_rule_and_a_standing_one_is(model: SentenceJudge) -> None:
    orders = (
        "ok write me a function that slugifies a title",
        "write me a script that always retries three times",
        "make a function that never throws",
        "create a hook that debounces the input",
        "add a method that returns the total without tax",
        "build me a CLI that remembers the last folder",
        "fais-moi une fonction qui trie toujours par date",
    )
    rules = (
        "always write tests first",
        "from now on write commit messages in English",
        "always run ruff before you commit please",
        "from now on use tabs",
        "never write to the production bucket from a script",
        "scripts must never run as root",
        "bei uns bekommt jede Funktion einen Test",
    )
    assert max(one.worth for one in await model.judge([Sentence(text) for text in orders])) < PINNED_FROM
    assert min(one.worth for one in await model.judge([Sentence(text) for text in rules])) >= PINNED_FROM


async def test_it_tells_the_person_s_from_the_project_s(model: SentenceJudge) -> None:
    said = ("I am allergic to penicillin.", "my daughter starts school in September", "we deploy from the main branch")
    personal = [one.is_personal for one in await model.judge([Sentence(text) for text in said])]
    assert min(personal[:2]) > 0.6
    assert personal[2] < 0.3


def test_what_is_noted_of_the_user_is_read_as_the_user_says_it() -> None:
    for noted, read in (
        ("The user is allergic to nuts.", "I am allergic to nuts."),
        ("User's birthday is March 3.", "my birthday is March 3."),
        ("the user doesn't eat meat", "I don't eat meat"),
        ("Der Nutzer wohnt in Gent.", "ich wohnt in Gent."),
        ("Users of the shop pay by card.", "Users of the shop pay by card."),
        ("We tell the user.", "We tell the user."),
    ):
        assert in_first_person(noted) == read


async def test_what_is_noted_of_the_user_leaves_its_project(model: SentenceJudge) -> None:
    noted = ("The user is allergic to nuts.", "User has a nut allergy.", "The user's birthday is March 3.")
    of_project = ("The user wants signed commits in this repo.", "The user's staging database listens on 5433.")
    assert min(one.is_personal for one in await model.judge([Sentence(text) for text in noted])) >= PERSONAL_FROM
    assert max(one.is_personal for one in await model.judge([Sentence(text) for text in of_project])) < 0.5


async def test_hardly_anything_that_is_said_of_a_project_leaves_it(model: SentenceJudge) -> None:
    rows = [line.split("\t") for line in SAID_IN_PROJECTS.read_text(encoding="utf-8").splitlines()[1:]]
    judged = await model.judge([Sentence(text) for _, _, text in rows])
    leaving = [whose for (whose, _, _), what in zip(rows, judged, strict=True) if what.is_personal >= PERSONAL_FROM]
    assert leaving.count("project") <= 1
    assert leaving.count("person") >= 12


async def test_a_sentence_is_judged_the_same_alone_and_among_others(model: SentenceJudge) -> None:
    [alone] = await model.judge([Sentence(KEPT[0])])
    among = (await model.judge([Sentence(text) for text in (*PASSING, *KEPT)]))[len(PASSING)]
    assert among.kind == alone.kind
    assert among.worth == pytest.approx(alone.worth, abs=1e-3)


async def test_a_sentence_is_embedded_once_and_its_vector_comes_along() -> None:
    embedder = ScriptedEmbedder(dimension=512)
    judge = SentenceJudge(embedder)
    first = await judge.read([Sentence("We use pnpm."), Sentence("We use pnpm.", is_assistant=True)])
    again = await judge.read([Sentence("It rains."), Sentence("We use pnpm.")])
    assert embedder.asked == ["We use pnpm.", "It rains."]
    assert first.vectors is not None
    assert again.vectors is not None
    assert (first.vectors[0] == again.vectors[1]).all()
    assert first.judged[0] == again.judged[1]
    assert await judge.judge([]) == ()
    assert (await SentenceJudge(None).read([Sentence("We decided to move.")])).vectors is None


async def test_old_vectors_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kalito_mcp.kinds.judge._REMEMBERED", 2)
    embedder = ScriptedEmbedder(dimension=512)
    judge = SentenceJudge(embedder)
    for text in ("a", "b", "a", "c", "b", "a"):
        await judge.judge([Sentence(text)])
    assert embedder.asked == ["a", "b", "c", "b", "a"]


async def test_what_was_judged_is_not_embedded_again_and_after_a_purge_nothing_of_it_is_left(database: Path) -> None:
    async with open_memory(database) as memory:
        embedder = ScriptedEmbedder()
        memory._services.judge._embedder = embedder
        embedder.dimension = 512
        await memory.record_messages("trip", said("The canary sings at noon in the mine of Moss."))
        await memory.settled()
        [[sentence]] = [embedder.asked[:1]]
        assert len(memory._services.judge._remembered) == 1
        await memory._services.judge.judge([Sentence(sentence)])
        assert embedder.asked == [sentence]
        await memory.purge(["msg_1"])
        assert memory._services.judge._remembered == {}


def test_explicit_words_need_no_model() -> None:
    for text, kind in (
        ("From now on, keep answers short.", Kind.RULE),
        ("wir haben uns auf Postgres geeinigt", Kind.DECISION),
        ("We decided to rewrite it.", Kind.DECISION),
        ("ab jetzt bitte auf Deutsch", Kind.RULE),
        ("以后都用中文回答", Kind.RULE),
    ):
        [found] = judged_by_words([Sentence(text)])
        assert (found.kind, found.worth) == (kind, 1.0)


def test_a_name_behind_words_for_being_called_is_the_speaker_s() -> None:
    for text, is_named in (
        ("call me Mia", True),
        ("And my name’s Jonas btw", True),
        ("I usually go by Kay", True),
        ("ich heiße Uwe", True),
        ("зови меня Саша", True),
        ("mów mi Łukasz", True),
        ("nenn mich Şebnem", True),
        ("you can call me Đorđe", True),
        ("call me when it is done, my name is Mia", True),
        ("call me crazy", False),
        ("call me Monday", False),
        ("call me ASAP", False),
        ("my name is not on the list", False),
        ("everybody calls that a hack", False),
    ):
        assert names_its_speaker(text) is is_named, text


def test_nothing_else_is_kept_without_a_model() -> None:
    for sentence in (
        Sentence("the staging database listens on 5433"),
        Sentence("Should we always do that?"),
        Sentence("I decided to use a dictionary.", is_assistant=True),
        Sentence("nevertheless it works"),
    ):
        assert judged_by_words([sentence])[0].worth == 0


async def test_a_model_that_cannot_be_used_is_done_without() -> None:
    def fail(_: Sequence[str]) -> None:
        raise ModelUnavailable("closed")

    [found] = await SentenceJudge(ScriptedEmbedder(before=fail)).judge([Sentence("never push to main")])
    assert found.worth == 1


@pytest.mark.usefixtures("meaning_installed")
async def test_whatever_embeds_the_records_sentences_have_one_model() -> None:
    registry = ModelRegistry((), ScriptedClock())
    usual = registry.embedder(VectorPolicy(embedder="meaning"))
    assert registry.sentence_model(VectorPolicy()) is usual
    prefixed = VectorPolicy(embedder="meaning", passage_prefix="passage: ")
    assert registry.sentence_model(prefixed) is usual
    assert registry.sentence_model(VectorPolicy(embedder="none")) is None
    await registry.aclose()
