"""A subject is in a text with all its words; a name only as a name."""

from kalito_mcp.text.subject import parse_subject


def test_a_text_that_speaks_of_the_subject_has_all_its_words() -> None:
    for about, text in (
        ("Mia", "Mia plays the oboe."),
        ("Mia", "That is Mia's oboe."),
        ("Mia", "i met mia today"),
        ("everything about Mia Berg", "Mia and Leo Berg came."),
        ("the surprise party", "We planned parties, and one was a surprise."),
        ("May", "May is my sister."),
        ("tell me what you know about my boats", "The boat leaks."),
        ("alles über das Boot", "Das Boot leckt."),
        ("東京", "来週は東京に行く"),
    ):
        assert parse_subject(about).is_in(text)


def test_other_words_and_parts_of_words_are_not_the_subject() -> None:
    for about, text in (
        ("Mia", "We fly to Miami."),
        ("Mia", "Amelia and Mías are others."),
        ("Rose", "Prices rose. I rise early."),
        ("Bill", "Pay the bill, Ann."),
        ("Mia Berg", "Mia plays the oboe."),
        ("the surprise party", "What a surprise!"),
        ("May", "It may rain, Ann."),
    ):
        assert not parse_subject(about).is_in(text)


def test_words_for_anything_at_all_are_no_subject() -> None:
    for about in ("", " ", "?!", "everything", "Tell me about people", "what do you know about me", "the user"):
        assert parse_subject(about).is_empty
