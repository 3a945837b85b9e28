"""What of a token can be told from its letters alone: addresses, files, identifiers, tags, dates. Pure.

A brand written in camel case (GitHub, PyCharm) is a name, not an identifier: where it is listed here, where it has
one hump and capitals after it (MySQL, FastAPI), begins like McDonald, or like iPhone. Everything else with two
humps is code, KeyError and an unlisted brand alike.

Every pattern runs over one token of limited length, without nested backtracking.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from kalito_mcp.graph.entity_words import MONTHS, NEVER, OPENING, STRESSED


class EntityKind(StrEnum):
    """What sort of thing is named."""

    NAME = "name"
    FILE = "file"
    CODE = "code"
    URL = "url"
    EMAIL = "email"
    DATE = "date"
    TAG = "tag"


_CHUNK: Final = re.compile(
    r"""(?P<url>(?:(?i:https?|ftp)://|(?<![\w@.-])(?i:www)\.)[^\s<>"`]++
        |(?<![\w@./-])(?:[a-z0-9-]++\.)++(?:com|org|net|io|dev|ai|edu|gov|de|uk|fr|es|eu|nl)(?![\w.@-])(?:/[^\s<>"`]*+)?+)
    |(?P<email>(?<![\w.+-])[\w.+-]++@[a-zA-Z0-9-]++(?:\.[a-zA-Z0-9-]++)++)
    |(?P<file>(?<!\w)[A-Za-z]:\\[\w.\\$~-]++)
    |(?P<name>(?<!\w)(?:[CF]\#|C\+\+)(?!\w))
    |(?P<tag>(?<![\w&\#/.=?)-])\#(?=[^\W\d_])[\w-]++|(?<![\w./@)-])@(?=\w)[\w-]++(?:\.\w[\w-]*+)*+(?![(/@\w]))
    |(?P<code>(?<![\w-])--[a-z][a-z0-9]*+(?:-[a-z0-9]++)*+(?![\w-]))
    |(?P<thing>[\w.~/\\'’$-]++)
    """,
    re.VERBOSE,
)
_URL_TAIL: Final = ".,;:!?'\"’”*_"
_BRACKETS: Final = {")": "(", "]": "[", "}": "{"}
_HEX_LENGTHS: Final = frozenset((3, 4, 6, 8))
_HEX: Final = re.compile(r"[0-9a-fA-F]++")
_DIRECTIVES: Final = frozenset("define elif else endif if ifdef ifndef include pragma undef".split())

_EXTENSIONS: Final = frozenset(
    "avi bak bash bat bib bin bmp bz2 c cc cert cfg conf cpp crt cs css csv dart db deb diff dll dmg doc docx "
    "dylib ejs env epub erb ex exe exs gif go gradle graphql gz h hpp hs htm html ico ini ipynb iso jar java jpeg jpg "
    "js json jsonl jsx kt kts less lock log lua m4a map md mdx mjs mkv mov mp3 mp4 msi odp ods odt ogg parquet patch "
    "pdf pem php pkl plist png ppt pptx properties proto ps1 psd py pyc pyi pyx qml rb rpm rs rst rtf sass scala scss "
    "sh sql sqlite sqlite3 srt svelte svg swift tar tex tf tgz tiff toml ts tsv tsx ttf txt vb vtt vue wav webm "
    "webp whl woff woff2 xls xlsx xml xz yaml yml zip zsh".split()
)
_FILE_NAMES: Final = frozenset(
    "Brewfile CHANGELOG CMakeLists CODEOWNERS Dockerfile Gemfile Jenkinsfile LICENSE Makefile Pipfile Procfile README "
    "Vagrantfile".split()
)
_DOT_FILES: Final = frozenset(
    "aws babelrc bash_profile bashrc claude config cursor docker dockerignore editorconfig env envrc eslintrc git "
    "gitattributes github gitignore gitmodules htaccess mcp netrc npmignore npmrc nvmrc prettierrc profile pylintrc "
    "ssh tmux vimrc vscode zprofile zshrc".split()
)
# "Node.js" is a product, "node.js" may be a file.
_SCRIPT_PRODUCTS: Final = frozenset("alpine chart d3 discord ember express next node nuxt react three vue".split())

_BRANDS: Final = frozenset(
    "airbnb airdrop airpods airtag aliexpress bigquery bitbucket bitwarden blackberry clickhouse cloudflare "
    "coffeescript deepmind deepseek digitalocean doordash dropbox duckduckgo facetime fedex github gitlab homekit "
    "homepod huggingface javascript jquery lastpass linkedin llamaindex langchain macos mastercard myfitnesspal numpy "
    "onedrive onenote oneplus opensearch openshift paypal playstation powerpoint powershell protonmail pycharm pytorch "
    "quickbooks sharepoint soundcloud sqlalchemy sqlite stackoverflow tensorflow tiktok tripadvisor tvos typescript "
    "virtualbox vscode watchos webassembly webstorm whatsapp wordpress youtube".split()
)
_ISO_DATE: Final = re.compile(r"\d{4}([-/])(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?![\d/-])")
_NUMERIC_DATE: Final = re.compile(r"(\d{1,2})(?:(\.)|/)(\d{1,2})(?(2)\.|/)(?(2)\d{4}|(?:\d{4}|\d\d))")
_DAY: Final = r"(?:[1-9]|[12]\d|3[01]|0[1-9])"
_DAY_FIRST: Final = re.compile(
    rf"{_DAY}(?:st|nd|rd|th|er|\.|º)? (?:of |de )?([^\W\d_]{{3,10}}+)(?:\.?,? (?:de )?[12]\d{{3}}(?!\w))?(?!\w)"
)
_MONTH_FIRST: Final = re.compile(rf"(?:{_DAY}(?:st|nd|rd|th)?(?:,? [12]\d{{3}})?|[12]\d{{3}})(?![\w%€$£]|[:./]\d)")
_MONTH_BEFORE: Final = re.compile(r"(?<![\w#@/.-])([^\W\d_]{3,10})\.? \Z")
_MONTH_ROOM: Final = 13
_MONTHS_A_YEAR: Final = 12
_DAYS_A_MONTH: Final = 31
# "you may 3 times", "march 10 miles": months only with a capital.
_CAPITAL_MONTHS: Final = frozenset(("may", "march", "mar"))

_NAME_PREFIX: Final = re.compile(r"(?:Mc|Mac|De|Di|Du|La|Le|Van|Von|Fitz|[ie])[A-Z]")
_HUMP: Final = re.compile(r"[A-Z][a-z0-9]+")
_AFTER_ACRONYM: Final = re.compile(r"[A-Z]{3,}[a-z]{2}")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*+")
_MIN_HUMPS: Final = 2
_MIN_PARTS: Final = 2
_MIN_PLAIN_PARTS: Final = 3
_MIN_PLAIN_LENGTH: Final = 2
_MIN_SNAKE_LENGTH: Final = 3
_SHORT_ACRONYM: Final = 2

Span = tuple[int, int, EntityKind | None]


def spans(token: str, *, in_code: bool = False) -> Iterator[Span]:
    """What stands in a token without white space, from left to right; None marks what may still be a name.

    In code there are no tags, and `a.b` is code without a call.
    """
    for match in _CHUNK.finditer(token):
        start, end = match.span()
        match match.lastgroup:
            case "thing":
                yield _thing(token, start, end, in_code=in_code)
            case "url":
                yield start, start + len(_trimmed_url(match.group())), EntityKind.URL
            case "tag":
                if not in_code and _is_tag(match.group()):
                    yield start, end, EntityKind.TAG
            case group:
                yield start, end, EntityKind(str(group))


def is_bare_file(word: str) -> bool:
    """Whether the word names a file without a dot: Makefile, README."""
    return word in _FILE_NAMES


def is_camel_case(word: str) -> bool:
    """Whether a word with a capital inside is an identifier and no brand: getUserName, KeyError, HTTPServer."""
    if word.casefold() in _BRANDS or _NAME_PREFIX.match(word) or not _IDENTIFIER.fullmatch(word):
        return False
    if word[0].islower():
        return not word.islower()
    return len(_HUMP.findall(word)) >= _MIN_HUMPS or _AFTER_ACRONYM.match(word) is not None


def is_emphatic(word: str) -> bool:
    """Whether a word in capitals is an ordinary one that is stressed; of two letters only English ones: UN, EU."""
    folded = word.casefold()
    return len(word) > 1 and (
        folded in NEVER or (len(word) > _SHORT_ACRONYM and (folded in OPENING or folded in STRESSED))
    )


def quoted_kind(content: str) -> EntityKind:
    """What stands in backticks: the URL, address or file that it is as a whole, otherwise code."""
    whole = next(spans(content, in_code=True), None)
    if whole is None or whole[:2] != (0, len(content)) or whole[2] is None:
        return EntityKind.CODE
    return EntityKind.CODE if whole[2] is EntityKind.NAME else whole[2]


def _thing(token: str, start: int, end: int, *, in_code: bool) -> Span:
    """A run of letters, digits and inner punctuation, without the punctuation around it."""
    thing = token[start:end].rstrip("'’.-/\\$")
    kept = thing.lstrip("'’-$")
    start += len(thing) - len(kept)
    follows = token[start + len(kept) : start + len(kept) + 2]
    if start and token[start - 1] == ")" and kept.startswith("."):
        # The next link of a chain of calls: its first link names it.
        return start, start, None
    return start, start + len(kept), _kind(kept, token[start + len(kept) : end], follows, in_code=in_code)


def _kind(thing: str, tail: str, follows: str, *, in_code: bool) -> EntityKind | None:
    if "/" in thing:
        return EntityKind.FILE if _is_path(thing, has_tail=tail.startswith("/")) else None
    if is_bare_file(thing):
        return EntityKind.FILE
    if "." in thing:
        return _dotted_kind(thing, is_call=follows.startswith("("), in_code=in_code)
    return EntityKind.CODE if _is_identifier(thing, is_called=follows == "()") else None


def _is_identifier(thing: str, *, is_called: bool) -> bool:
    """Whether a word is known as code by its letters, or by the empty parentheses after it."""
    if "_" in thing:
        return _is_snake_case(thing)
    if not _IDENTIFIER.fullmatch(thing):
        return False
    if is_called and len(thing) > 1:
        return True
    return not thing[1:].islower() and not thing.isupper() and is_camel_case(thing)


def _is_path(thing: str, *, has_tail: bool) -> bool:
    parts = [part for part in thing.split("/") if part]
    if thing.startswith(("~/", "./", "../")):
        return len(parts) >= _MIN_PARTS
    if len(parts) < _MIN_PARTS or "'" in thing or "’" in thing:
        return False
    if thing.startswith("/"):
        return not thing.startswith("//") and not all(part.isdigit() for part in parts)
    return has_tail or parts[-1] in _FILE_NAMES or _is_file_name(parts[-1])


def _is_file_name(part: str) -> bool:
    base, dot, extension = part.rpartition(".")
    if part.partition(".")[0] in _FILE_NAMES:
        return True
    return bool(dot and base.strip(".")) and extension.lower() in _EXTENSIONS


def _dotted_kind(thing: str, *, is_call: bool, in_code: bool) -> EntityKind | None:
    if thing.startswith("."):
        return EntityKind.FILE if thing[1:].partition(".")[0] in _DOT_FILES else None
    parts = thing.split(".")
    is_code = all(map(_IDENTIFIER.fullmatch, parts))
    if is_code and is_call:
        return EntityKind.CODE
    if _is_file_name(thing):
        is_product = len(parts) == _MIN_PARTS and thing[0].isupper() and parts[0].lower() in _SCRIPT_PRODUCTS
        return EntityKind.NAME if is_product else EntityKind.FILE
    if not is_code:
        return None
    if in_code or any(_is_snake_case(part) or (not part.islower() and is_camel_case(part)) for part in parts):
        return EntityKind.CODE
    is_plain = len(parts) >= _MIN_PLAIN_PARTS and all(
        part.islower() and len(part) >= _MIN_PLAIN_LENGTH for part in parts
    )
    return EntityKind.CODE if is_plain else None


def _is_snake_case(thing: str) -> bool:
    """foo_bar, MAX_SIZE, __init__, _hidden; not _emphasis_."""
    if "_" not in thing or not _IDENTIFIER.fullmatch(thing) or len(thing) < _MIN_SNAKE_LENGTH:
        return False
    inner = thing.strip("_")
    if not inner or inner.isdigit():
        return False
    return "_" in inner or thing.startswith("__") or not thing.endswith("_")


def _is_tag(tag: str) -> bool:
    """Whether it is no colour and no directive."""
    body = tag[1:]
    if tag[0] == "@":
        return True
    is_colour = len(body) in _HEX_LENGTHS and _HEX.fullmatch(body) is not None
    return not is_colour and body not in _DIRECTIVES


def _trimmed_url(url: str) -> str:
    """The URL without the punctuation of its sentence; a closing bracket stays where its opening one is inside."""
    while url:
        last = url[-1]
        if last in _URL_TAIL or (last in _BRACKETS and url.count(last) > url.count(_BRACKETS[last])):
            url = url[:-1]
        else:
            break
    return url


def date_at(text: str, start: int, bare: str) -> tuple[int, int] | None:
    """Where the date stands that a token which begins with a digit is a part of; None where it is no date.

    `bare` is the token at `start` without punctuation. A month needs a day or a year beside it.
    """
    iso = _ISO_DATE.match(bare)
    if iso:
        return start, start + iso.end()
    numeric = _NUMERIC_DATE.fullmatch(bare)
    if numeric:
        first, second = sorted((int(numeric[1]), int(numeric[3])))
        is_day = 1 <= first <= _MONTHS_A_YEAR and second <= _DAYS_A_MONTH
        return (start, start + len(bare)) if is_day else None
    day_first = _DAY_FIRST.match(text, start)
    if day_first and _is_month(day_first[1]):
        return day_first.span()
    month = _MONTH_BEFORE.search(text, max(0, start - _MONTH_ROOM), start)
    if month and _is_month(month[1]):
        rest = _MONTH_FIRST.match(text, start)
        if rest:
            return month.start(), rest.end()
    return None


def _is_month(word: str) -> bool:
    folded = word.casefold()
    return folded in MONTHS and (word[0].isupper() or folded not in _CAPITAL_MONTHS)
