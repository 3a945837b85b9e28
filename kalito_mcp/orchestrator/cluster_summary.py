"""Summarizes merged queries without a model: the first query, then the new words of the others. Pure."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.text.analysis import query_terms
from kalito_mcp.text.sentences import cut

_MIN_ROOM: Final = 12


class ClusterSummarizer:
    """A deterministic `SleepCycleSummarizer`."""

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        """The first text, then each other text's words that are new, as far as they fit in `max_length` characters."""
        summary = cut(" ".join(texts[0].split()), max_length)
        known = {term for word in texts[0].split() for term in query_terms(word)}
        opener = " (also: "
        for text in texts[1:]:
            # Word by word: in a whole question, "where" would not count as a term.
            terms = [(word, set(query_terms(word))) for word in text.split()]
            new = [word for word, of_word in terms if of_word - known]
            known = known.union(*(of_word for _, of_word in terms))
            if not new:
                continue
            addition = opener + " ".join(new).strip(".,;:!?")
            if len(summary) + len(addition) + 1 > max_length or max_length - len(summary) < _MIN_ROOM:
                break
            summary += addition
            opener = "; "
        return summary if opener == " (also: " else f"{summary})"
