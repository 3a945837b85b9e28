"""Finds secrets by the name that they are assigned to: `password: ...`, `API_KEY=...`, `Bearer ...`. Pure.

A name alone says little, so the value must look like a secret too, and a common name needs stronger evidence. A
password may be one word if it is alone on its line or in quotes. A key or a token has letters and digits that are not
joined words. A value that is only called `key` must be long and random. Code that reads a secret, placeholders, paths,
addresses and prose about passwords stay.
"""

from collections.abc import Iterator
from re import NOFLAG, Match
from typing import Final, NamedTuple

from kalito_mcp.safety.secret_shapes import Found, compiled, entropy, has_random_run, is_drawn, is_placeholder, is_slug

_AUTHORIZATION: Final = (
    r"authorization[\"'\\\]]{0,4}\s{0,3}[:=,]\s{0,3}[\"'\\]{0,2}(?P<scheme>(?:bearer|basic|token|apikey)\s{1,3})?"
    r"(?P<secret>[\w.~+/=:-]{6,})"
)
_BEARER: Final = r"bearer\s{1,3}(?P<secret>[\w.~+/=-]{16,})"
_LONG_AUTHORIZATION: Final = 16

STEMS: Final = ("pass", "pw", "secret", "token", "key", "kennwort", "contrase", "senha", "wachtwoord", "haslo")
"""Every Latin name of a secret contains one of these, in lower case."""
FOREIGN_STEMS: Final = ("hasło", "парол", "密码", "密碼", "パスワード", "비밀번호")
"""The same for names with other letters."""
_NAME: Final = (
    r"(?:(?P<password>passw(?:or)?d|passphrase|passcode|passwort|passe|pass|pwd|pw|kennwort|contrase[ñn]a|senha"
    r"|wachtwoord|has[łl]o|парол[ья]|密码|密碼|パスワード|비밀번호)|secret|token|key)"
    r"(?:[_-]?(?:\d{1,2}|prod(?:uction)?|dev|test|staging|live|base|value|v\d|old|new|main|backup|default))?(?![a-z0-9])"
)
_KEY_NAME: Final = tuple(
    """api access secret private auth refresh bearer bot session signing encryption master account service license
    deploy webhook app shared consumer""".split()
)
_NO_SECRETS_NAME: Final = tuple(
    "public primary foreign cache sort partition page continuation cursor idempotency host object row map".split()
)
_IN_MARK: Final = r"\[redacted: [a-z0-9 ]*$"
_OPTION: Final = r"(?:^|[\s\"'])--[\w-]*$"
_ELEMENT: Final = r"<[\w:.-]*$"
_VARIABLE: Final = r"(?:^|\n|\\n)[ \t]*(?:export |set |env |arg |- )?[\w.]*$"
_BEFORE_CHARS: Final = 48

_SEPARATOR: Final = (
    r"(?:\\?[\"'`*_\])]){0,4}[ \t]{0,4}(?P<sign>:=|=>|->|={1,3}|[:：＝]|(?:is|was|ist|lautet|est|es|è)(?=[ \t]))\*{0,2}"
    r"(?P<space>[ \t]{0,8}(?:\r?\n[ \t]{0,8})?)"
)
_OTHER_SEPARATORS: Final = (" ", "\t", ">")
# Right after the name ("and password ...", "changed my password to ..."). No sign announces a value, so it must look
# like one and end there, or contain a character that no word has.
_DIRECTLY: Final = r"[ \t]{1,3}(?:to[ \t]{1,3})?"
_ENDS: Final = r"[\"'”“]?(?:[.!?,;:)]{1,3}(?:\s|$)|\s*$|[ \t]*[\r\n])"
_SIGN: Final = r"[!@#$%^&*?~]"
# Words between the name and the value: "the password for the printer is ...".
_DETOUR: Final = r"(?:[ \t]{1,3}[^\s:=]{1,24}){1,6}?(?:[ \t]{1,3}(?:is|was)|[ \t]{0,3}[:=])[ \t]{1,3}"
_OPENED: Final = r"(?:[bBrRuUfF]{0,2}(?=[\"']))?(\\?[\"'`]|[“„«‘])"
_CLOSED: Final = {"“": "”", "„": "“", "«": "»", "‘": "’"}
_QUOTED_CHARS: Final = 512
# Up to any Unicode space.
_BARE: Final = r"[^\s\"`<\[“”«»]{1,256}"
_BARE_END: Final = r"[&;,)]|\\[nr]"
_ALONE: Final = r"[.!,;)]*[ \t]*(?:$|[\r\n]|\\n|(?<=[.!])[ \t]+[A-ZÀ-Þ])"
_CODE: Final = r"!?[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*(?:\(|\[|::|->|\?\.)"
_ATTRIBUTE: Final = r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+$"
# Some services give out two words: the second is the secret.
_WITH_SCHEME: Final = r"[A-Za-z]\w{0,11} ([\w.~+/=,:-]{16,1000})(?=[\s\"'`;)]|$)"
_PLACE: Final = (
    r"(?:https?:|file:|arn:|\.{1,2}/|~/|/(?:etc|run|var|usr|home|tmp|opt|app|mnt|root|srv|Users)/|[A-Z]:\\"
    r"|\d{4}-\d\d-\d\d|AAAA|ssh-)"
)
_SHORTEST_PASSWORD: Final = 4
_SHORTEST: Final = {"password": _SHORTEST_PASSWORD, "key": 8, "random": 20}
_RANDOM_ENTROPY: Final = 3.0
_MOST_NESTED: Final = 2
"""At most this many names are judged inside a value that was found not to be a secret: `key=key=key=...`."""


