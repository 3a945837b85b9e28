"""Which sentences of a message ask for something, how alike two questions are, and which replies answer nothing. Pure.

A question mark asks in every language. Without one, only English questions and requests for information are known.
"""

import re
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

from kalito_mcp.text.analysis import query_terms, stem, words
from kalito_mcp.text.languages import ENGLISH, every_function_word, function_words, language_of
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import split_sentences, without_opener
from kalito_mcp.text.times.vocabulary import MONTH_NAMES, WEEKDAY_NAMES

_MAX_CHARS: Final = 4_000
_MAX_LAST_CHARS: Final = 300
"""Of a text, in which its last sentence begins if it asks."""

_LONGEST_END: Final = 8
"""Of a text: a question mark, and what closes after it."""

_MAX_QUESTIONS: Final = 8
_MAX_REPLY_WORDS: Final = 12

_MOST_BEGUN: Final = 12
"""Words of a query that a begun answer repeats."""
_SHORTENED: Final = re.compile("['’].*")
"""The end of `what's`."""

_VERB: Final = (
    "(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must|isn't|aren't|"
    "wasn't|weren't|don't|doesn't|didn't|hasn't|haven't|hadn't|can't|couldn't|won't|wouldn't|shouldn't)"
)
_SUBJECT: Final = (
    r"(?:i|you|we|they|he|she|there|this|that|these|those|the|my|your|our|their|his|her|its|any\w*|some\w*)"
)
_ENDS_AS_QUESTION: Final = re.compile(r"[?？؟;՞][\"'”’»)\]]*\Z")
_ASKS: Final = lazy(
    rf"(?:when|where|why|who|whom|how)(?:'?s\b|'re| {_VERB}\b)"
    rf"|(?:what|which|whose)(?:'?s\b|'re|(?! an? )(?: [\w'-]+){{0,3}}? {_VERB}\b)"
    r"|how (?:to|many|much|long|far|often|old|big|large|fast|late|early|soon|come)\b"
    rf"|{_VERB} (?:it(?! now)|{_SUBJECT}) \S"
    r"|(?:please |can you |could you )?(?:tell me (?!if you|that)|explain\b|describe\b"
    r"|remind me (?:of|about|what|when|where|who|which|why|how)\b)",
    re.IGNORECASE,
)

_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME: Final = re.compile(r"(?<=[^\W_] )[^\W\d_a-zß-öø-ÿ][\w'-]+")
"""A word with a capital letter after another word: not the first of a sentence."""

_DAYS: Final = frozenset(map(stem, MONTH_NAMES | WEEKDAY_NAMES))
_NEGATIONS: Final = frozenset("not no never none without neither nor cannot".split())
_WANTED: Final = {
    "when": "time",
    "where": "place",
    "who": "person",
    "whom": "person",
    "whose": "person",
    "why": "reason",
}
_WANTED_BY_TWO: Final = {
    ("how", "many"): "count",
    ("how", "much"): "amount",
    ("how", "long"): "length",
    ("how", "often"): "times",
    ("how", "old"): "age",
    ("how", "far"): "distance",
    ("how", "come"): "reason",
    ("what", "time"): "time",
    ("what", "day"): "time",
    ("what", "date"): "time",
    ("which", "day"): "time",
    ("which", "date"): "time",
    ("what", "place"): "place",
    ("which", "place"): "place",
}

_ACKNOWLEDGING: Final = """absolutely alright appreciate bet bye check cool course done enjoy get glad good goodbye got
    great hello hi keep kept know look memory mind moment noted note ok okay perfect please pleasure problem recorded
    remember remembered right saved saving see sorry sounds stored sure thank thanks understood welcome worries
    notiert verstanden gut klar danke gerne bitte gemerkt ordnung
    noté compris bien merci entendu accord volontiers
    anotado entendido gracias vale acuerdo nada perfecto claro
    annotato capito bene grazie prego certo
    anotado entendi certo obrigado obrigada
    genoteerd begrepen dank graag goed prima
    noterat förstått tack okej bra
    zanotowane rozumiem dziękuję dobrze jasne
    записано понял поняла принято хорошо спасибо конечно"""
_AROUND_IT: Final = """a all am and anything are checking definitely down fine for found happy have hear here i if in
    indeed information info is it just let like looking made make me message much my need nice no of question so that
    the there this to too up very want well will with written you your i'll i've i'm that's it's you're we'll don't
    can't let's sec second
    alles de rien d' di va d'accord"""
"""One of the former makes a reply of nothing else an acknowledgement; the latter do not."""

