"""Parses a query before anything is looked up. Pure.

Each term is looked up as itself and, if no record contains it, as the term that a mistyped word may mean.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Final

from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.retrieval.intent import SURE, Intent, intent_by_words
from kalito_mcp.retrieval.query_syntax import Query, parse_query
from kalito_mcp.text.analysis import STOP_WORDS, heads_of, indexed_words, query_terms, stem, words
from kalito_mcp.text.compounds import compounds
from kalito_mcp.text.languages import (
    ENGLISH,
    function_words,
    is_clearly_english,
    language_of,
    likely_languages,
    talk_words,
)
from kalito_mcp.text.times.expressions import Dates, Span, named_times
from kalito_mcp.text.times.vocabulary import MONTH_NAMES, WEEKDAY_NAMES

_CALENDAR: Final = frozenset(map(stem, MONTH_NAMES | WEEKDAY_NAMES))
_TIME_TERMS: Final = _CALENDAR.union(
    map(
        stem,
        """last next past recent week weekend month year day yesterday today tonight ago morning evening early late
        beginning end since until before during between""".split(),
    )
)
"""Relative words ("today") mean another day when they are read later, so only those of `_CALENDAR` may be looked up."""

_ASIDES: Final = frozenset(
    """actually anymore anyway basically currently eh exactly finally gets getting going gonna gotta got gotten
    honestly hmm idea ideas kinda let lets maybe mean need needs nowadays oh ok okay originally people pick please
    presently probably really remember remind remembered something sorta still stuff suggest supposed sure thanks thing
    things thx though wanna well yeah yet put another make makes
    arent cant couldnt didnt doesnt dont hadnt hasnt havent hes im isnt ive n r shes theres theyre thats u ur w wasnt
    werent wont wouldnt youre youve""".split()
)
"""Asides, requests for an answer, and abbreviations in questions. English."""

_ALL_TIMES: Final = Span(OLDEST_MS, NEWEST_MS)
_EVERYTHING: Final = frozenset("everything everyone everybody people persons".split())
_REMEMBERING: Final = frozenset("remember memories".split())
_POINTING: Final = frozenset("it this that these those him her them".split())
_KNOWING: Final = frozenset("know known knows remember remembered memory memories learned learnt stored saved".split())
_ONESELF: Final = frozenset("me i my myself user us".split())
_ASKING: Final = frozenset(
    """tell say list show give summarize summarise describe what who all you your have so far about of do can please
    facts""".split()
)
_DATE_NUMBER: Final = re.compile(r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?|(?:19|20)\d\d")
_KIND_OF: Final = re.compile(r"\b(?:kind|sort|type)s? of\b", re.IGNORECASE)

_SHORT_IS: Final = re.compile(r"\b(how|what|when|where|who)s\b", re.IGNORECASE)
"""Written without the apostrophe. None of them is a word otherwise."""


@dataclass(frozen=True)
class Question:
    """A parsed query with its other wordings.

    `wordings` are the terms of the query, then those of each other wording, distinct and in order; `texts` are their
    words, as an embedder gets them. For each term, `surface` is a word that has it, and `forms` are the terms that it
    is looked up as, itself first. `credit` is how much a corrected form counts, 1 if absent. `spans` are the times that
    the query names; the words for them are not among the terms, unless it asks for nothing else: then anything that was
    said at that time, or mentions it, answers it (`asks_time_alone`). `intent` is what else it asks for. `language` is
    the one of its function words (`text.languages`) or of its times. `zone` is the caller's; days are days in it.
    `divided` has the terms of the words of a name that is several words in one: of `retrypolici`.
    """

    query: Query
    texts: tuple[str, ...]
    wordings: tuple[tuple[str, ...], ...]
    surface: Mapping[str, str]
    forms: Mapping[str, tuple[str, ...]]
    credit: Mapping[str, float]
    dates: Dates
    spans: tuple[Span, ...]
    asks_time_alone: bool = False
    intent: Intent = Intent()
    language: str = ENGLISH
    zone: Zone = UTC_ZONE
    divided: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """The terms of all wordings, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(self.wordings)))

    @cached_property
    def words(self) -> frozenset[str]:
        """The query's words, folded and without `'s`, to compare with names."""
        return frozenset(word.partition("'")[0] for word in words(self.query.words))

    @property
    def asks_where_left_off(self) -> bool:
        """Whether the ends of the latest conversations may answer it. Other wordings name a subject."""
        return self.intent.left_off > 0 and len(self.texts) == 1

    @property
    def asks_nothing_else(self) -> bool:
        """Whether they surely do, or it has no word to search for."""
        is_sure = self.intent.left_off >= SURE or not (self.terms or self.spans)
        return self.asks_where_left_off and is_sure

    def past(self, now_ms: int) -> list[Span]:
        """The times it names that are over."""
        return [span for span in self.spans if span.last < now_ms]

    @cached_property
    def may_be_unknown_language(self) -> bool:
        """Whether it counts as English only because no other language is known for its words."""
        return self.language == ENGLISH and not is_clearly_english(words(self.query.words))

    @cached_property
    def corrected_terms(self) -> frozenset[str]:
        """The terms that were corrected."""
        return frozenset(term for term, forms in self.forms.items() if not self.credit.keys().isdisjoint(forms))

    def credit_of(self, term: str) -> float:
        """How much the term counts where a record contains one of its forms."""
        return min((self.credit.get(form, 1.0) for form in self.forms.get(term, ())), default=1.0)

    def with_word_forms(self, found: Mapping[str, Sequence[str]]) -> "Question":
        """The question with more forms for its terms: index terms that are taken for the same word."""
        forms = {term: tuple(dict.fromkeys((*known, *found.get(term, ())))) for term, known in self.forms.items()}
        return replace(self, forms=forms)

    def without(self, terms: Set[str]) -> "Question":
        """The question without these terms; the same if nothing of the query would be left."""
        kept = tuple(tuple(term for term in one if term not in terms) for one in self.wordings)
        return replace(self, wordings=kept) if kept[0] else self

    def with_divided(self, missing: Iterable[str]) -> "Question":
        """The question with the words of these terms instead of them, where they are names of several words."""
        divided = {term: self.divided[term] for term in missing if term in self.divided}
        if not divided:
            return self
        wordings = tuple(
            tuple(dict.fromkeys(part for term in one for part in divided.get(term, (term,)))) for one in self.wordings
        )
        forms = {term: self.forms.get(term, (term,)) for term in chain.from_iterable(wordings)}
        return replace(self, wordings=wordings, forms=forms)

    def with_corrections(self, corrections: Mapping[str, tuple[str, float]]) -> "Question":
        """The question with one more form for each mistyped term: the corrected term, and its similarity."""
        forms = {
            term: (*known, corrections[term][0]) if term in corrections else known for term, known in self.forms.items()
        }
        return replace(self, forms=forms, credit=dict(corrections.values()))