def named_secrets(text: str) -> Iterator[Found]:
    """Find every such secret in the text; they may overlap."""
    lowered = _lowered(text)
    if "authorization" in lowered:
        yield from _authorizations(text, lowered, _AUTHORIZATION)
    if "bearer" in lowered:
        yield from _authorizations(text, lowered, _BEARER)
    for stem in STEMS if text.isascii() else STEMS + FOREIGN_STEMS:
        position = lowered.find(stem)
        nested = judged_to = 0
        while position >= 0:
            nested = nested + 1 if position < judged_to else 0
            if nested > _MOST_NESTED:
                position = lowered.find(stem, judged_to)
                continue
            name = compiled(_NAME).match(lowered, position)
            value = name and _value(text, lowered, name)
            if name and value and value.is_secret:
                yield Found(value.start, value.end, "password" if name["password"] else "secret")
                position = lowered.find(stem, value.end)
            else:
                judged_to = max(judged_to, value.end if value else 0)
                position = lowered.find(stem, position + len(stem))


def is_secret_of(name: str, value: str) -> bool:
    """Whether the name of a field makes its value a secret."""
    lowered = _lowered(name)
    for stem in STEMS + FOREIGN_STEMS:
        match = compiled(_NAME).match(lowered, lowered.rfind(stem)) if stem in lowered else None
        if match and match.end() == len(name):
            rule = _rule(name, _before(lowered, match), match)
            return rule is not None and _is_secret(rule, value)
    return False


def _lowered(text: str) -> str:
    """The text in lower case, at the same length: only this capital has a lower case of two characters."""
    return text.replace("İ", "I").lower()


def _authorizations(text: str, lowered: str, pattern: str) -> Iterator[Found]:
    for match in compiled(pattern).finditer(lowered):
        start, end = match.span("secret")
        value = text[start:end]
        is_expected = "scheme" not in match.re.groupindex or match["scheme"] or len(value) >= _LONG_AUTHORIZATION
        if is_expected and not is_placeholder(value) and not is_slug(value):
            yield Found(start, end, "authorization")


def _before(lowered: str, name: Match[str]) -> str:
    """The text before the name."""
    start = name.start()
    return lowered[max(0, start - _BEFORE_CHARS) : start]


def _rule(text: str, before: str, name: Match[str]) -> str | None:
    """How to judge a value of this name: as `password`, as `key`, as `random`, or not at all (None)."""
    start = name.start()
    is_inside = before[-1:].isalpha() and not (text[start].isupper() and text[start - 1].islower())
    if "[redacted" in before and compiled(_IN_MARK).search(before):
        return None
    owner = before[:-1] if before.endswith((" ", "_", "-")) else before
    if word := name["password"]:
        # PASS alone is a test's verdict, and pass inside a word is compass.
        if (word in ("pass", "pw", "pwd") and is_inside) or (word == "passe" and not before.endswith("mot de ")):
            return None
        return None if text[start : name.end()] == "PASS" and not before.endswith("_") else "password"
    if owner.endswith(_KEY_NAME):
        return "key"
    if (is_inside and not name[0].startswith("secret")) or owner.endswith(_NO_SECRETS_NAME):
        return None
    # GITHUB_TOKEN says more than token, and client_secret than secret.
    is_telling = text[start].isupper() or name[0].startswith("secret")
    return "key" if is_telling and (is_inside or before.endswith(("_", "-"))) else "random"


class _Value(NamedTuple):
    """The place of the value of a name, and whether it is a secret."""

    start: int
    end: int
    is_secret: bool


