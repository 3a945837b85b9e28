"""Writes texts that look the same in the same way. Pure.

Case, diacritics, compatibility forms and invisible characters are dropped. Greek and Cyrillic letters become the Latin
ones that they look like, in either case. The result is for comparing; nobody reads it.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from kalito_mcp.text.analysis import fold
from kalito_mcp.text.pieces import pieces

_LOOK_ALIKES: Final = {
    **dict(zip("авекмнорстухіјѕԁһӏԛԝґ", "abekmhopctyxijsdhlqwr", strict=True)),
    **dict(zip("αβεζηικμνορτυχγω", "abezhikmnoptyxyw", strict=True)),
    **dict(zip("ıɑɡɩ", "iagi", strict=True)),
}
_TO_LATIN: Final = str.maketrans(_LOOK_ALIKES)
# Beyond the format characters (category Cf): fillers, joiners and variation selectors.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_SEPARATORS: Final = re.compile(r"[\W_]+", re.ASCII)


def plain_letters(text: str) -> str:
    """The text in the letters that it seems to have, in lower case, without what cannot be seen."""
    if text.isascii():
        return text.lower()
    return fold(_visible(text)).translate(_TO_LATIN)


def alike(name: str, others: Iterable[str]) -> str | None:
    """The first of the other names that looks like this one: it differs in case, blanks, forms of the same character,
    look-alikes or invisible characters alone. None if this name is itself among them, or none looks like it."""
    known = list(others)
    looks = _looks_of(name)
    return None if name in known else next((one for one in known if _looks_of(one) == looks), None)


def _looks_of(name: str) -> str:
    """Diacritics count here: é is not e."""
    seen = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _visible(name)).casefold())
    return " ".join(seen.translate(_TO_LATIN).split())


def compact(text: str) -> str:
    """Only the letters, marks and digits of the text, in plain letters."""
    plain = plain_letters(text)
    if plain.isascii():
        return "".join([_SEPARATORS.sub("", piece) for piece in pieces(plain)])
    return "".join(one for one in plain if one.isalnum() or unicodedata.category(one)[0] == "M")


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", "".join(one for one in text if unicodedata.category(one) != "Cf"))
