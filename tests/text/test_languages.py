"""Function words tell the language of a query; nothing else does."""

import subprocess
import sys

from kalito_mcp.retrieval.question import parse_question
from kalito_mcp.text.analysis import STOP_WORDS, query_terms, words
from kalito_mcp.text.languages import ENGLISH, UNKNOWN, function_words, language_of
from kalito_mcp.text.times.lexicon import lexicon


def test_the_language_of_a_query() -> None:
    for query, language in (
        ("Where does Ben work?", "en"),
        ("Wo arbeitet Ben?", "de"),
        ("Où est-ce que Ben travaille ?", "fr"),
        ("¿Dónde trabaja Ben?", "es"),
        ("Где работает Бен?", "ru"),
        ("बेन कहाँ काम करता है?", "hi"),
        ("أين يعمل سامي؟", "ar"),
        ("本在哪里工作？", "zh"),
        ("ベンはどこで働いていますか", "ja"),
        ("벤은 어디에서 일해요?", "ko"),
        ("tram harbour", ENGLISH),
        ("Zahnarzt Fürth", ENGLISH),
        ("Ποῦ μένει ὁ Νῖκος;", UNKNOWN),
        ("", ENGLISH),
    ):
        assert language_of(words(query)) == language


def test_english_wins_a_tie() -> None:
    assert language_of(words("was in Berlin")) == ENGLISH


def test_function_words_are_left_out_unless_there_is_nothing_else() -> None:
    german, chinese, japanese = map(function_words, ("de", "zh", "ja"))
    assert query_terms("Wo habe ich den Schlüssel hingelegt?", german) == ["schlussel", "hingelegt"]
    assert query_terms("Was war das?", german) == ["was", "war", "das"]
    assert query_terms("我的猫叫什么", chinese) == ["的猫", "猫叫", "叫什", "猫", "叫"]
    assert query_terms("それは何ですか", japanese) != []


def test_a_word_of_letters_that_are_words_themselves_stays() -> None:
    assert {"a", "i", "s", "t"} <= STOP_WORDS
    assert query_terms("sit") == ["sit"]


def test_an_unknown_language_has_no_function_words() -> None:
    assert function_words(UNKNOWN) == frozenset()
    assert function_words(ENGLISH) is STOP_WORDS


def test_nothing_reads_the_tables_before_the_first_search() -> None:
    program = """
import sys
opened = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)
import kalito_mcp.cli.main, kalito_mcp.server.build
assert not [one for one in opened if "language_tables" in one]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_question_in_english_prepares_no_other_words_for_times() -> None:
    lexicon.cache_clear()
    parse_question("What did Ben say about the ferry in May?", max_terms=10, now_ms=0)
    assert lexicon.cache_info().currsize == 0
    parse_question("Was hat Ben letzte Woche gesagt?", max_terms=10, now_ms=0)
    assert lexicon.cache_info().currsize == 1