def _value(text: str, lowered: str, name: Match[str]) -> _Value | None:
    """The value of the name, or None."""
    end = name.end()
    separator = compiled(_SEPARATOR).match(lowered, end)
    if separator is None and text[end : end + 1] not in _OTHER_SEPARATORS:
        return None
    before = _before(lowered, name)
    rule = _rule(text, before, name)
    if rule is None:
        return None
    if separator is not None:
        sign, space = separator["sign"], separator["space"]
        is_prose = sign.isalpha() or "\n" in space
        is_tight = not space and not is_prose
        return _spelled(
            text,
            separator.end(),
            rule,
            is_lone=not is_prose and sign in ":：＝",
            is_tight=is_tight,
            is_variable=is_tight and sign == "=" and compiled(_VARIABLE).search(before) is not None,
        )
    if text[end] == ">":
        closing = text.find("<", end, end + _QUOTED_CHARS)
        is_element = closing > 0 and compiled(_ELEMENT).search(before)
        return _Value(end + 1, closing, _is_secret(rule, text[end + 1 : closing])) if is_element else None
    if "--" in before and compiled(_OPTION).search(before):
        return _spelled(text, end + 1, rule)
    return _unannounced(text, lowered, name, rule)


def _unannounced(text: str, lowered: str, name: Match[str], rule: str) -> _Value | None:
    """The value right after the name, or after some words, with no sign between."""
    behind = compiled(_DIRECTLY).match(lowered, name.end())
    if behind is None or name[0] == "pass":
        return None
    value = _spelled(text, behind.end(), "password" if rule == "password" else "random")
    if rule != "password" or (value and value.is_secret and _is_clear_alone(text, value)):
        return value
    detour = compiled(_DETOUR).match(lowered, name.end())
    return _spelled(text, detour.end(), rule) if detour else None


def _spelled(
    text: str,
    start: int,
    rule: str,
    *,
    is_lone: bool = False,
    is_tight: bool = False,
    is_variable: bool = False,
) -> _Value | None:
    """The value that begins here, in quotes or without.

    A password without quotes may be a plain word only if `is_lone` or `is_variable`, and nothing follows on its line. A
    value right after its sign (`is_tight`) ends at `&`, `;`, `,` or `)`, unless it is the line of a variable.
    """
    opened = compiled(_OPENED).match(text, start)
    start = opened.end() if opened else start
    with_scheme = compiled(_WITH_SCHEME).match(text, start) if rule != "password" else None
    if with_scheme and has_random_run(with_scheme[1]):
        return _Value(start, with_scheme.end(), is_secret=True)
    if opened:
        quote = opened[1]
        closing, limit = _CLOSED.get(quote, quote), start + _QUOTED_CHARS
        end = text.find(closing, start, limit)
        while len(closing) == 1 and end > 0 and text[end - 1] == "\\":
            end = text.find(closing, end + 1, limit)
        if end >= 0:
            return _Value(start, end, _is_secret(rule, text[start:end]))
    run = compiled(_BARE, NOFLAG).match(text, start)
    value = run[0] if run else ""
    if is_tight and not is_variable:
        value = compiled(_BARE_END).split(value, 1)[0]
    value = value.rstrip(".,;:?)]}>*'\\")
    end = start + len(value)
    is_secret = (
        _is_secret(rule, value)
        and not compiled(_CODE).match(value)
        and (is_variable or has_random_run(value) or not compiled(_ATTRIBUTE).match(value))
    )
    if is_secret and rule == "password" and not _is_mixed(value):
        may_be_word = is_lone or is_variable or value.isdigit()
        is_secret = may_be_word and _is_one_word(value) and compiled(_ALONE).match(text, end) is not None
    return _Value(start, end, is_secret)


def _is_clear_alone(text: str, value: _Value) -> bool:
    """Whether a value with only its name before it is a secret."""
    word = text[value.start : value.end]
    return (
        _is_mixed(word)
        and not is_slug(word)
        and (compiled(_SIGN).search(word, 1) is not None or compiled(_ENDS).match(text, value.end) is not None)
    )


def _is_secret(rule: str, value: str) -> bool:
    if len(value) < _SHORTEST[rule]:
        return False
    if rule == "password":
        may_be_one = value[0] not in ",)]}:;"
    else:
        may_be_one = not is_slug(value) and (rule == "key" or entropy(value) >= _RANDOM_ENTROPY)
    return (
        may_be_one
        and compiled(r"\s", NOFLAG).search(value) is None
        and compiled(_PLACE).match(value) is None
        and not is_placeholder(value)
    )


def _is_mixed(value: str) -> bool:
    """Whether it has letters and other characters than those that join words, or capitals at random."""
    joined = value.replace("-", "").replace("_", "").replace(".", "").replace("'", "").replace("/", "")
    return (
        len(value) > _SHORTEST_PASSWORD and any(map(str.isalpha, value)) and (not joined.isalpha() or is_drawn(joined))
    )


def _is_one_word(value: str) -> bool:
    return value.isdigit() or (value.isalpha() and value[1:] in (value[1:].lower(), value[1:].upper()))
