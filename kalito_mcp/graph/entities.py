"""Finds entities in a text: files, addresses, tags, identifiers and proper names, recognised by their letters. Pure.

A name is a run of capitalised words. A single word that opens a sentence is capitalised by position: it counts
only where it has a second capital (GitHub, SQL) or stands in mid-sentence elsewhere in the text. There is no model
and no dictionary. Not found: names in lower case, names in scripts without capitals, and dates. In German every noun
has a capital, so nouns count too. Headings, bold labels, fenced code and shouting are not read.

Measured on the messages of `tests/graph/labelled_entities.py`, precision and recall:
- held-out messages (116): 0.94, 0.86
- messages used for tuning (104): 0.98, 0.89; with 125 others that were dropped since, 0.95, 0.84
"""

import re
from collections.abc import Iterator
from typing import Final

from kalito_mcp.text.analysis import STOP_WORDS, fold
from kalito_mcp.text.times.other_languages import calendar_words
from kalito_mcp.text.times.vocabulary import MONTHS, WEEKDAYS

_MAX_READ: Final = 20_000
_MAX_LENGTH: Final = 120
_MAX_ACRONYM: Final = 6
_MAX_NAME_WORDS: Final = 6
_MIN_GERUND: Final = 6

# Replaced by a line end: shouting of three or more words, fenced code, headings, bold labels of list items.
_SKIPPED: Final = re.compile(
    r"\b[A-Z]{2,20}(?:[ ,!]++[A-Z']{2,20}\b){2,}|```(?>(?:[^`]++|`(?!``))*)(?:```|\Z)|^\#{1,6} [^\n]*+"
    r"|^[ \t]*+(?:(?:[-*•]|\d{1,3}[.)])[ \t]++)?\*\*[^*\n]{1,100}+\*\*",
    re.MULTILINE,
)
_EXTENSIONS: Final = "|".join(
    "bat c cc cfg conf cpp cs css csv db diff docx? go gradle graphql gz h hpp html? ini ipynb java jpe?g js jsonl? "
    "jsx kts? lock log lua md mjs mp3 mp4 odt parquet patch pdf php png pptx? proto ps1 pyi? rb rs rst scss sh sql "
    "sqlite svg swift tar tex toml tsv tsx? txt vue xlsx? xml ya?ml zip".split()
)
# Prose is passed over first, for speed. Repeats are possessive or bounded: a hostile text must not take time
# quadratic in its length.
# Atomic groups where a part can backtrack: before 3.11.5, Python matches possessive ones wrongly (gh-106052).
_SHAPE: Final = re.compile(
    rf"""(?P<prose>(?<![\w'’])(?>(?:[A-Za-z]?[a-z'’]*+(?:[\s,;!?]|\.(?=\s))+)+))
    |`(?P<quoted>[^`\n]{{1,{_MAX_LENGTH}}}+)`
    |(?P<url>(?:https?|ftp)://[^\s<>"`]++|(?<![\w@.-])www\.[^\s<>"`]++
        |(?<![\w@.-])(?:[a-z0-9-]{{1,63}}+\.){{1,6}}(?:com|org|net|io|dev)(?![\w.@-])(?:/[^\s<>"`]*+)?+)
    # An e-mail address.
    |(?<![\w.+-])[\w.+-]{{1,64}}+@[a-zA-Z0-9-]++(?:\.[a-zA-Z0-9-]++)++
    # ~/.ssh/config, C:\x.txt; /etc/hosts; src/app.py, app.py; .env
    |(?<![\w./\\-])(?:(?:~|\.\.?)/|[A-Za-z]:\\)[\w./\\-]{{0,{_MAX_LENGTH}}}\w
    |(?<![\w./\\-])(?>(?:/[\w.-]{{0,60}}\w){{2,12}})(?!/)
    |(?<![\w./\\-])(?:[\w.-]{{1,60}}+/){{0,12}}[\w.-]{{1,60}}\.(?:{_EXTENSIONS})(?!\w)
    |(?<![^\s(])\.[a-z]\w{{2,20}}+(?![\w.])
    # #tag, but no colour; @handle; --flag; C#
    |(?<![\w&#/.=?)@-])(?:\#(?=[^\W\d_])(?![0-9a-fA-F]{{3}}(?:[0-9a-fA-F]{{3}})?\b)|@(?=\w))[\w-]{{0,60}}\w
    |(?<![\w-])--[a-z][a-z0-9-]{{0,60}}[a-z0-9]
    |(?<!\w)(?:[CF]\#|C\+\+)(?!\w)
    # os.path.join(, flush(), snake_case, camelCase
    |(?<![\w.])(?:[A-Za-z_]\w{{0,60}}+\.){{1,6}}[A-Za-z_]\w*+(?=\()
    |(?<![\w.])[A-Za-z_]\w++(?=\(\))
    |(?<![\w.])_{{0,2}}[A-Za-z][A-Za-z0-9]*+(?:_++[A-Za-z0-9]++)++_{{0,2}}(?!\w)
    |(?<![\w.])[a-z]++[A-Z]\w*+
    """,
    re.VERBOSE,
)
_URL_TAIL: Final = ".,;:!?'\"’”*_"

