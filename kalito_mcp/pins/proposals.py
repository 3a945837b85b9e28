"""Which sentence of the assistant's message before it a short decision answers. Pure.

The one that is most alike; or else the question at the end, because an answer rarely repeats the words of its question;
or else the only sentence. Often nothing fits: a person also decides what nobody asked for.

The bar is from 28 short decisions of `bench/sets/kinds/conversations.jsonl`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.text.questions import ends_by_asking
from kalito_mcp.text.sentences import cut

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ALIKE: Final = 0.2
"""The least cosine of an answer and what it answers."""

_MOST_CHARS: Final = 140


class Said(NamedTuple):
    """The sentences of a message, what they are, and their vectors of unit length (n, m); without a model, None."""

    sentences: Sequence[Sentence]
    judged: Sequence[Judged]
    vectors: "NDArray[np.float32] | None"


def answered(before: Said | None, said: Said, at: int) -> str | None:
    """What the sentence at this place answers of the assistant's message `before`, on one line; None if nothing
    fits."""
    if before is None or not before.sentences:
        return None
    if before.vectors is not None and said.vectors is not None:
        likeness = before.vectors @ said.vectors[at]
        best = int(likeness.argmax())
        if likeness[best] >= _ALIKE:
            return _quoted(before.sentences[best])
    last = before.sentences[-1]
    return _quoted(last) if ends_by_asking(last.text) or len(before.sentences) == 1 else None


def _quoted(sentence: Sentence) -> str:
    return cut(sentence.text, _MOST_CHARS)
