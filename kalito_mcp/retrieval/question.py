"""What a query asks for, before anything is looked up. Pure.

Each term of the query is looked up as itself and, if no record contains it, as the term that a mistyped word may mean.
A term that names a kind (pets) has hyponyms (puppy), which are weak evidence.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.retrieval.concepts import in_english
from kalito_mcp.retrieval.hyponyms import hyponyms, said_for
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
from kalito_mcp.text.recent_work import asks_where_left_off
from kalito_mcp.text.times.expressions import Dates, Span, named_times
from kalito_mcp.text.times.vocabulary import MONTH_NAMES, WEEKDAY_NAMES

_NGRAM: Final = 4
_NGRAM_CHARS: Final = 400
"""Characters of a query whose n-grams are looked for."""

_MAX_HYPONYMS: Final = 100
_MOST_TERMS_OF_QUESTION: Final = 16
"""With more, the query is a text rather than a question."""

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
"""What people say in a question by the way, or to ask for an answer, and what they write short. English."""

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
_NOUN_WITHIN: Final = 5
"""How many words after `what` or `which` are searched for the noun and its end: what two big old ferries are."""

_AFTER_NOUN: Final = frozenset(
    "are can could did do does did had has have is may might must of shall should was were will would".split()
)
_QUESTION_END: Final = re.compile(r"[?？؟][\s\"'”’»)\]]*\Z")
_ASKS_ASSISTANT: Final = re.compile(
    r"\b(?:did|have|had|were|what'd|where'd|how'd|who'd|why'd) you\b"
    r"|\byou (?:advis|ask|calculat|came up|chose|compar|describ|draft|estimat|explain|gave|list|made|mention|nam|pick|"
    r"point|propos|put|reckon|recommend|sa[iy]|show|suggest|thought|told|translat|use|warn|work(?:ed)? out|wrote)"
    r"|\byour (?:advice|answer|calculation|draft|estimate|explanation|formula|idea|list|opinion|pick|plan|proposal|"
    r"recipe|recommendation|reply|suggestion|summary|tip|trick|version|wording)s?\b"
)
_SHORT_IS: Final = re.compile(r"\b(how|what|when|where|who)s\b", re.IGNORECASE)
"""Written without the apostrophe. None of them is a word otherwise."""


@dataclass(frozen=True)
class Question:
    """A parsed query.

    `terms` are distinct and in order. For each term, `surface` is a word of the query that has it, and `forms` are the
    terms that it is looked up as, itself first. `credit` is how much a corrected form counts, 1 if absent. `hyponyms`
    are those of the terms that name a kind. `spans` are the times that the query names; the words for them are not
    among the terms, unless it asks for nothing else: then whatever was said at that time, or mentions it, answers it
    (`asks_time_alone`). What `asks_where_left_off` is answered by the ends of the latest conversations. `language` is
    the one of its function words (`text.languages`) or of its times. `zone` is the asker's, whose days are meant.
    `concepts` are the English stems of what the terms mean, as far as that is known: of an English term, itself.
    `loose` are those of the `hyponyms` that are only said of what the term asks for; `foreign` has those that are words
    of another language, with its code. `divided` has the terms of the words of a name that is several words in one: of
    `retrypolici`.
    """

    query: Query
    terms: tuple[str, ...]
    surface: Mapping[str, str]
    forms: Mapping[str, tuple[str, ...]]
    credit: Mapping[str, float]
    hyponyms: Mapping[str, frozenset[str]]
    dates: Dates
    spans: tuple[Span, ...]
    asks_time_alone: bool = False
    asks_where_left_off: bool = False
    language: str = ENGLISH
    zone: Zone = UTC_ZONE
    concepts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    loose: Mapping[str, frozenset[str]] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    divided: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def words(self) -> frozenset[str]:
        """The query's words, folded and without `'s`, to compare with names."""
        return frozenset(word.partition("'")[0] for word in words(self.query.words))

    def past(self, now_ms: int) -> list[Span]:
        """The times it names that are over."""
        return [span for span in self.spans if span.last < now_ms]

    @cached_property
    def may_be_unknown_language(self) -> bool:
        """Whether it counts as English only because no other language is known for its words."""
        return self.language == ENGLISH and not is_clearly_english(words(self.query.words))

    @cached_property
    def asks_several(self) -> bool:
        """Whether the answer is a list or a count: which ferries, how many ferries. English only."""
        asked = words(self.query.words)
        return any(
            (word in ("what", "which") and _starts_with_plural(asked[place + 1 : place + 1 + _NOUN_WITHIN]))
            or (word == "how" and asked[place + 1 : place + 2] == ["many"])
            for place, word in enumerate(asked)
        )

    @cached_property
    def asks_assistant(self) -> bool:
        """Whether it asks what the assistant said."""
        return _ASKS_ASSISTANT.search(self.query.words.lower()) is not None

    @cached_property
    def ngrams(self) -> tuple[str, ...]:
        """The distinct character 4-grams of its words, including the spaces between them."""
        text = f" {' '.join(words(self.query.words))} "[:_NGRAM_CHARS]
        return tuple(dict.fromkeys(text[at : at + _NGRAM] for at in range(len(text) - _NGRAM + 1)))

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
        """The question without these terms; the same if nothing would be left."""
        kept = tuple(term for term in self.terms if term not in terms)
        return replace(self, terms=kept) if kept else self

    def with_divided(self, missing: Iterable[str]) -> "Question":
        """The question with the words of these terms instead of them, where they are names of several words."""
        divided = {term: self.divided[term] for term in missing if term in self.divided}
        terms = tuple(dict.fromkeys(part for term in self.terms for part in divided.get(term, (term,))))
        return replace(self, terms=terms, forms={term: self.forms.get(term, (term,)) for term in terms})

    def with_corrections(self, corrections: Mapping[str, tuple[str, float]]) -> "Question":
        """The question with one more form for each mistyped term: the corrected term, and its similarity."""
        forms = {
            term: (*known, corrections[term][0]) if term in corrections else known for term, known in self.forms.items()
        }
        return replace(self, forms=forms, credit=dict(corrections.values()))


class WordMatch(NamedTuple):
    """What a word matches of a question: a form of one of its terms, counting as much as `credit`, and hyponyms of some
    of its kinds."""

    word: str
    term: str | None
    credit: float
    kinds: tuple[str, ...]


def match_words(question: Question, vocabulary: Iterable[str]) -> dict[str, WordMatch]:
    """Those words of the vocabulary that match the question: forms of its terms, and hyponyms of its kinds."""
    terms = {form: term for term in reversed(question.terms) for form in question.forms[term]}
    kinds: dict[str, tuple[str, ...]] = {}
    for kind, members in question.hyponyms.items():
        for member in members:
            kinds[member] = (*kinds.get(member, ()), kind)
    forms = terms | kinds
    # The first two letters rule most words out, ten times faster than stemming them.
    heads = heads_of(forms)
    return {
        word: WordMatch(word, terms.get(form), question.credit.get(form, 1.0), kinds.get(form, ()))
        for word in vocabulary
        if word[:2] in heads and (form := stem(word)) in forms
    }


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark."""
    return _QUESTION_END.search(text[-8:]) is not None


def parse_question(text: str, *, max_terms: int, now_ms: int | None = None, zone: Zone = UTC_ZONE) -> Question:
    """The query as a question. Without `now_ms`, words like "yesterday" name no date."""
    query = parse_query(_SHORT_IS.sub(r"\1's", text))
    times = named_times(query.words, now_ms, likely_languages(words(query.words)), zone)
    asks = _without_kind_of(query.words if times.other is None else times.other.rest)
    language = language_of(words(asks)) if times.other is None else times.other.language
    unasked = function_words(language)
    if language == ENGLISH:
        unasked |= _ASIDES
    if times.spans:
        # "What did we talk about in July?" asks for whatever was said then.
        unasked |= talk_words(language)
    asked = query_terms(asks, unasked, may_be_empty=bool(times.spans) or times.other is not None)
    if times.spans:
        asked = _without_times(asked)
    asks_everything = not times.spans and _asks_everything(words(asks), unasked)
    if asks_everything:
        # As if it named all times: then the newest and most important answer it.
        times, asked = replace(times, spans=(_ALL_TIMES,)), []
    asks_time_alone = bool(times.spans) and all(map(_is_calendar_term, asked))
    if asks_time_alone and times.other is not None:
        asks = times.other.calendar
        asked = query_terms(asks, unasked, may_be_empty=True)
    terms = tuple(asked[:max_terms])
    # A long text names many kinds by the way.
    is_text = len(terms) > _MOST_TERMS_OF_QUESTION
    concepts = {} if is_text else {term: _concepts(term, language) for term in terms if term not in STOP_WORDS}
    kinds = {term: _hyponyms_of(term, meant).difference(terms) for term, meant in concepts.items()}
    loose = {term: _said_for(term, meant).difference(terms, kinds[term]) for term, meant in concepts.items()}
    kinds = {term: frozenset(sorted(kinds[term])[:_MAX_HYPONYMS]) | loose[term] for term in concepts}
    return Question(
        query=query,
        terms=terms,
        surface={stem(word): word.partition("'")[0] for word in indexed_words(asks)},
        forms={term: (term,) for term in terms},
        credit={},
        hyponyms={term: members for term, members in kinds.items() if members},
        loose={term: members for term, members in loose.items() if members},
        dates=times.dates,
        spans=times.spans,
        asks_time_alone=asks_time_alone,
        asks_where_left_off=asks_where_left_off(query.words),
        language=language,
        zone=zone,
        concepts={term: meant for term, meant in concepts.items() if meant},
        divided={stem(name): tuple(map(stem, parts)) for name, parts in compounds(asks).items()},
    )


def _concepts(term: str, language: str) -> frozenset[str]:
    return frozenset({term}) if language == ENGLISH else in_english(term, language)


def _hyponyms_of(term: str, concepts: frozenset[str]) -> frozenset[str]:
    """The hyponyms of a term and of what it means in English, and its translation."""
    return hyponyms(term).union(concepts, *map(hyponyms, concepts)) - {term}


def _said_for(term: str, concepts: frozenset[str]) -> frozenset[str]:
    return said_for(term).union(*map(said_for, concepts)) - {term}


def _without_kind_of(text: str) -> str:
    """`what kind of moss` asks for moss, not for kinds. A query of nothing else stays as it is."""
    kept = _KIND_OF.sub(" ", text)
    return text if STOP_WORDS.issuperset(words(kept)) else kept


def _starts_with_plural(following: Sequence[str]) -> bool:
    """Whether the first noun is in the plural. A verb may end in -s too: which ferry leaves at seven?"""
    for word, after in pairwise(following):
        if word in _AFTER_NOUN:
            return False
        if after in _AFTER_NOUN:
            return word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
    return False


def _without_times(asked: list[str]) -> list[str]:
    """The terms without those for times. If nothing else is asked, the names of days and months and the numbers stay:
    what is said about a day is seldom said on it."""
    kept = [term for term in asked if term not in _TIME_TERMS]
    return [term for term in asked if _is_calendar_term(term)] if all(map(_is_calendar_term, kept)) else kept


def _asks_everything(asked: Sequence[str], unasked: Set[str]) -> bool:
    """Whether a query asks for whatever is known: "what do you know about me?", "tell me about people". English."""
    named = set(asked)
    is_of_oneself = not (named.isdisjoint(_KNOWING) or named.isdisjoint(_ONESELF))
    is_of_all = is_of_oneself or not named.isdisjoint(_EVERYTHING) or not named.isdisjoint(_REMEMBERING)
    return (
        is_of_all
        and named.isdisjoint(_POINTING)
        and named <= unasked | STOP_WORDS | _EVERYTHING | _KNOWING | _ONESELF | _ASKING
    )


def _is_calendar_term(term: str) -> bool:
    return term in _CALENDAR or _DATE_NUMBER.fullmatch(term) is not None
