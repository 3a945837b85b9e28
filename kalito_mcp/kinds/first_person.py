"""What somebody notes of the user, as the user would say it: "The user's name is Ann" is "my name is Ann". Pure.

The head learned from what people say of themselves, so it tells by that whose it is.
"""

import re
from collections.abc import Mapping
from typing import Final

_NAMED: Final[Mapping[str, str]] = {
    r"(?:the )?user(?:'s|’s)": "my",
    r"(?:the )?user is": "I am",
    r"(?:the )?user has": "I have",
    r"(?:the )?user does(?:n't|n’t| not)": "I don't",
    r"(?:the )?user": "I",
    r"(?:der|die) (?:be)?nutzer(?:in)?": "ich",
    r"l['’]utilisat(?:eur|rice)": "je",
    r"(?:el usuario|la usuaria)": "yo",
    r"[oa] (?:usuári[oa]|utilizador(?:a)?)": "eu",
    r"l['’]utente": "io",
    r"de gebruiker": "ik",
    r"användaren": "jag",
}
_BEGINNING: Final = re.compile("|".join(rf"({named})\b" for named in _NAMED), re.IGNORECASE)


def in_first_person(text: str) -> str:
    """The text, with its first words about the user in the first person."""
    found = _BEGINNING.match(text)
    if found is None or found.lastindex is None:
        return text
    return list(_NAMED.values())[found.lastindex - 1] + text[found.end() :]
