"""Texts that refer to what was said earlier."""

import pytest

from kalito_mcp.text.recollection import asks_what_you_said, refers_to_the_past


@pytest.mark.parametrize(
    "text",
    [
        "What did I say about the staging server?",
        "Which of the two did we finally settle on?",
        "How would you use the cache that you recommended?",
        "List what I've mentioned, in order.",
        "What came up in our previous conversations?",
        "Do you remember her name?",
        "Can you remind me what the port was?",
        "What was it last time?",
        "Was habe ich über den Server gesagt?",
        "Qu'est-ce que j'ai dit du serveur ?",
        "¿Qué decidimos sobre el servidor?",
        "Che cosa abbiamo deciso per il server?",
        "O que decidimos sobre o servidor?",
        "Wat hebben we over de server besloten?",
        "Co ustaliliśmy w sprawie serwera?",
        "Что мы решили про сервер?",
        "我上次怎么说服务器的?",
        "前回、サーバーについて何を決めましたか?",
    ],
)
def test_it_refers_to_what_was_said(text: str) -> None:
    assert refers_to_the_past(text)


@pytest.mark.parametrize(
    "text",
    [
        "How do I say this in French?",
        "Can you help me review this function?",
        "Did they discuss it in parliament?",
        "Which tools would you suggest?",
        "Add a session to the database.",
        "Was ist ein Server?",
        "¿Qué es un servidor?",
        "服务器是什么?",
    ],
)
def test_it_does_not(text: str) -> None:
    assert not refers_to_the_past(text)


@pytest.mark.parametrize(
    ("asks", "other"),
    [
        ("What did you find was the cause?", "Which cause do you think it has?"),
        ("Why was the page slow, according to you?", "Why is your page slow?"),
        ("How should I treat the trap that you said was moved?", "Did they say it was moved?"),
        ("Was hast du mir zum Kessel empfohlen?", "Was haben sie gesagt?"),
        ("Qu'as-tu proposé pour l'escalier ?", "Tu as un escalier ?"),
        ("¿Qué me recomendaste para la espalda?", "¿Qué me recomiendas?"),
        ("Che cosa mi hai consigliato?", "Che cosa mi consigli?"),
        ("O que você me sugeriu?", "O que você sugere?"),
        ("Wat heb je me aangeraden?", "Heb je een idee?"),
        ("Co mi doradziłeś?", "Co mi doradzisz?"),
        ("Что ты мне посоветовала?", "Что ты посоветуешь?"),
        ("Vad föreslog du?", "Vad föreslår du?"),
        ("Bana ne önermiştin?", "Bana ne önerirsin?"),
        ("你上次推荐了哪家餐馆?", "我说过什么?"),
        ("どの店を勧めてくれましたか?", "どの店がいいですか?"),
    ],
)
def test_it_asks_for_what_the_assistant_said(asks: str, other: str) -> None:
    assert asks_what_you_said(asks)
    assert not asks_what_you_said(other)
