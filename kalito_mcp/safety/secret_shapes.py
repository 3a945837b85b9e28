"""Finds secrets by their shape: tokens with a prefix, private keys, passwords in URLs, cards. Pure.

Every pattern is linear: a repeat that may fail is bounded, or only begins at the start of a run of its characters. A
pattern is compiled and tried only if the text contains what every secret of its kind contains.
"""

import base64
import json
import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from kalito_mcp.safety.secret_services import KEYS_WITH_A_MARK, SERVICE_KEYS
from kalito_mcp.text.pieces import matches_in_pieces


class Found(NamedTuple):
    """A part of a text that must not be kept: from `start` to before `end`."""

    start: int
    end: int
    kind: str


# Not within a word. An escaped line feed before it does not count as a letter.
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_NOT_HTTP: Final = r"(?<!http)(?<!https)://[^\s:@/\"'<>]{0,100}:(?!\d{1,5}[/?#])"
# Kind, what a text with one contains, and the pattern. Its group `secret` is removed, or the whole match.
_TOKENS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{30,}"),
    ("github_token", ("github_pat_",), r"github_pat_\w{22,}"),
    (
        "gitlab_token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-"),
        r"gl(?:pat|dt|rt|ptt|cbt|soat)-[\w-]{20,}(?:\.[\w-]+)*",
    ),
    ("aws_access_key", ("AKIA", "ASIA", "ABIA", "ACCA"), _START + r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16,}"),
    ("anthropic_key", ("sk-ant-",), r"sk-ant-[\w-]{20,}"),
    ("kalito_token", ("kal_",), _START + r"kal_[\w-]{40,}"),  # our own
    ("openai_key", ("sk-",), _START + r"sk-(?!ant-)(?:proj|svcacct|admin)-[\w-]{20,}"),
    ("openai_key", ("sk-",), _START + r"sk-(?:[a-z]{2,10}-){0,2}(?:v\d-)?[A-Za-z0-9]{20,}"),
    ("slack_token", ("xox",), r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{12,}"),
    ("slack_token", ("xapp-",), r"xapp-\d-[A-Za-z0-9-]{20,}"),
    ("slack_webhook", ("hooks.slack.",), r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/]{16,})"),
    (
        "discord_webhook",
        ("/webhooks/",),
        r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<secret>\d{5,20}/[\w-]{30,})",
    ),
    ("stripe_key", ("k_live_", "k_test_"), _START + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("google_api_key", ("AIza",), r"AIza[\w-]{35,}"),
    ("google_token", ("GOCSPX-", "ya29."), r"(?:GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}(?:\.[\w-]+)*)"),
    ("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{36,}"),
    ("pypi_token", ("pypi-AgE",), r"pypi-AgE[\w-]{50,}"),
    ("hugging_face_token", ("hf_",), _START + r"hf_[A-Za-z0-9]{30,}"),
    ("sendgrid_key", ("SG.",), _START + r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("telegram_token", (":AA",), r"(?<!\d)\d{8,10}:AA[\w-]{32,}"),
    ("service_token", ("whsec_", "gsk_"), _START + r"(?:whsec|gsk)_[A-Za-z0-9+/=]{24,}"),
    ("service_token", ("_v1_",), r"do[opr]_v1_[a-f0-9]{64}"),
    ("service_token", ("shp",), r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32,}"),
    ("service_token", ("hvs.", "hvb."), _START + r"hv[sb]\.[\w-]{24,}"),
    ("service_token", ("dckr_pat_", "lin_api_", "sbp_"), _START + r"(?:dckr_pat|lin_api|sbp)_[\w-]{24,}"),
    ("service_token", ("xai-", "pplx-"), _START + r"(?:xai|pplx)-[A-Za-z0-9]{40,}"),
    ("service_token", ("glsa_", "glc_", "ntn_"), _START + r"(?:glsa|glc|ntn)_[A-Za-z0-9_+/=]{32,}"),
    ("service_token", ("key-",), _START + r"key-[0-9a-f]{32}(?![0-9a-f])"),
    ("discord_token", (".",), r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    ("azure_signature", ("sig=",), r"[?&;]sig=(?P<secret>[\w%+/-]{30,}={0,2})"),
    # Of 64 bytes. After a minus it is a checksum, sha512-...
    ("azure_key", ("==",), r"(?<![A-Za-z0-9+/-])[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])"),
    ("login", ("auth",), r"\"auth\\?\"\s{0,3}:\s{0,3}\\?\"(?P<secret>[A-Za-z0-9+/]{8,}={0,2})\\?\""),
    (
        "cookie",
        ("ookie",),
        r"[Cc]ookie[\"']?: {0,2}[\"']?"
        r"(?P<secret>[\w.-]{1,64}=[^\s;\"']{6,}(?:; ?[\w.%-]{1,64}=[^\s;\"']{1,500}){0,20})",
    ),
    ("private_key", ("client-key-data",), r"client-key-data[\"']?: {0,4}[\"']?(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    # "-----BEGIN" in base64, except of certificates and public keys.
    ("private_key", ("LS0tLS1CRUdJTi",), r"LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM|BSU0EgUFVC)[A-Za-z0-9+/]{40,}={0,2}"),
    (
        "seed_phrase",
        ("phrase", "words", "nemonic"),
        r"(?i:(?:seed|recovery|backup) (?:phrase|words)|mnemonic)\b[^\n:=]{0,40}?(?:[:=]|\bis\b|\bare\b)\s{0,3}[\"'`]?"
        r"(?P<secret>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b",
    ),
    (
        "code",
        ("pin", "Pin", "PIN", "code", "CVV", "cvv", "CVC", "cvc"),
        r"(?i:\b(?:(?P<short>cvv2?|cvc2?|pin)|(?:door|gate|alarm|access|security|unlock|verification|2fa) code)\b"
        r"(?: (?:for|of|to)(?: [a-z']{1,15}){1,4})?(?:(?: is| was|:| ?=)? |[:=]))"
        r"(?P<secret>\d{3,8})(?![\w%]|[.,:/-]\d)",
    ),
    (
        "password",
        ("curl ",),
        r"curl (?:(?!curl )[^\n]){0,120}?(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:(?P<secret>[^\s\"']{3,256})",
    ),
    ("password", ("jdbc:oracle:",), r"jdbc:oracle:\w{1,8}:[^\s/@]{1,64}/(?P<secret>[^\s@]{1,128})@"),
    ("private_key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{40,}"),
    ("password", ("://",), r"://[^\s:@/\"'<>]{0,100}:(?!\d{1,5}\?)(?P<secret>[^\s/\"'<>]{1,256})@(?=[\w.\[%$-])"),
    # A slash in a password is invalid but common. Only HTTP URLs often have an @ after the host.
    ("password", ("://",), _NOT_HTTP + r"(?P<secret>(?:[^\s\"'<>?:]|:(?!//)){1,256})@(?=[\w\[])"),
)
_ALL: Final = (
    *_TOKENS,
    *(("service_token", (begins,), _START + re.escape(begins) + rest) for begins, rest in SERVICE_KEYS),
    *(("service_token", (mark,), pattern) for mark, pattern in KEYS_WITH_A_MARK),
)
_ANCHORS: Final = tuple((anchor, place) for place, (_, anchors, _) in enumerate(_ALL) for anchor in anchors)
_OF_TOKENS: Final = sum(len(anchors) for _, anchors, _ in _TOKENS)
_LONG: Final = r"[!-~]{20,}"
"""A key of a service is within one of these: prose is not searched for every beginning."""
_FEW_CHARACTERS: Final = 6

_PRIVATE_KEY_BEGIN: Final = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: ?\d{1,3}\b"
# Line feeds may be written as escapes, lines quoted or joined by commas and plus signs.
_KEY_HEADERS: Final = r"(?:(?:\s|\\[nr]){0,4}[A-Z][A-Za-z-]{3,20}: [^\n\\]{0,200})*"
_KEY_LINES: Final = (
    r"(?:(?:\s|\\[nrt\\]|[\"'>|,*#]|\+(?=\s))*+[A-Za-z0-9+/]{16,}={0,2})+"
    r"(?:(?:[ \t\"'>|,*#]*\r?\n|(?:\\r)?\\n[ \t\"'+,]*(?:\r?\n)?)[ \t\"'>|,*#]*"
    r"=?[A-Za-z0-9+/]{1,15}={0,2}(?![A-Za-z0-9+/])){0,2}"
)

_JWT: Final = r"(?:(?<![\w-])|(?<=\\[nrt]))(eyJ[\w-]{8,})(?:\.[\w-]+){1,4}"

# Random characters that only the text before them marks: kind, pattern, fewest bits a character, words before.
_NEARBY: Final[tuple[tuple[str, str, float, tuple[str, ...]], ...]] = (
    (
        "aws_secret_key",
        r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
        4,
        ("akia", "asia", "aws", "secret"),
    ),
    (
        "encryption_key",
        r"(?<![\w+/-])[\w+/-]{43}=(?![\w+/=-])",
        4,
        ("aes", "fernet", "encrypt", "secret key", "master key", "symmetric"),
    ),
    (
        "totp_seed",
        r"(?<![A-Za-z0-9])[A-Z2-7]{16,64}(?![A-Za-z0-9=])",
        3,
        ("totp", "otp", "2fa", "mfa", "authenticator"),
    ),
)
_NEARBY_CHARS: Final = 160
_HEX_BITS: Final = 4
"""The most bits of a hexadecimal digit."""
_LONGEST_PIN: Final = 5
_LONGEST_CVC: Final = 3
_IBAN: Final = r"\b[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"

_DIGITS: Final = r"[0-9]++(?:[ -][0-9]++)*+"
_FEWEST_DIGITS: Final = 13
# The groups that cards are written in. Not after a letter or a decimal point, and not among more groups, as in IBANs.
_CARD: Final = (
    r"(?:(?<![\w.-])(?<!\d,)|(?<=\\[nrt]))(?<![A-Z]{2}\d\d )(?<!\d{4} )(?<!\d{4}-)(?:"
    r"(?P<grouped>\d{4}([ -])\d{4}\2\d{4}\2\d{4})(?P<more>\2\d{3}(?!\d))?(?![ -]\d{4}(?!\d))"
    r"|\d{4}[ -]\d{6}[ -]\d{4,5}|\d{13,19})(?!\w|[.,]\d)"
)
_CARD_LENGTHS: Final = (
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|220[0-4]"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"6011|64[4-9]|65|62|352[89]|35[3-8]"), (16, 19)),
    (re.compile(r"30[0-5]|3[689]"), (14,)),
    (re.compile(r"5018|5020|5038|5893|6304|6759|676[1-3]"), (13, 16, 18, 19)),
)
_ARTICLE_NUMBER_LENGTH: Final = 13
_REACH: Final = 400
"""More characters than a seed phrase, a card or an IBAN has, with what is looked at behind it."""

_PLACEHOLDER: Final = (
    r"[<\[({]|[$%][({]|(?-i:\$(?:[a-z_]+|[A-Z0-9_]+|[a-z]+(?:[A-Z][a-z]+)+)$)|%\w+%$|@[\w.]+@$|x+$|(.)\1{2,}$"
    r"|.{0,20}?(?:\byour|_your|insert|replace|change.?me|placeholder|redacted|\bexample\b)"
    r"|(?=.{0,20}?(?:passw|secret|token|[_-]key|api.?key))[a-z_-]+$"
)
_LEFT_OUT: Final = ("...", "…", "****")
_WORDS: Final = frozenset(
    """password passwort passwd secret token key pass string str text none null nil true false undefined required
    optional wrong invalid incorrect missing yes no hidden unknown empty bool boolean int integer number varchar char
    bytes any the a an this that it is not and or if see same here there below above only must should use set""".split()
)
_LONG_VALUE: Final = 16
_MOST_LETTERS_A_CAPITAL: Final = 3
_FEW_TURNS: Final = 2
_RUN: Final = r"[A-Za-z0-9]{16,}"
_TURN: Final = r"[A-Za-z](?=\d)|\d(?=[A-Za-z])"
_FEWEST_TURNS: Final = 3
# A character that does not join words, or a letter next to a digit.
_JOINS_NO_WORDS: Final = r"[^\w./:+~=-]"
_LETTER_AT_DIGIT: Final = r"[^\W\d_]\d|\d[^\W\d_]"


def shaped_secrets(text: str) -> Iterator[Found]:
    """Find every such secret in the text, in order for each kind; they may overlap."""
    long = " ".join(compiled(_LONG).findall(text))
    found = [place for anchor, place in _ANCHORS[:_OF_TOKENS] if anchor in text]
    found += [place for anchor, place in _ANCHORS[_OF_TOKENS:] if anchor in long] if long else []
    for place in dict.fromkeys(found):
        yield from _tokens(text, place)
    if "-----BEGIN " in text or "Private-Lines:" in text:
        yield from _private_keys(text)
    if "eyJ" in text:
        yield from _json_web_tokens(text)
    lowered = text.lower()
    for kind, pattern, bits, signs in _NEARBY:
        if any(sign in lowered for sign in signs):
            yield from _drawn(text, kind, pattern, bits, signs)
    yield from _cards(text)
    for match in matches_in_pieces(compiled(_IBAN), text, _REACH):
        if is_iban(match[0].replace(" ", "")):
            yield Found(*match.span(), "iban")


@cache
def compiled(pattern: str, flags: re.RegexFlag = re.ASCII) -> re.Pattern[str]:
    """The pattern, compiled at its first use: compiling all takes longer than importing this package."""
    return re.compile(pattern, flags)


def _tokens(text: str, place: int) -> Iterator[Found]:
    kind, _, expression = _ALL[place]
    pattern = compiled(expression)
    group = "secret" if "secret" in pattern.groupindex else 0
    found = matches_in_pieces(pattern, text, _REACH) if kind == "seed_phrase" else pattern.finditer(text)
    for match in found:
        secret = match[group]
        if kind == "password":
            is_one = not is_placeholder(secret)
        elif kind == "login":
            is_one = _is_login(secret)
        elif kind == "code":
            is_one = len(secret) <= _LONGEST_PIN if match["short"] else len(secret) > _LONGEST_CVC
        elif kind == "seed_phrase":
            is_one = len(set(secret.split())) >= _FEW_CHARACTERS
        else:
            # sk-xxxxxxxx is not a key, and neither is a long name in lower case.
            is_one = len(set(secret[-20:])) >= _FEW_CHARACTERS and compiled("[0-9A-Z]").search(secret, 4) is not None
        if is_one:
            yield Found(*match.span(group), kind)


def _private_keys(text: str) -> Iterator[Found]:
    """Whole blocks; an unfinished one up to the end of its base64."""
    lines = compiled(_KEY_HEADERS + _KEY_LINES)
    dashes = 0
    for match in compiled(_PRIVATE_KEY_BEGIN).finditer(text):
        body = lines.match(text, match.end())
        if body is None:
            continue
        end = body.end()
        # The dashes are shared by all blocks: one search for each unfinished block would be quadratic.
        if 0 <= dashes < end:
            dashes = text.find("-----", end)
        if dashes >= 0 and text.startswith("-----END ", dashes):
            closing = text.find("-----", dashes + 9, dashes + 80)
            end = closing + 5 if closing >= 0 else dashes
        yield Found(match.start(), end, "private_key")


def _json_web_tokens(text: str) -> Iterator[Found]:
    for match in compiled(_JWT).finditer(text):
        header = match[1]
        try:
            fields = json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
        except (ValueError, RecursionError):
            continue  # something else with dots, or hostile JSON
        if isinstance(fields, dict) and "alg" in fields:
            yield Found(*match.span(), "jwt")


def _is_login(value: str) -> bool:
    """Whether it is base64 of a user and a password."""
    try:
        return b":" in base64.b64decode(value, validate=True)
    except ValueError:
        return False


def _drawn(text: str, kind: str, pattern: str, bits: float, signs: tuple[str, ...]) -> Iterator[Found]:
    for match in compiled(pattern).finditer(text):
        value, start = match[0], match.start()
        if (
            not is_slug(value)
            and (bits < _HEX_BITS or not (value.isupper() or value.islower()))
            and entropy(value) >= bits
            and any(sign in text[max(0, start - _NEARBY_CHARS) : start].lower() for sign in signs)
        ):
            yield Found(start, match.end(), kind)


def _cards(text: str) -> Iterator[Found]:
    card = compiled(_CARD)
    for digits in compiled(_DIGITS).finditer(text):
        if len(digits[0]) - digits[0].count(" ") - digits[0].count("-") < _FEWEST_DIGITS:
            continue
        for match in matches_in_pieces(card, text, _REACH, digits.start(), digits.end() + 2):
            # Three more digits are the end of a long number, or the security code after a card number.
            for group in (0, "grouped"):
                if match[group] and is_card_number(match[group].replace(" ", "").replace("-", "")):
                    yield Found(*match.span(group), "payment_card")
                    break


def is_card_number(digits: str) -> bool:
    """Whether a card may have this number: its first digits, its length and its check digit fit."""
    length = len(digits)
    if not any(length in lengths and prefix.match(digits) for prefix, lengths in _CARD_LENGTHS):
        return False
    values = [int(digit) for digit in reversed(digits)]
    if (sum(values[::2]) + sum(2 * value - 9 * (value > 4) for value in values[1::2])) % 10:  # noqa: PLR2004 - Luhn's
        return False
    # Article numbers also have 13 digits, with their own check digit.
    return length != _ARTICLE_NUMBER_LENGTH or (sum(values[::2]) + 3 * sum(values[1::2])) % 10 != 0


def is_iban(account: str) -> bool:
    """Whether the check digits are right: the account as a number must be 1 modulo 97."""
    return int("".join(str(int(one, 36)) for one in account[4:] + account[:4])) % 97 == 1


def is_placeholder(value: str) -> bool:
    """Whether the value only marks the place of a secret: <key>, ${TOKEN}, xxxx, changeme, password."""
    return (
        value.lower() in _WORDS
        or any(mark in value.partition("\n")[0] for mark in _LEFT_OUT)
        or compiled(_PLACEHOLDER, re.IGNORECASE).match(value) is not None
    )


def entropy(value: str) -> float:
    """Shannon's, in bits a character; 0 of an empty text."""
    return sum(share * -math.log2(share) for share in (value.count(one) / len(value) for one in set(value)))


def is_slug(value: str) -> bool:
    """Whether the value is joined words and numbers: us-east-1, v2.0.1, settings, EventLoopPolicy.

    A long value is not if a third of it are capitals mixed with lower case (see `is_drawn`).
    """
    # One after the other: many values are judged, and hardly one has to be read three times.
    if compiled(_JOINS_NO_WORDS, re.NOFLAG).search(value) or (len(value) >= _LONG_VALUE and is_drawn(value)):
        return False
    return not (compiled(r"\d", re.NOFLAG).search(value) and compiled(_LETTER_AT_DIGIT, re.NOFLAG).search(value))


def is_drawn(value: str) -> bool:
    """Whether a third of the characters are capitals mixed with lower case, as in base64 and unlike words."""
    if value.islower():
        return False
    capitals = sum(map(str.isupper, value))
    return len(value) <= _MOST_LETTERS_A_CAPITAL * capitals and len(compiled("[a-z][A-Z]").findall(value)) >= _FEW_TURNS


def has_random_run(value: str) -> bool:
    """Whether sixteen letters and digits without a sign between them are drawn. Words and numbers take fewer turns."""
    runs: list[str] = compiled(_RUN).findall(value)
    return any(is_drawn(run) or len(compiled(_TURN).findall(run)) >= _FEWEST_TURNS for run in runs)
