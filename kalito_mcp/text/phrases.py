"""Looks in texts for phrases of many languages. Pure."""

from collections.abc import Mapping

from kalito_mcp.text.analysis import is_spelled_with_spaces, plainly_spelled, words


class Phrases:
    """Words and phrases, by language, with commas between them. In a language without spaces they are looked for in the
    letters."""

    def __init__(self, *by_language: Mapping[str, str]) -> None:
        rows = (row for one in by_language for row in one.values())
        each = [plainly_spelled(one.strip()) for row in rows for one in row.split(",")]
        self._spaced = tuple(f" {' '.join(words(one))} " for one in each if is_spelled_with_spaces(one))
        self._first_words = frozenset(one.split()[0] for one in self._spaced)
        self._unspaced = tuple(one for one in each if not is_spelled_with_spaces(one))

    def are_in(self, text: str) -> bool:
        """Whether the text has one of them."""
        said = words(text)
        if not self._first_words.isdisjoint(said):
            spaced = f" {' '.join(said)} "
            if any(one in spaced for one in self._spaced):
                return True
        if text.isascii():
            return False
        letters = plainly_spelled(text)
        return any(one in letters for one in self._unspaced)

    def begin(self, text: str, *, behind: int = 1) -> bool:
        """Whether the text begins with one of them, perhaps behind other words, such as "please"."""
        said = words(text)
        if any(f" {' '.join(said[place:])} ".startswith(self._spaced) for place in range(behind + 1)):
            return True
        return not text.isascii() and plainly_spelled(text).startswith(self._unspaced)
