"""What secrets look like, and where a text has them. Pure.

Three ways to know one: by its own shape (tokens with a prefix, private keys, cards), by what it is part of (the
password of a URL, an Authorization header), and by the name it is assigned to (`password: ...`, `API_KEY=...`). The
less the shape says, the more the value itself must look like a secret and not like a word, a path or code.

Every pattern is linear: a repeat that may fail is bounded, or begins only where a run of its characters begins.
It never sees through disguises: zero-width characters inside a token, a secret in two messages, full-width digits.
"""

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple


class Found(NamedTuple):
    """A part of a text that must not be kept: from `start` to before `end`."""

    start: int
    end: int
    kind: str


# Kind, what a text with one contains, and the pattern; its group `secret` is what is taken out, or all of it.
_TOKENS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{30,}"),
    ("github_token", ("github_pat_",), r"github_pat_\w{22,}"),
    ("gitlab_token", ("gl",), r"gl(?:pat|ptt|dt|rt|cbt|ft|imt|oas|soat|agent|ffct)-[\w-]{20,}(?:\.[\w-]+)*"),
    ("aws_access_key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"(?<![A-Za-z0-9])A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16,}"),
    ("anthropic_key", ("sk-ant-",), r"sk-ant-[\w-]{20,}"),
    ("openai_key", ("sk-",), r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))sk-(?!ant-)(?:proj|svcacct|admin)-[\w-]{20,}"),
    ("openai_key", ("sk-",), r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))sk-(?:[a-z]{2,10}-){0,2}(?:v\d-)?[A-Za-z0-9]{20,}"),
    ("slack_token", ("xox",), r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    ("slack_token", ("xapp-",), r"xapp-\d-[A-Za-z0-9-]{20,}"),
    ("slack_webhook", ("hooks.slack.",), r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/]{16,})"),
    (
        "discord_webhook",
        ("/webhooks/",),
        r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<secret>\d{5,20}/[\w-]{30,})",
    ),
    ("stripe_key", ("k_live_", "k_test_"), r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("google_api_key", ("AIza",), r"AIza[\w-]{35,}"),
    ("google_token", ("GOCSPX-", "ya29."), r"(?:GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}(?:\.[\w-]+)*)"),
    ("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{36,}"),
    ("pypi_token", ("pypi-AgE",), r"pypi-AgE[\w-]{50,}"),
    ("hugging_face_token", ("hf_",), r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}"),
    ("sendgrid_key", ("SG.",), r"(?<![A-Za-z0-9])SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("telegram_token", (":AA",), r"(?<!\d)\d{8,10}:AA[\w-]{32,}"),
    ("service_token", ("whsec_", "gsk_"), r"(?<![A-Za-z0-9])(?:whsec|gsk)_[A-Za-z0-9+/=]{24,}"),
    ("service_token", ("_v1_",), r"do[opr]_v1_[a-f0-9]{64}"),
    ("service_token", ("shp",), r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32,}"),
    ("service_token", ("hvs.", "hvb."), r"(?<![A-Za-z0-9])hv[sb]\.[\w-]{24,}"),
    ("service_token", ("dckr_pat_", "lin_api_", "sbp_"), r"(?:dckr_pat|lin_api|(?<![A-Za-z0-9])sbp)_[\w-]{24,}"),
    ("service_token", ("xai-", "pplx-"), r"(?<![A-Za-z0-9])(?:xai|pplx)-[A-Za-z0-9]{40,}"),
    ("service_token", ("glsa_", "glc_", "ntn_"), r"(?<![A-Za-z0-9])(?:glsa|glc|ntn)_[A-Za-z0-9_+/=]{32,}"),
    ("private_key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{40,}"),
    ("password", ("://",), r"://[^\s:@/\"'<>]{0,100}:(?P<secret>[^\s/\"'<>]{1,256})@(?=[\w.\[%$-])"),
    ("password", ("://",), r"://[^\s:@/\"'<>]{0,100}:(?!\d{1,5}/)(?P<secret>[^\s@\"'<>]{1,256})@(?=[\w\[])"),
)
_FEW_CHARACTERS: Final = 6

_PRIVATE_KEY_BEGIN: Final = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: ?\d{1,3}\b"
_KEY_HEADERS: Final = r"(?:(?:\s|\\[nrt]){0,4}[A-Z][A-Za-z-]{3,20}: [^\n\\]{0,200})*"
_KEY_LINES: Final = (
    r"(?:(?:\s|\\[nrt\\]|[\"'>|,*#])*[A-Za-z0-9+/]{16,}={0,2})+"
    r"(?:[ \t\"'>|,*#]*(?:\n|\\n)[ \t\"'>|,*#]*=?[A-Za-z0-9+/]{1,15}={0,2}(?=[ \t\"']*(?:$|\n|\\n|-----)))*"
)

_JWT: Final = r"(?:(?<![\w-])|(?<=\\[nrt]))(eyJ[\w-]{8,})(?:\.[\w-]+){1,4}"

_AWS_SECRET: Final = r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"
_AWS_NEARBY: Final = re.compile("AKIA|ASIA|aws|secret", re.IGNORECASE)
_NEARBY_CHARS: Final = 160

# The groups that cards are written in. Not behind a letter, a decimal point or the first group of an IBAN.
_CARD: Final = (
    r"(?<![\w.,-])(?<![A-Z]{2}\d\d )"
    r"(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?|\d{4}[ -]\d{6}[ -]\d{4,5}|\d{13,19})(?![\w-]|[.,]\d|[ -]\d)"
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


def secrets(text: str) -> Iterator[Found]:
    """Every secret of the text, those of a kind in order; they may overlap."""
    for place, (kind, anchors, _) in enumerate(_TOKENS):
        if any(anchor in text for anchor in anchors):
            yield from _tokens(text, place, kind)
    if "-----BEGIN " in text or "Private-Lines:" in text:
        yield from _private_keys(text)
    if "eyJ" in text:
        yield from _json_web_tokens(text)
    if _AWS_NEARBY.search(text):
        yield from _aws_secrets(text)
    yield from _cards(text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _tokens(text: str, place: int, kind: str) -> Iterator[Found]:
    pattern = _compiled(_TOKENS[place][2])
    group = "secret" if "secret" in pattern.groupindex else 0
    for match in pattern.finditer(text):
        secret = match[group]
        if kind == "password":
            if not is_placeholder(secret):
                yield Found(*match.span(group), kind)
        # What is written as sk-xxxxxxxx is no key; what has a prefix and no digit is a name, as sk-learn-extensions.
        elif len(set(secret[-20:])) >= _FEW_CHARACTERS and _DIGIT.search(secret, 4):
            yield Found(*match.span(group), kind)


def _private_keys(text: str) -> Iterator[Found]:
    """Whole blocks; of an unfinished one, up to the end of its base64."""
    lines = _compiled(_KEY_HEADERS + _KEY_LINES)
    dashes = 0
    for match in _compiled(_PRIVATE_KEY_BEGIN).finditer(text):
        body = lines.match(text, match.end())
        if body is None:
            continue
        end = body.end()
        # Looked for once for all blocks: a search for each that has no end would be quadratic.
        if 0 <= dashes < end:
            dashes = text.find("-----", end)
        if dashes >= 0 and text.startswith("-----END ", dashes):
            closing = text.find("-----", dashes + 9, dashes + 80)
            end = closing + 5 if closing >= 0 else dashes
        yield Found(match.start(), end, "private_key")


def _json_web_tokens(text: str) -> Iterator[Found]:
    for match in _compiled(_JWT).finditer(text):
        header = match[1]
        try:
            fields = json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, dict) and "alg" in fields:
            yield Found(*match.span(), "jwt")


def _aws_secrets(text: str) -> Iterator[Found]:
    """Forty characters of base64 that nothing marks but what stands before them."""
    for match in _compiled(_AWS_SECRET).finditer(text):
        value, start = match[0], match.start()
        if (
            _DIGIT.search(value)
            and not value.isupper()
            and not value.islower()
            and entropy(value) >= 4  # noqa: PLR2004 - bits a character; hexadecimal digits have at most 4
            and _AWS_NEARBY.search(text, max(0, start - _NEARBY_CHARS), start)
        ):
            yield Found(start, match.end(), "aws_secret_key")


def _cards(text: str) -> Iterator[Found]:
    for match in _compiled(_CARD).finditer(text):
        if is_card_number(match[0].replace(" ", "").replace("-", "")):
            yield Found(*match.span(), "payment_card")
