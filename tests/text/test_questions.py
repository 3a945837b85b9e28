"""Which sentences ask, which questions are alike, and which replies answer nothing."""

from kalito_mcp.retrieval.past_answers import LEAST
from kalito_mcp.text.questions import answers_nothing, begun_answer, likeness, questions_in

ALIKE = [
    ("When is the Orion release?", "When is the Orion release again?"),
    ("When is the Orion release?", "when will Orion be released"),
    ("Orion release", "When is the Orion release?"),
    ("what is the orion release date?", "When is the Orion release?"),
    ("how can I restart the printer?", "How do I restart the printer in the hall?"),
    ("how can I reset our boiler when it is winter?", "How do I reset the boiler in winter?"),
    ("Where does Ann live now?", "Where does Ann live?"),
    ("Who is our contact at Weber & Sons?", "who's the contact at Weber and Sons again"),
    ("What time does the ferry to Moss leave?", "When does the Moss ferry leave?"),
    ("Which port does the staging database use?", "What port is the staging database using?"),
    ("How many people come to the wedding?", "how many people are coming to our wedding"),
    ("Can you remind me what the wifi password policy is?", "What is the wifi password policy?"),
    ("Why did the build fail on Windows?", "why was the Windows build failing?"),
    ("How much did the Bergen tickets cost?", "What did the tickets to Bergen cost?"),
    ("Explain how the retry policy works.", "How does the retry policy work?"),
    ("Wann ist die Veröffentlichung von Orion?", "Wann ist nochmal die Orion Veröffentlichung?"),
    ("¿Cuándo sale el tren a Bergen?", "¿A qué hora sale el tren a Bergen?"),
    ("Hi! Quick one: when is the Orion release? Thanks.", "When is the Orion release?"),
    ("Should I take vitamin D in summer?", "should i take vitamin d in the summer"),
    ("What's the max upload size for attachments?", "maximum upload size of attachments?"),
    ("Is the dentist appointment still on Tuesday?", "is my dentist appointment on tuesday?"),
    ("tell me about the Lisbon trip plan", "What is the plan for the Lisbon trip?"),
    ("What did Dr. Meyer say about my knee?", "what was it that Dr Meyer said about the knee?"),
]
"""Pairs whose answers are the same: (asked, asked before)."""

DIFFERENT = [
    ("Oslo", "We fly to Oslo on May 3."),
    ("When is the Orion release?", "When is the Atlas release?"),
    ("When is the Orion release?", "Who leads the Orion release?"),
    ("When is the Orion release?", "Where is the Orion release party?"),
    ("How do I restart the printer?", "How do I restart the router?"),
    ("Where does Ann live?", "Where does Bob live?"),
    ("Where does Ann live?", "Where does Ann work?"),
    ("What does ticket 1234 from Oslo to Bergen cost?", "What does ticket 1235 from Oslo to Bergen cost?"),
    ("Who repairs the broken boiler?", "Who repairs the broken door?"),
    ("Which ferries are running?", "Which ferries are not running?"),
    ("How many guests come on Friday?", "How long do the guests stay on Friday?"),
    ("How many guests come on Friday?", "How many guests come on Sunday?"),
    ("What is the capital of Norway?", "What is the capital of Sweden?"),
    ("Is port 5432 open on staging?", "Is port 5433 open on staging?"),
    ("Can I restart the printer from my laptop?", "Can I print from my laptop?"),
    ("When do we fly to Oslo?", "When do we fly back from Oslo?"),
    ("What should I cook tonight?", "What should I read tonight?"),
    ("Why did the build fail?", "Why did the deploy fail?"),
    ("Where did I park the car?", "Where did I leave the car keys?"),
    ("How do I add a user in Django?", "How do I delete a user in Django?"),
    ("What is our refund policy?", "What is our privacy policy?"),
    ("When was the Leeds office opened?", "When was the Leeds office closed?"),
    ("Wann fährt der Zug nach Bergen?", "Wann fährt der Bus nach Bergen?"),
    ("May invoice", "When is the May team lunch?"),
    ("Which port does the database of the Leeds server use?", "Which port does the database of the Oslo server use?"),
    ("What did Dr. Meyer say about my knee?", "What did Dr. Weber say about my knee?"),
]
"""Pairs whose answers are not the same."""


def test_the_default_threshold_keeps_most_that_are_alike_and_leaves_out_nearly_all_others() -> None:
    assert sum(likeness(*pair) >= LEAST for pair in ALIKE) >= len(ALIKE) - 2
    assert sum(likeness(*pair) >= LEAST for pair in DIFFERENT) <= 1


def test_likeness_has_no_direction_and_is_a_share() -> None:
    for one, other in ALIKE + DIFFERENT:
        assert 0.0 <= likeness(one, other) == likeness(other, one) <= 1.0
        assert likeness(one, one) == 1.0


def test_a_question_is_known_with_and_without_its_mark() -> None:
    for text in (
        "When is the Orion release?",
        "We have to plan. When is the Orion release? Thanks.",
        "Wann ist die Veröffentlichung?",
        "上线是什么时候？",
        "how to restart the printer",
        "what time does the ferry leave",
        "Hi! where's my bike",
        "can you restart the printer",
        "is the shed locked",
        "Please explain how the retry policy works.",
        "remind me when the ferry leaves",
    ):
        assert questions_in(text)


def test_a_statement_is_no_question() -> None:
    for text in (
        "We fly to Oslo on May 3.",
        "When I was young, I lived in Leeds.",
        "What a day!",
        "What a lovely day it was.",
        "Remind me to call Ann.",
        "Have a nice day!",
        "Tell me if you need more.",
        "Which reminds me of Ann.",
        "How nice!",
        "Do it now.",
        "",
        "   ",
    ):
        assert not questions_in(text)


def test_an_acknowledgement_answers_nothing() -> None:
    for text in (
        "Noted.",
        "Got it, thanks.",
        "Sure, I'll keep that in mind.",
        "Thank you for the information.",
        "I've saved that.",
        "You're welcome!",
        "Let me check.",
        "👍",
        "…",
        "Notiert.",
        "Entendido, gracias.",
        "Принято.",
    ):
        assert answers_nothing(text)


def test_a_short_answer_is_an_answer() -> None:
    for text in (
        "No",
        "Yes, that is right.",
        "On May 3.",
        "42",
        "In Oslo.",
        "Noted: the release is on May 3.",
        "Abroad.",
        "Ann",
    ):
        assert not answers_nothing(text)


def test_a_query_is_the_beginning_of_a_sentence_that_answers_it() -> None:
    for query, begun in (
        ("What did Kirsty charge for the dog?", "Kirsty charge for the dog ..."),
        ("What's the name of my sister's boat?", "name of my sister's boat ..."),
        ("Wo stehen meine Bienenvölker?", "stehen meine Bienenvölker ..."),
        ("Qu'est-ce que Joscha a reçu à Noël ?", "Joscha a reçu à Noël ..."),
        ("渡船几点出发？", "渡船几点出发 ..."),
        ("boat trip", "boat trip ..."),
        ('the "boat trip" -mother', "boat trip ..."),
        ("who was it", "who was it ..."),
        ("...", "..."),
        (" ".join(map(str, range(100))), "0 1 2 3 4 5 6 7 8 9 10 11 ..."),
    ):
        assert begun_answer(query) == begun
