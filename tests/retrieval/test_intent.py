"""What a query asks of the memory besides its subject."""

from collections.abc import AsyncIterator

import pytest

from kalito_mcp.inference.meaning import MeaningEmbedder
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.retrieval.intent import Intent, intent_by_words
from kalito_mcp.retrieval.intent_head import intent_of

pytestmark = pytest.mark.anyio
LEFT_OFF = (
    "good morning, where did I leave off and what is open today?",
    "pick up where we left off yesterday",
    "whats next",
    "summarise what we did last week",
    "wo waren wir stehen geblieben?",
    "ou en etais-je",
    "donde lo dejamos ayer",
    "na czym skończyliśmy w piątek?",
    "en son nerede kalmıştık?",
    "waar waren we gebleven?",
    "我们上次做到哪了",
    "前回はどこまでやったっけ",
    "지난주에 내가 뭐 했어",
)
EARLIER = (
    "What did I say about the staging server?",
    "Do you remember what we decided on the name?",
    "Was hatten wir letztes Mal zum Server gesagt?",
    "¿Qué decidimos sobre el servidor?",
    "Что мы решили про сервер?",
)
ASSISTANT = (
    "Which ferry did you suggest?",
    "What was the book you recommended?",
    "Was hast du mir für den Rücken vorgeschlagen?",
    "¿Qué me recomendaste para la cena?",
)
OTHER = (
    "What is the next step of the deploy script?",
    "is the bakery open today?",
    "When is my dentist appointment?",
    "run the tests",
    "Wo habe ich das Auto abgestellt?",
    "继续写测试",
)


@pytest.fixture
async def model(meaning_installed: None) -> AsyncIterator[MeaningEmbedder]:
    embedder = MeaningEmbedder(VectorPolicy())
    yield embedder
    await embedder.aclose()


@pytest.mark.parametrize(("field", "texts"), [("left_off", LEFT_OFF), ("earlier", EARLIER), ("assistant", ASSISTANT)])
async def test_the_model_tells_what_is_asked(model: MeaningEmbedder, field: str, texts: tuple[str, ...]) -> None:
    vectors = await model.embed(texts, is_query=True)
    found = [bool(getattr(intent_of(text, vector), field)) for text, vector in zip(texts, vectors, strict=True)]
    assert [text for text, is_found in zip(texts, found, strict=True) if not is_found] == []


async def test_a_question_with_a_subject_asks_nothing_else(model: MeaningEmbedder) -> None:
    vectors = await model.embed(OTHER, is_query=True)
    assert {intent_of(text, vector) for text, vector in zip(OTHER, vectors, strict=True)} == {Intent()}


def test_without_a_model_explicit_words_tell() -> None:
    for text, intent in (
        ("ok, where were we?", Intent(left_off=1.0)),
        ("wo waren wir?", Intent(left_off=1.0)),
        ("前回の続きから", Intent(left_off=1.0, earlier=True)),
        ("did I mention the port?", Intent(earlier=True)),
        ("remind me: which book did you recommend?", Intent(earlier=True, assistant=True)),
        ("When does the ferry leave?", Intent()),
        ("where were we? " + "We looked at the harbour for a long time. " * 4, Intent()),
    ):
        assert intent_by_words(text) == intent
