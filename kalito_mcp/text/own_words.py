"""Tells a person's own words in a prompt from what they pasted or quoted there. Pure.

What somebody pasted is evidence: it can be found, but it is never the person's rule, decision or fact. Two things show
it in any language. A line may have the shape of a log, a diff, a letter, a table or code: from there on, nothing counts
as own, because nobody can tell where the paste ends. Or a line announces what follows it ("translate this:"), which
only the caller can judge; `Passage.leads` says where that question arises. A fenced block or a quotation has an end, so
what follows it is the person's again.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kalito_mcp.text.code_blocks import code_blocks
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import split_lines


class Passage(NamedTuple):
    """A sentence of a prompt, on one line."""

    text: str
    unquoted: str
    """The same without the words inside quotation marks."""
    label: str = ""
    """What stands before a colon inside it: if that announces material, the rest of the prompt is material."""
    leads: bool = False
    """Whether another line follows: if the sentence announces material, the rest of the prompt is material."""
    paragraph: int = 0
    """The number of its paragraph in its stretch, from 0."""
    stretch: int = 0
    """How many stretches of prose stand before it: blocks and quoted lines lie between them."""


_MATERIAL: Final = lazy(
    r"[ \t]{2,}\S|\t|@\w"  # indented, decorated or addressed
    r"|\+|@@ |-{3,}|={3,}|\*{3,}|diff --|index [0-9a-f]{7}|commit [0-9a-f]{7}"  # diffs, rules, commits
    r"|[|{}<\[\]();&\\]|#|//|/\*|\*/|--\s"  # tables, markup, data, headings, comments
    r"|\$ |% |>>>|PS [A-Z]:|[\w.-]+@[\w.-]+[:~ ]\S*[$#] "  # terminals
    r"|(?:\d{4}[-/.]\d\d[-/.]\d\d|\d{1,2}:\d\d)(?!\d)|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d"  # moments
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE|FAIL|FAILED|PASS)\b"
    r"|(?:error|warning|fatal|panic|info|debug|note)(?:\[\w+\])?: |\w+ ERR!|\w*(?:Error|Exception)\b:?"
    r"|Traceback |at \S+[(:]|File \"|Caused by:"
)
"""How a line begins that is no prose of a chat."""

_STAMPED: Final = lazy(r"\S.{0,40}[ \[(](?:\d{1,2}:\d\d(?::\d\d)?(?: ?[APap][Mm])?)(?:[\])]|:\s|\s-\s|\s*$)")
"""A line of a chat or a calendar: somebody, and a time."""
_FIELD: Final = lazy(r"(?:[^\s:：=]+ ?){1,3}(?::\s|：|\s?=\s?(?=\S)|:$)")
"""A line of a header, a record or a script of a conversation: `Reporter: bob`."""
_SALUTATION: Final = lazy(r"(?:\S+ ?){1,6}[,，、]")
_LEAST_OF_TITLED: Final = 3
_LEAST_COLUMNS: Final = 2
_QUOTED_LINE: Final = ">"
_CLAUSE: Final = 28
"""Characters of five words."""
_BLANK: Final = lazy(r"\n[ \t]*\n")
_MOST_LINES: Final = 8
"""Of a longer prompt without quotations, only the first paragraph is taken for typed."""

_CLOSING: Final = {'"': '"', "“": "”", "„": "“”", "«": "»", "»": "«", "「": "」", "『": "』", "‹": "›", "‘": "’"}
_OPENING: Final = frozenset(_CLOSING) | {"'"}
_SINGLE: Final = lazy(r"(?<!\w)'(?=\S)(?:[^'\n]|'(?=\w))*'(?!\w)")
_GONE: Final = "\0"
_LABEL: Final = lazy(r"([^:：\0]{2,80})[:：](?=\s+\S|[^\s\d/\\:.A-Za-z])")


def passages(text: str) -> tuple[list[Passage], bool]:
    """The sentences of a prompt up to what has the shape of material, in order, and whether that is all of it.

    Sentences inside quotation marks are left out; a longer one that quotes is there whole.
    """
    found: list[Passage] = []
    stretch = 0
    for prose, _ in code_blocks(text.strip("\n")):
        for piece, is_own in _stretches(prose):
            if not is_own:
                return found, False
            paragraphs = [one for one in _BLANK().split(piece) if one.strip()]
            for at, one in enumerate(paragraphs):
                said = _said(one, has_more=at < len(paragraphs) - 1)
                found += [passage._replace(paragraph=at, stretch=stretch) for passage in said]
            stretch += 1
    return found, True


def quotes_a_clause(passage: Passage) -> bool:
    """Whether what it quotes is more than a name or a term."""
    quoted = len(passage.text) - len(passage.unquoted)
    return quoted >= _CLAUSE if passage.text.isascii() else quoted >= _CLAUSE // 2


def _stretches(prose: str) -> Iterator[tuple[str, bool]]:
    """The prose in pieces that quoted lines separate; the last is not the person's if it begins with material."""
    lines = prose.splitlines()
    end = _own_lines(lines)
    piece: list[str] = []
    for line in lines[:end]:
        if line.lstrip().startswith(_QUOTED_LINE):
            if piece:
                yield "\n".join(piece), True
            piece = []
        else:
            piece.append(line)
    if piece:
        yield "\n".join(piece), True
    if end < len(lines):
        yield "", False


