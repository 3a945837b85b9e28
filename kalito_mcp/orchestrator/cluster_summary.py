"""What merged queries have in common, without a model: the first as it was asked, then what the others add. Pure."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.text.analysis import query_terms
from kalito_mcp.text.sentences import cut

_MIN_ROOM: Final = 12


class ClusterSummarizer:
    """`SleepCycleSummarizer`, the same bytes for the same texts."""

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        """The first text, and of each other one the words that none before it has, while they fit."""
        summary = cut(" ".join(texts[0].split()), max_length)
        known = {term for word in texts[0].split() for term in query_terms(word)}
        opener = " (also: "
        for text in texts[1:]:
            # Word by word: of a whole question, "where" is no term.
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