_BARE_ANSWERS: Final = frozenset({"yes", "no", "yeah", "yep"})


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question asks for: its content terms, which of them are names, its numbers and named days, the kinds of
    thing it wants, and whether it denies."""

    terms: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    wanted: frozenset[str]
    is_negative: bool


def questions_in(text: str) -> Sequence[str]:
    """The sentences of a text that ask for something, at most eight; none if it only states."""
    found = [one for one in split_sentences(text[:_MAX_CHARS]) if _asks(one)]
    return found[:_MAX_QUESTIONS]


def ends_by_asking(text: str) -> bool:
    """Whether the last sentence of a text asks for something. Without a question mark, it ends without any."""
    text = text.rstrip()
    if not text[-1:].isalnum():
        return _ENDS_AS_QUESTION.search(text[-_LONGEST_END:]) is not None
    sentences = split_sentences(text[-_MAX_LAST_CHARS:])
    return bool(sentences) and _asks(sentences[-1])


def likeness(asking: str, past: str) -> float:
    """How far two questions ask for the same, in [0, 1]: the share of their content terms that both have.

    Of the questions in a text, and the whole text, the most alike count. 0 if they want things of different kinds
    (when, where), have different names, numbers or days, or only one denies, and if one has no content term, unless
    the words are equal.
    """
    return most_alike(wordings(asking, questions_in(asking)), wordings(past, questions_in(past)))


def most_alike(ours: Iterable[str], theirs: Collection[str]) -> float:
    """The likeness of the two `wordings` that are most alike."""
    return max(_alike(one, other) for one in ours for other in theirs)


def wordings(text: str, questions: Iterable[str]) -> frozenset[str]:
    """The wordings of a text: its questions, and the whole text."""
    return frozenset({text[:_MAX_CHARS], *questions})


def may_be_alike(asking: Sequence[Set[str]], text: str, least: float) -> bool:
    """Whether a text can be at least so alike a question of these content terms. A tenth of the work of `likeness`: all
    of its words are taken for content terms that are shared, and what is a function word in any language for none that
    are not."""
    if not text.isascii():
        return True
    said = words(text)
    found = set(map(stem, said))
    content = {stem(word) for word in said if word.partition("'")[0] not in every_function_word()}
    for terms in asking:
        both = len(terms & found)
        if both >= least * (len(terms) + max(0, len(content) - both)):
            return True
    return False


def terms_of_wordings(asking: Iterable[str]) -> list[frozenset[str]]:
    """The content terms of each wording."""
    return [_parsed(one).terms for one in sorted(asking)]


def answers_nothing(text: str) -> bool:
    """Whether a reply only acknowledges, thanks or promises: `Noted.`, `Sure, I'll keep that in mind.`

    A bare yes or no is an answer.
    """
    said = words(text[:_MAX_CHARS])
    if not said:
        return not any(letter.isalnum() for letter in text)
    if len(said) > _MAX_REPLY_WORDS or said[0] in _BARE_ANSWERS:
        return False
    acknowledging, around_it = _empty_words()
    return not acknowledging.isdisjoint(said) and (acknowledging | around_it).issuperset(said)


def _asks(sentence: str) -> bool:
    if _ENDS_AS_QUESTION.search(sentence) is not None:
        return True
    return not sentence.endswith("!") and _ASKS().match(without_opener(sentence)) is not None


def _alike(one: str, other: str) -> float:
    ours, theirs = _parsed(one), _parsed(other)
    if not ours.terms or not theirs.terms:
        return float(words(one) == words(other))
    if ours.is_negative != theirs.is_negative:
        return 0.0
    if ours.wanted and theirs.wanted and ours.wanted.isdisjoint(theirs.wanted):
        return 0.0
    if (ours.numbers - theirs.numbers) and (theirs.numbers - ours.numbers):
        return 0.0
    if (ours.names - theirs.terms) and (theirs.names - ours.terms):
        return 0.0
    return len(ours.terms & theirs.terms) / len(ours.terms | theirs.terms)


@lru_cache(maxsize=1_024)
def _parsed(question: str) -> _Asked:
    said = words(question)
    language = language_of(said)
    terms = frozenset(query_terms(question, function_words(language), may_be_empty=True))
    bare = [word.partition("'")[0] for word in said]
    wanted = {_WANTED_BY_TWO[pair] for pair in pairwise(bare) if pair in _WANTED_BY_TWO}
    if not wanted and language == ENGLISH:
        wanted = {_WANTED[word] for word in bare[:3] if word in _WANTED}
    is_negative = language == ENGLISH and any(word in _NEGATIONS or word.endswith("n't") for word in said)
    names = frozenset(map(stem, words(" ".join(_NAME.findall(question))))) & terms
    numbers = frozenset(_NUMBER.findall(question)) | (terms & _DAYS)
    return _Asked(terms, names, numbers, frozenset(wanted), is_negative)


@cache
def _empty_words() -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(words(_ACKNOWLEDGING)), frozenset(words(_AROUND_IT))


def begun_answer(query: str) -> str:
    """The query as the beginning of a sentence that answers it: without the words that only ask, and with a gap.

    `What did Kirsty charge for the dog?` is `Kirsty charge for the dog ...`.
    """
    said = [word for word in query[:_MAX_LAST_CHARS].replace('"', " ").split() if not word.startswith("-")]
    only_asks = every_function_word().issuperset
    first = next((place for place, word in enumerate(said) if not only_asks(words(_SHORTENED.sub("", word)))), 0)
    return f"{' '.join(said[first : first + _MOST_BEGUN]).rstrip('?？؟;՞.! ')} ...".strip()
