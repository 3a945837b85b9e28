"""Names of files that every system and Obsidian accept. Pure.

Windows refuses some characters, some names, and a dot or a space at the end, and takes `A.md` and `a.md` for one file.
Obsidian cannot link to names with `#`, `^`, `[`, `]` or `|`.
"""

import re
import unicodedata
from hashlib import blake2b
from typing import Final

_REFUSED: Final = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*#^\[\]%\u2028\u2029\ufeff]+')
_DEVICES: Final = re.compile(r"(?i:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?")
_LIKE_OURS: Final = re.compile(r"(?:^| )[0-9a-f]{8}$")
_MOST_BYTES: Final = 120
_DIGEST_BYTES: Final = 4


def plain_name(name: str) -> str:
    """The name without what no file may have in its name. Empty if nothing is left; different names may give the
    same."""
    plain = unicodedata.normalize("NFC", _REFUSED.sub("-", name))
    plain = "".join(letter for letter in plain if letter.isprintable())
    return plain.encode("utf-8", "ignore")[:_MOST_BYTES].decode("utf-8", "ignore").strip(" .-~")


def file_name(name: str) -> str:
    """A name for a file, without an ending. Distinct even on case-insensitive file systems.

    A name that is fine stays as it is; else what cannot be in it is replaced and a digest of the name added.
    """
    cut = plain_name(name)
    is_fine = cut == name and cut.casefold() == cut and not _DEVICES.fullmatch(cut) and not _LIKE_OURS.search(cut)
    if cut and is_fine:
        return cut
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    if _DEVICES.fullmatch(cut):
        cut = f"_{cut}"
    return f"{cut} {digest}".strip()
