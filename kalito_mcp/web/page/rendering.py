"""Makes HTML from templates. Every value is escaped, and a value that a template misses is an error.

Remembered text may be anything: invisible characters of every value are written out, and a very long text is cut where
it is shown. What a form sends back has the filter `exact`.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from unicodedata import category

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.validation import MESSAGE_ID_PREFIX
from kalito_mcp.safety.escaping import INVISIBLE, visible
from kalito_mcp.text.plurals import plural
from kalito_mcp.web.page.static_files import static_url
from kalito_mcp.web.page.view import record_url, session_url

_MOST_CHARS: Final = 2_000
_RECORD: Final = re.compile(rf"(?:{MESSAGE_ID_PREFIX}|(?:{'|'.join(RecordType)})_)\d")
_OTHER: Final = re.compile(r"(?:tok|grant|project|graph|forgotten)_|passphrase of ")
_UNITS: Final[Mapping[str, int]] = {"GB": 1_000_000_000, "MB": 1_000_000, "kB": 1_000}
_TEMPLATES: Final = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters |= {"said": said, "moment": moment, "counted": plural, "record_url": record_url}
    found.filters |= {"exact": exact, "bytes": byte_count, "changed_url": changed_url}
    found.globals |= {"static": static_url, "session_url": session_url}
    return found


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """The HTML of a template."""
    return _environment().get_template(template).render(values)


def _shown(value: Any) -> Any:
    """A value of a template, without invisible characters. What a filter made is safe already."""
    return visible(_lines(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def exact(value: str | int) -> Markup:
    """A value that a form sends back as it is: its invisible characters are references. Control characters, for which
    HTML has none, are written out."""
    return Markup(INVISIBLE.sub(_references, str(escape(_lines(str(value))))))  # noqa: S704 - escaped first


def _references(found: re.Match[str]) -> str:
    return "".join(visible(one) if category(one) == "Cc" else f"&#x{ord(one):x};" for one in found.group())


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def said(text: str | None, most: int = _MOST_CHARS) -> Markup:
    """Remembered text, in its own direction, at most `most` characters of it."""
    text = _lines(text or "")
    cut = text if len(text) <= most else f"{text[:most].rstrip()} …"
    return Markup('<bdi class="said">{}</bdi>').format(visible(cut))


def moment(at_ms: int | None) -> Markup:
    """A moment as the server's text, which the script of the page puts into the reader's own time zone."""
    if at_ms is None:
        return Markup("")
    iso = to_iso(at_ms)
    return Markup('<time datetime="{}">{} UTC</time>').format(iso, iso[:16].replace("T", " "))


def changed_url(named: str) -> str | None:
    """The view of what the audit log names: a record or a session. None for what has no view, such as a token."""
    if _RECORD.match(named):
        return record_url(named)
    return None if _OTHER.match(named) else session_url(named)


def byte_count(count: int) -> str:
    """`640 bytes`, `12.3 MB`. A megabyte is a million bytes."""
    for unit, size in _UNITS.items():
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return plural(count, "byte")
