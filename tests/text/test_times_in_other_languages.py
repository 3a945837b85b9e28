"""Times in the words of each language. `times/CODE.txt` has lines of a text and its spans, or `-` if it names none."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS, from_iso, to_iso
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.entities import entities
from kalito_mcp.text.analysis import words
from kalito_mcp.text.languages import likely_languages
from kalito_mcp.text.sentences import split_sentences
from kalito_mcp.text.times.expressions import moment_in_words, named_times
from kalito_mcp.text.times.other_languages import other_names

WEDNESDAY = from_iso("2026-11-18T15:00:00Z")
MOMENTS = st.integers(OLDEST_MS, NEWEST_MS)
TABLES = sorted(Path(__file__).with_name("times").glob("*.txt"))


def lines(table: Path) -> list[tuple[str, str]]:
    split = (line.partition("|") for line in table.read_text("utf-8").splitlines())
    return [(text.strip(), expected.strip()) for text, _, expected in split]


def spans(text: str, now: int | None = WEDNESDAY) -> str:
    """Each as first..last day, one alone as it is; `-` if there is none."""
    found = []
    for span in named_times(text, now, likely_languages(words(text))).spans:
        first, last = to_iso(span.first)[:10], to_iso(span.last)[:10]
        found.append(first if first == last else f"{first}..{last}")
    return " ".join(found) or "-"


def test_the_times_of_a_text() -> None:
    for table in TABLES:
        rows = lines(table)
        assert [(text, spans(text)) for text, _ in rows] == rows


def test_since_and_until_take_the_ends_of_a_name_in_any_language() -> None:
    for text, expected in (
        ("März 2026", "2026-03-01..2026-03-31"),
        ("letzte Woche", "2026-11-09..2026-11-15"),
        ("vor zwei Wochen", "2026-11-04"),
        ("am 3.5.2026", "2026-05-03"),
        ("上周", "2026-11-09..2026-11-15"),
        ("mars 2026", "2026-03-01..2026-03-31"),
        ("3 мая", "2026-05-03"),
        ("geçen hafta", "2026-11-09..2026-11-15"),
        ("先週", "2026-11-09..2026-11-15"),
        ("지난주", "2026-11-09..2026-11-15"),
        ("الأسبوع الماضي", "2026-11-09..2026-11-15"),
        ("पिछले हफ्ते", "2026-11-09..2026-11-15"),
    ):
        first, _, last = expected.partition("..")
        assert to_iso(moment_in_words(text, "since", WEDNESDAY, is_last=False)) == f"{first}T00:00:00.000Z"
        assert to_iso(moment_in_words(text, "until", WEDNESDAY, is_last=True)) == f"{last or first}T23:59:59.999Z"


def test_what_is_more_or_less_than_a_name_is_refused() -> None:
    for text in ("die letzte Woche im Garten", "上", "Stuhl", "3 Äpfel"):
        with pytest.raises(InvalidInput):
            moment_in_words(text, "since", WEDNESDAY, is_last=False)


def test_the_words_for_a_time_are_told_apart_from_the_others() -> None:
    for text, rest, calendar in (
        ("Was sagte Ben am 3. März 2026 zum Garten?", "was sagte ben zum garten?", "3 marz 2026"),
        ("Was sagte Ben letzte Woche?", "was sagte ben ?", ""),
        ("上周我们讨论了什么", "我们讨论了什么", ""),
        ("2026年3月5日的会议", "的会议", "2026 年 3 月 5 日"),
    ):
        found = other_names(text, None, likely_languages(words(text)))
        today = other_names(text, 739_000, likely_languages(words(text)))
        assert today is not None
        assert (" ".join(today.rest.split()), today.calendar) == (rest, calendar)
        assert (found is None) == (calendar == "")


WORDS = sorted({word for table in TABLES for text, _ in lines(table) for word in text.split()})


@given(st.lists(st.sampled_from(WORDS), max_size=12), MOMENTS)
def test_named_stretches_are_in_order_and_within_the_years_1_to_9999(some: list[str], now: int) -> None:
    text = " ".join(some)
    for span in named_times(text, now, likely_languages(words(text))).spans:
        assert OLDEST_MS <= span.first <= span.last <= NEWEST_MS


def test_a_date_does_not_end_a_sentence() -> None:
    assert split_sentences("Wir fahren am 3. März. Anna kommt mit.") == ["Wir fahren am 3. März.", "Anna kommt mit."]
    for whole in (
        "Tagung in Lübeck, 11. bis 13., ich halte einen vortrag",
        "26. september dachten wir",
        "12. Mai: notar",
    ):
        assert split_sentences(whole) == [whole]
    assert split_sentences("It costs 5. Then we go.") == ["It costs 5.", "Then we go."]
    assert split_sentences("2. Run the tests.") == ["Run the tests."]
    assert split_sentences("Das war Nummer 3. Dann kam Anna.") == ["Das war Nummer 3.", "Dann kam Anna."]


def test_a_month_or_weekday_is_no_name() -> None:
    assert entities("Ich treffe Anna am Dienstag oder im März in Berlin.") == ("Anna", "Berlin")