def match_words(question: Question, vocabulary: Iterable[str]) -> dict[str, str]:
    """For those words of the vocabulary that are forms of the question's terms: the term."""
    terms = {form: term for term in reversed(question.terms) for form in question.forms[term]}
    # The first two letters rule most words out, ten times faster than stemming them.
    heads = heads_of(terms)
    return {word: terms[form] for word in vocabulary if word[:2] in heads and (form := stem(word)) in terms}


def parse_question(
    text: str, *, max_terms: int, now_ms: int | None = None, zone: Zone = UTC_ZONE, also: Sequence[str] = ()
) -> Question:
    """The query as a question, with other wordings of it. Without `now_ms`, words like "yesterday" name no date."""
    query = parse_query(_SHORT_IS.sub(r"\1's", text))
    times = named_times(query.words, now_ms, likely_languages(words(query.words)), zone)
    asks = _without_kind_of(query.words if times.other is None else times.other.rest)
    language = language_of(words(asks)) if times.other is None else times.other.language
    unasked = _unasked(language)
    if times.spans:
        # "What did we talk about in July?" asks for anything that was said then.
        unasked |= talk_words(language)
    wanted = query_terms(asks, unasked, may_be_empty=bool(times.spans) or times.other is not None)
    if times.spans:
        wanted = _without_times(wanted)
    asks_everything = not times.spans and _asks_everything(words(asks), unasked)
    if asks_everything:
        # As if it named all times: then the newest and most important answer it.
        times, wanted = replace(times, spans=(_ALL_TIMES,)), []
    asks_time_alone = bool(times.spans) and all(map(_is_calendar_term, wanted))
    if asks_time_alone and times.other is not None:
        asks = times.other.calendar
        wanted = query_terms(asks, unasked, may_be_empty=True)
    others = [tuple(query_terms(one, _unasked(language_of(words(one)))))[:max_terms] for one in also]
    wordings = (tuple(wanted[:max_terms]), *others)
    said = " ".join((asks, *also))
    return Question(
        query=query,
        texts=(query.words, *also),
        wordings=wordings,
        surface={stem(word): word.partition("'")[0] for word in reversed(indexed_words(said))},
        forms={term: (term,) for term in chain.from_iterable(wordings)},
        credit={},
        dates=times.dates,
        spans=times.spans,
        asks_time_alone=asks_time_alone and not any(others),
        intent=intent_by_words(query.words),
        language=language,
        zone=zone,
        divided={stem(name): tuple(map(stem, parts)) for name, parts in compounds(said).items()},
    )


def _unasked(language: str) -> frozenset[str]:
    return function_words(language) | (_ASIDES if language == ENGLISH else frozenset())


def _without_kind_of(text: str) -> str:
    """`what kind of moss` asks for moss, not for kinds. A query of nothing else stays as it is."""
    kept = _KIND_OF.sub(" ", text)
    return text if STOP_WORDS.issuperset(words(kept)) else kept


def _without_times(wanted: list[str]) -> list[str]:
    """The terms except terms for times. If nothing else is left, the names of days and months and the numbers stay:
    what is said about a day is seldom said on it."""
    kept = [term for term in wanted if term not in _TIME_TERMS]
    return [term for term in wanted if _is_calendar_term(term)] if all(map(_is_calendar_term, kept)) else kept


def _asks_everything(wanted: Sequence[str], unasked: Set[str]) -> bool:
    """Whether a query asks for whatever is known: "what do you know about me?", "tell me about people". English."""
    named = set(wanted)
    is_of_oneself = not (named.isdisjoint(_KNOWING) or named.isdisjoint(_ONESELF))
    is_of_all = is_of_oneself or not named.isdisjoint(_EVERYTHING) or not named.isdisjoint(_REMEMBERING)
    return (
        is_of_all
        and named.isdisjoint(_POINTING)
        and named <= unasked | STOP_WORDS | _EVERYTHING | _KNOWING | _ONESELF | _ASKING
    )


def _is_calendar_term(term: str) -> bool:
    return term in _CALENDAR or _DATE_NUMBER.fullmatch(term) is not None
