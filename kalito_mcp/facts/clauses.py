"""Cuts a text into clauses that may state something: subject, predicate, and where in the text. Pure.

Questions, conditions, wishes, plans, quotes and code state nothing and are left out. All positions are those of the
text itself. Every expression reads a text once, from left to right.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.text.lazy_pattern import lazy

MOST_CHARS: Final = 4_000
"""Of a text. What follows is not read."""

_MASKED: Final = lazy(
    r"```.*?(?:```|\Z)|(?m:^[ \t]*>.*$)|https?://\S+"
    r"|[\"“«„][^\"“”«»„\n]{0,400}[\"”»“]|(?<!\w)['‘][^'‘’\n]{0,200}['’](?!\w)",
    re.DOTALL,
)
_SENTENCE: Final = lazy(r"[^.!?\n。！？]+(?:[.](?=[\w@/-])[^.!?\n。！？]*)*[.!?。！？]*")
_ABBREVIATED: Final = lazy(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|Jr|vs|e\.g|i\.e|approx|No)\.(?=\s)")
_QUESTION: Final = lazy(
    r"[?？]\s*$|^\s*(?:translate|in \d{4}\b.*\bfor an? (?:year|month|while|week)\b)"
    r"|^\s*(?:do|does|did|is|are|was|were|can|could|who|what|where|when|which|why|how)\b.*\byou\b",
    re.IGNORECASE,
)
_WORD: Final = lazy(r"[^\W_]+(?:'[a-z]+)?")
_UNSURE: Final = frozenset(
    """if unless whether almost nearly tempted considered would could should might may maybe perhaps possibly probably
    wish wishes hope hopes hoping imagine suppose pretend wonder wondering considering gonna will i'll we'll he'll
    she'll they'll i'd we'd dreamed dreamt said says told asked claim claims hypothetically character guess believe
    think translate letter""".split()
)


def _phrases(listed: str) -> Callable[[], re.Pattern[str]]:
    """What finds one of these phrases, between spaces. They are divided by commas."""
    phrases = "|".join(re.escape(" ".join(phrase.split())) for phrase in listed.split(","))
    return lazy(f" (?:{phrases}) ")


_UNSURE_PHRASES: Final = _phrases(
    """thinking of, thinking about, plan to, plans to, planning to, planning on, want to, wants to, wanted to, going
    to, about to, for example, e g, in case, in the novel, in the book, in the movie, in the film, in the story, in
    the game, once upon, let's say"""
)
_MONTH_OF_MAY: Final = lazy(r"\bmay (?=\d)|(?<=\d )may\b", re.IGNORECASE)
_DECIDED: Final = lazy(r"\b(?:decided|agreed|chose|we will (?:use|go)|we'll (?:use|go))\b", re.IGNORECASE)
_CHANGE: Final = frozenset(
    """now nowadays anymore correction actually instead switched changed moved relocated misspoke update meanwhile
    joined quit left became recently just started stopped new converted upgraded downgraded replaced renamed
    rescheduled postponed shifted resigned retired got starting decided adopted sold promoted updated""".split()
)
_CHANGE_PHRASES: Final = _phrases(
    """no longer, any more, turns out, i meant, as of, from now on, these days, used to, since then, this year, last
    week, last month, last year, last quarter, last spring, last summer, last autumn, last fall, last winter"""
)
_LEAD: Final = lazy(
    r"\s*(?:(?:correction|update|edit|note|fyi|btw|ok|okay|so|well|and|but|also|oh|hey|hi|hello|yes|no|yeah|actually|"
    r"sorry|wait|by the way|in fact|to be clear|for the record|turns out(?: that)?|it turns out(?: that)?|"
    r"i misspoke|i was wrong|now|nowadays|currently|today|recently|lately|these days|from now on|finally|"
    r"remember(?: that)?|remember this|note that|please note(?: that)?|as of [\w ]{1,20}?,|since [\w ]{1,20}?,|"
    r"(?:in|starting|from|throughout|during|by) (?:(?:early|late|mid)[ -])?(?:[A-Z][a-z]+ )?\d{4}|"
    r"(?:in|starting|from|since) [A-Z][a-z]+(?=,)|last \w+,|this \w+,|at the moment|at present|hmm|great|"
    r"good news|bad news|big news|guess what)\b[,:;.!\s–—-]*)+",
    re.IGNORECASE,
)
# Spaces are only read from where they begin: what is masked is one long run of them.
_SPACES: Final = r"(?<!\s)\s++"
_SPLIT: Final = lazy(
    rf"(?:{_SPACES})?+[;:–—]\s+|{_SPACES}-\s+|,\s+(?:and|but|so|then|while)\s+"
    r"|,\s+(?=(?:I|we|my|our|he|she|now|not)\b)"
    rf"|{_SPACES}(?:but|because|so that|although|though|while|whereas|since then)\s+"
    rf"|(?:,\s++|{_SPACES})and\s+(?=(?:(?:now|also|currently|just|still|then|recently|no longer)\s+)*"
    r"(?:I|we|my|our|he|she|they|it|is|am|are|was|has|have|had|does|do|lives?|works?|plays?|owns?|drives?|reports?|"
    r"pays?|speaks?|follows?|uses?|likes?|loves?|hates?|prefers?|eats?|drinks?|runs?|leads?|joined|moved|left|quit|"
    r"started|switched|took|teach|teaches|stud(?:y|ies)|commutes?|rents?|hosts?|continues?|rejects?|avoids?|never|"
    r"not|got|adopted|bought|sold|became|goes|go|takes?|wants?|needs?|only|refuses|communicates)\b)",
)
_VERB_LIKE: Final = frozenset(
    """am is are was were be been has have had do does did will live lives lived living reside resides resided work
    works worked working moved relocated moving joined left quit departed resigned retired started began switched
    changed updated upgraded downgraded bumped migrated converted became become turned went prefer prefers preferred
    like likes love loves enjoy enjoys hate hates eat eats ate drink drinks smoke smokes own owns owned drive drives
    drove lease leases rent rents use uses used run runs report reports play plays speak speaks follow follows
    follows need needs study studies learn learns teach teaches read reads watch watches take takes goes go attends
    attend practice practices got gets married divorced filed finalized broke adopted bought sold lost gave cancelled
    canceled dropped stopped no not never don't doesn't just now recently currently finally also still already
    officially decided chose agreed renamed rescheduled postponed pushed shifted replaced takes meets happens expires
    pays pay subscribed registered leads lead refuses refuse consumes consume commutes commute can cannot earns set
    hired promoted actually permanently graduated begins starts exclusively only used share shares sits holds""".split()
)
_DONE: Final = frozenset(
    """handed ditched swapped traded finished done abandoned scrapped threw thrown rewrote resigned retired stepped
    pulled closed settled picked withdrew uninstalled parted donated sold quit left moved relocated cancelled canceled
    switched upgraded migrated replaced dropped stopped gave got lost joined started bumped downgraded returned deleted
    removed adopted bought went changed separated broke split laid fired raised lowered extended decommissioned axed
    binned outgrew completed unsubscribed rejected voted swore promoted rescheduled moving finally put given turned
    came grown come took shifted renamed ported transitioned""".split()
)
"""Verbs of what was done, with which a note may begin: sold the car."""
_DOES: Final = frozenset(
    """ride rides bank deploy host wear store stores meet smoke see keep chose meet train subscribe rely speak
    retired vape cycle meditate""".split()
)
_CONTRACTED: Final = (
    (lazy(r"\b(ca|wo)n't\b", re.IGNORECASE), "can not"),
    (lazy(r"n't\b", re.IGNORECASE), " not"),
    (lazy(r"(?<=\bI)'m\b", re.IGNORECASE), " am"),
    (lazy(r"(?<=\bwe)'re\b|(?<=\bthey)'re\b", re.IGNORECASE), " are"),
    (lazy(r"'ve\b", re.IGNORECASE), " have"),
    (lazy(r"(?<=\bhe|\bit)'s\b", re.IGNORECASE), " is"),
    (lazy(r"(?<=\bshe|\bwho)'s\b", re.IGNORECASE), " is"),
)
_MOST_SUBJECT_WORDS: Final = 7
_MAX_CLAUSE: Final = 300


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause: its subject and predicate as words, whether the sentence speaks of a change, and where it is."""

    subject: str
    predicate: str
    is_change: bool
    start: int
    end: int
    whole: str = ""


def mask(text: str) -> str:
    """The text with code, quotes and addresses as spaces, so that every position stays."""
    cut = text[:MOST_CHARS].replace("’", "'")
    return _MASKED().sub(lambda found: " " * len(found[0]), cut)


def sentences(masked: str) -> Iterator[tuple[int, str]]:
    """The sentences that may state something, with their positions."""
    kept = _ABBREVIATED().sub(lambda found: found[0][:-1] + " ", masked)
    for found in _SENTENCE().finditer(kept):
        sentence = found[0]
        if sentence.strip() and not _QUESTION().search(sentence):
            yield found.start(), sentence


def is_change(sentence: str) -> bool:
    """Whether its words say that something changed."""
    return _has(sentence, _CHANGE, _CHANGE_PHRASES)


def is_unsure(piece: str) -> bool:
    """Whether its words say that it is wished, planned, supposed or told by somebody else."""
    if "may" in piece.lower():
        piece = _MONTH_OF_MAY().sub("", piece)
    return _has(piece, _UNSURE, _UNSURE_PHRASES) and not _DECIDED().search(piece)


def _has(text: str, words: frozenset[str], phrases: Callable[[], re.Pattern[str]]) -> bool:
    """Whether the text has one of the words or phrases."""
    found = _WORD().findall(text.lower())
    if not words.isdisjoint(found):
        return True
    return phrases().search(f" {' '.join(found)} ") is not None


def clauses(start: int, sentence: str) -> Iterator[Clause]:
    """The clauses of an English sentence. One without a subject of its own has that of the clause before; the first
    one, if it begins with what was done (sold the car), is of the speaker."""
    changed, may_be_unsure = is_change(sentence), is_unsure(sentence)
    subject = ""
    for first, end in _pieces(sentence):
        piece = sentence[first:end]
        if len(piece) > _MAX_CLAUSE or (may_be_unsure and is_unsure(piece)):
            subject = ""
            continue
        lead = _LEAD().match(piece)
        begin = lead.end() if lead else 0
        words = _expanded(piece[begin:]).split()
        at = next((n for n in range(len(words)) if _is_verb(words, n)), None)
        if at is None or at > _MOST_SUBJECT_WORDS:
            continue
        is_begun = at == 0 and not subject and words[0].lower() in _DONE
        subject = " ".join(words[:at]) or subject or ("I" if is_begun else "")
        if subject:
            stripped = len(piece) - len(piece.lstrip())
            trimmed = piece.rstrip(" .!;,\t")
            yield Clause(
                subject,
                " ".join(words[at:]).rstrip(".!;,"),
                changed,
                start + first + stripped,
                start + first + len(trimmed),
                " ".join(words),
            )


def _is_verb(words: Sequence[str], n: int) -> bool:
    """Whether the word at this place begins a predicate. Some do so only after a pronoun (we host), or at the start."""
    word, first = words[n].lower().strip(","), words[0].lower()
    if word in _VERB_LIKE:
        return True
    return (word in _DONE and n <= 1 + (first in ("my", "our", "the"))) or (
        word.strip(".!;") in _DOES and n == 1 and first in ("i", "we")
    )


def _pieces(sentence: str) -> Iterator[tuple[int, int]]:
    at = 0
    for found in _SPLIT().finditer(sentence):
        if found.start() > at:
            yield at, found.start()
        at = found.end()
    if at < len(sentence):
        yield at, len(sentence)


def _expanded(piece: str) -> str:
    """Short forms written out: I'm, don't."""
    if "'" in piece:
        for pattern, words in _CONTRACTED:
            piece = pattern().sub(words, piece)
    return piece
