"""Finds secrets by what carries them: options of commands, parameters of URLs, headers, lines of files. Pure.

A command that logs in says which of its words is the password, however plain it is. A parameter or a header with any
name carries a secret if its value is long and random. Every repeat is bounded.
"""

from collections.abc import Iterator
from typing import Final

from kalito_mcp.safety.secret_shapes import Found, compiled, has_random_run, is_placeholder

_VALUE: Final = r"(?P<quote>[\"']?)(?P<secret>[^\s\"'$<>{}()\[\]|][^\s\"'|]{2,255})(?P=quote)(?=[\s;|)`]|$)"
_REST: Final = r"[^\n|;]{0,120}?\s"
_BEGIN: Final = r"(?<![A-Za-z0-9])(?:PG)?"
# What a text with one contains, and the pattern. The first sign of a command is enough to look closer.
_PLAIN: Final = tuple(
    (sign, pattern.replace("<VALUE>", _VALUE).replace("<REST>", _REST).replace("<BEGIN>", _BEGIN))
    for sign, pattern in (
        ("mysql", r"\bmysql\w{0,10}\b<REST>-p<VALUE>"),
        ("mariadb", r"\bmariadb[\w-]{0,10}\b<REST>-p<VALUE>"),
        ("sshpass", r"\bsshpass\s{1,3}-p\s{0,3}<VALUE>"),
        ("login", r"\blogin\b<REST>(?:-p|--password|--token)[ =]<VALUE>"),
        ("redis-cli", r"\bredis-cli\b<REST>(?:-a|--pass)[ =]<VALUE>"),
        ("mongo", r"\bmongo\w{0,10}\b<REST>(?:-p|--password)[ =]<VALUE>"),
        ("ldap", r"\bldap\w{2,10}\b<REST>-w\s{0,2}<VALUE>"),
        ("sqlcmd", r"\bsqlcmd\b<REST>-P\s{0,2}<VALUE>"),
        ("bcp", r"\bbcp\b<REST>-P\s{0,2}<VALUE>"),
        ("-a ", r"\bhttps?\s<REST>?(?:-a|--auth)[ =][\"']?[^\s:\"']{1,64}:<VALUE>"),
        ("zip", r"\b(?:un)?zip\b<REST>-P\s{0,2}<VALUE>"),
        ("7z", r"\b7za?\b<REST>-p<VALUE>"),
        ("pass:", r"-pass(?:in|out)?\s{1,3}[\"']?pass:<VALUE>"),
        ("smbclient", r"\bsmb\w{2,10}\b<REST>-U\s{0,2}[^\s%]{1,64}%<VALUE>"),
        ("lftp", r"\blftp\b<REST>-u\s{0,2}[^\s,]{1,64},<VALUE>"),
        ("curl", r"\bcurl\b<REST>(?:-U|--proxy-user)[ =]?[\"']?[^\s:\"']{1,64}:<VALUE>"),
        ("freerdp", r"\bx?freerdp\d?\b<REST>/p:<VALUE>"),
        ("storepass", r"-(?:store|key)pass\s{1,3}<VALUE>"),
        ("sqlplus", r"\bsqlplus\b[^\n/]{0,60}?\s[^\s/@]{1,64}/(?P<secret>[^\s@/]{2,128})@"),
        ("dp ", r"\b(?:imp|exp)dp\s{1,3}[^\s/@]{1,64}/(?P<secret>[^\s@/]{2,128})@"),
        ("echo", r"\becho\s{1,3}(?:-n\s{1,3})?<VALUE>\s{0,3}\|[^\n]{0,80}?(?:-stdin\b|\bsudo -S\b|\bchpasswd\b)"),
        ("machine", r"\bmachine\s{1,8}[\w.-]{1,100}\s{1,8}login\s{1,8}[^\s,]{1,100}\s{1,8}password\s{1,8}<VALUE>"),
        ("PASS", r"<BEGIN>(?:PASS|PASSWORD|PASSWD)=<VALUE>(?<!;)[ \t]{1,3}(?=[a-z])"),
        ("PWD", r"<BEGIN>PWD=<VALUE>(?<!;)[ \t]{1,3}(?=[a-z])"),
        ("=", r"(?i:[;?&]\s{0,2}(?:pwd|password|passwd|pass)=)(?P<secret>[^;&\s\"'<>{}$#]{3,255})"),
        (":", r"(?m:^)(?=[\w.*-]{0,99}[A-Za-z*])[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w.*-]{1,64}:[\w.*-]{1,64}:"
        r"(?P<secret>[^\s:]{4,128})(?m:$)"),
        ("$", r"(?<![\w$])(?P<secret>\$(?:2[abxy]\$\d\d|apr1|[156y]|argon2(?:id?|d)|scrypt|pbkdf2[\w-]{0,20})"
        r"\$[\w./+$=,-]{20,300})"),
        ("{S", r"\{S?SHA\d{0,3}\}(?P<secret>[A-Za-z0-9+/]{20,120}={0,2})"),
    )
)  # fmt: skip
COMMANDS: Final = tuple(sign.lower() for sign, _ in _PLAIN if sign[0].isalnum())
"""A text with one of these is examined closely, however short its words are."""

_PARAMETER: Final = r"(?<=[?&])(?P<name>[\w.\[\]-]{1,64})=(?P<secret>[\w.~+/%=-]{16,2000})"
_HEADER: Final = r"(?:-H|--header)[ =]{0,2}[\"']?(?P<name>[\w-]{1,64}): {0,2}(?P<secret>[\w.~+/=-]{16,2000})"
_USER: Final = r"://(?P<name>)(?P<secret>[\w.~%-]{20,256})@(?=[\w\[])"
_NAMED: Final = r"(?i)key|token|secret|sig|auth|pass|pwd|cred|hmac|code|jwt|session|ticket|cookie"
_HARMLESS: Final = (
    r"(?i)^(?:public|cache|idempotency|page|sort|primary)|(?:status|error|country|zip|postal|lang\w*)[_-]?code"
)
_HEX: Final = r"[0-9a-fA-F-]+$"
_JSON: Final = "eyJ"
"""In base64. A web token has a shape of its own."""
_LONG_HEX: Final = 24


def carried_secrets(text: str) -> Iterator[Found]:
    """Find every such secret in the text; they may overlap."""
    for sign, pattern in _PLAIN:
        if sign in text:
            for match in compiled(pattern).finditer(text):
                if not is_placeholder(match["secret"]):
                    yield Found(*match.span("secret"), "password")
    for sign, pattern in (("=", _PARAMETER), ("-H", _HEADER), ("--header", _HEADER), ("://", _USER)):
        if sign in text:
            for match in compiled(pattern).finditer(text):
                if _is_secret(match["name"], match["secret"], is_user=pattern is _USER):
                    yield Found(*match.span("secret"), "secret")


def _is_secret(name: str, value: str, *, is_user: bool) -> bool:
    """Whether the value is random; of hexadecimal digits only if the name says so: hashes and ids are written alike."""
    if value.startswith(_JSON) or is_placeholder(value) or compiled(_HARMLESS).search(name):
        return False
    if compiled(_HEX).match(value):
        return len(value) >= _LONG_HEX and "-" not in value and (is_user or compiled(_NAMED).search(name) is not None)
    return has_random_run(value)