def _own_lines(lines: list[str]) -> int:
    """How many lines there are before the first that has the shape of material."""
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    is_long = sum(map(bool, map(str.strip, lines))) > _MOST_LINES
    for at, line in enumerate(lines):
        if not line.strip():
            if is_long and at > first:
                return at
            continue
        is_material = _MATERIAL().match(line) or _STAMPED().match(line)
        if is_material or any(begins(lines, at) for begins in (_begins_fields, _begins_letter, _begins_table)):
            return at
        if _is_title(lines, at):
            return at + 1
    return len(lines)


def _begins_fields(lines: list[str], at: int) -> bool:
    """Whether this line and the next are fields."""
    return at + 1 < len(lines) and all(_FIELD().match(one) for one in lines[at : at + 2])


def _is_title(lines: list[str], at: int) -> bool:
    """Whether this first line is a title: it begins with a capital, ends like no sentence, and stands above prose that
    begins with one, too."""
    below = [one for one in lines[at + 1 :] if one.strip()]
    if at or len(lines) < _LEAST_OF_TITLED or lines[1].strip() or not below:
        return False
    title = lines[0].strip()
    is_alone = title[-1:].isalnum() or title[-1:] in ")]"
    return is_alone and " " in title and title[0].isupper() and below[0][0].isupper() and below[0].rstrip()[-1:] in ".!"


def _begins_letter(lines: list[str], at: int) -> bool:
    """Whether the line is a salutation: short, alone, with a comma behind it."""
    is_first = at == 0 or not lines[at - 1].strip() or at == 1
    return is_first and at + 1 < len(lines) and _SALUTATION().fullmatch(lines[at].strip()) is not None


def _begins_table(lines: list[str], at: int) -> bool:
    """Whether this line and the next have the same columns."""
    if at + 1 >= len(lines):
        return False
    for mark in (";", "\t", ","):
        count = lines[at].count(mark)
        is_tight = f"{mark} " not in lines[at]
        if count >= _LEAST_COLUMNS and is_tight and lines[at + 1].count(mark) == count:
            return True
    return False


def _said(prose: str, *, has_more: bool) -> Iterator[Passage]:
    lines = split_lines(prose)
    closing = ""
    for number, (line, sentences) in enumerate(lines):
        masked, closing = _without_quoted(line, closing)
        place = 0
        for at, sentence in enumerate(sentences):
            place = max(line.find(sentence, place), place)
            outside = masked[place : place + len(sentence)]
            place += len(sentence)
            if not any(map(str.isalnum, outside)) or (outside[0] == _GONE and sentence[0] not in _OPENING):
                continue  # nothing of it, or not its beginning, is outside of quotation marks
            label = _LABEL().match(outside)
            is_last = at == len(sentences) - 1
            yield Passage(
                sentence,
                outside.replace(_GONE, ""),
                label[1].strip() if label else "",
                is_last and (has_more or number < len(lines) - 1),
            )


def _without_quoted(line: str, closing: str) -> tuple[str, str]:
    """The line, in which each character between quotation marks is a zero, and what closes the quotation at its end.
    `closing` is what closes the one at its beginning."""
    kept = list(_SINGLE().sub(lambda found: _GONE * len(found[0]), line))
    for at, character in enumerate(line):
        if closing:
            closing = "" if character in closing else closing
            kept[at] = _GONE
        elif character in _CLOSING and (character != '"' or not line[at - 1 : at].isdigit()):
            closing = _CLOSING[character]
            kept[at] = _GONE
    return "".join(kept), closing