# Letters of scripts with capitals lie below U+2E80: a word ends where Han or kana begin.
_CAPITALISED: Final = re.compile(
    r"[^\W\d_a-z\u2e80-\uffff](?<![^\W\u2e80-\uffff].)(?>(?:['’-]?[^\W_\u2e80-\uffff])*)", re.DOTALL
)
_POSSESSIVE: Final = re.compile(r"['’](?:s|m|d|re|ve|ll|t)?\Z|(?<=[A-Z]{2})s\Z|-[a-zß-ÿ].*\Z")
# What may stand between the words of one name.
_LINKS: Final = frozenset((" ", "&")).union(
    f" {link} "
    for link in ("&", "of", "of the", "van", "van der", "van den", "von", "de", "de la", "del", "da", "do", "du")
)
_NOT_NAMES: Final = STOP_WORDS | MONTHS.keys() | WEEKDAYS.keys() | set(
    "asap btw dr fyi lol mr mrs ms ok okay omg prof".split()
)  # fmt: skip
# "Hey Anna", "Yesterday Anna": words capitalised because they open the sentence, before a name.
_OPENERS: Final = frozenset(
    """absolutely actually bye check congrats congratulations dear finally go good great haha happy hello hey hi maybe
    nice oh sorry sure thank thanks today tomorrow welcome well wow yeah yep yes yesterday""".split()
)
_ABBREVIATED: Final = re.compile(r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St)\.\Z")

_Word = tuple[int, int]
"""Where a word begins and ends."""


def entities(text: str) -> tuple[str, ...]:
    """The distinct things that the text names, as written, in order of first appearance.

    Distinct by folded case, and at most 120 characters each. Only the first 20,000 characters are read. Empty where
    nothing is named.
    """
    found: list[tuple[int, str]] = []

    def take(match: re.Match[str]) -> str:
        if match["prose"]:
            return match["prose"]
        found.append((match.start(), match["quoted"] or _without_tail(match)))
        # Its words must not be found again as names. The same length keeps all positions valid.
        return "\0" * len(match.group())

    rest = _SHAPE.sub(take, _SKIPPED.sub("\n", text[:_MAX_READ]))
    kept: dict[str, str] = {}
    for _, entity in sorted([*found, *_names(rest)]):
        if 1 < len(entity.strip()) <= _MAX_LENGTH:
            kept.setdefault(entity.strip().casefold(), entity.strip())
    return tuple(kept.values())


def _without_tail(match: re.Match[str]) -> str:
    """The match. A URL loses its sentence's punctuation, and a closing bracket that opened before it."""
    found = match.group()
    if match["url"]:
        found = found.rstrip(_URL_TAIL)
        if found.endswith(")") and found.count(")") > found.count("("):
            found = found[:-1]
    return found


def _names(text: str) -> Iterator[tuple[int, str]]:
    """The names in the text, each with its place."""
    runs = [(_opens_sentence(text, run[0][0]), run) for run in _runs(text)]
    inside = {text[slice(*word)].casefold() for opens, run in runs if not opens for word in run}
    for opens, run in runs:
        words = run
        while opens and len(words) > 1 and _is_opener(text[slice(*words[0])]):
            words = words[1:]
        name = text[words[0][0] : words[-1][1]]
        is_capital_by_position = words is run and len(words) == 1 and opens and name[1:].islower()
        if len(words) <= _MAX_NAME_WORDS and (not is_capital_by_position or name.casefold() in inside):
            yield words[0][0], name


def _runs(text: str) -> Iterator[list[_Word]]:
    """The capitalised words that may be names, joined where they may be one name."""
    run: list[_Word] = []
    for match in _CAPITALISED.finditer(text):
        start, word = match.start(), _POSSESSIVE.sub("", match.group())
        folded = word.casefold()
        is_shouted = word.isupper() and len(word) > _MAX_ACRONYM
        if is_shouted or not word[:1].isupper() or not _NOT_NAMES.isdisjoint((folded, folded.removesuffix("s"))):
            continue
        if fold(word) in calendar_words(is_sure=True):
            continue
        if run and not _is_link(text[run[-1][1] : start], after=run[-1]):
            yield run
            run = []
        run.append((start, start + len(word)))
    if run:
        yield run


def _is_link(gap: str, *, after: _Word) -> bool:
    """Whether a name may continue after the gap. A dot is allowed only after an initial: J. R. Tolkien."""
    return gap in _LINKS or (gap in {".", ". "} and after[1] - after[0] == 1)


def _opens_sentence(text: str, start: int) -> bool:
    """Whether the word stands at the beginning of a text, line, sentence, quotation or list item."""
    before = text[max(0, start - 8) : start].rstrip(" \t\"'“‘«([*_>•-–—")
    return not before or (before[-1] in ".!?:;\n…" and not _ABBREVIATED.search(before))


def _is_opener(word: str) -> bool:
    """Whether a sentence may begin with the word before a name: Hey Anna, Visiting Oslo."""
    return word.casefold() in _OPENERS or (len(word) >= _MIN_GERUND and word.endswith("ing"))
