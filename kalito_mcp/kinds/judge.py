"""Says of sentences what they are: by their vectors, or without a model by explicit words."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from kalito_mcp.errors import ModelError
from kalito_mcp.kinds.cues import judged_by_words
from kalito_mcp.kinds.first_person import in_first_person
from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.ports.embedder import Embedder
from kalito_mcp.runtime.long_texts import read_aside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AT_ONCE: Final = 20_000
"""Characters that are judged within some milliseconds."""

_REMEMBERED: Final = 1_024
"""Vectors of sentences, of 2 KB each: one that was just said is asked for again by its summary, or by an edit."""


class Reading(NamedTuple):
    """The judgement of each sentence, and their vectors of unit length (n, 512); None without a model."""

    judged: Sequence[Judged]
    vectors: "NDArray[np.float32] | None"


class SentenceJudge:
    """Judges sentences. `embedder` must be the model whose vectors `kinds.head` was made for; None judges by words."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._remembered: dict[bytes, NDArray[np.float32]] = {}
        """By a digest of the sentence: what is erased must not stay in memory as text."""

    async def judge(self, sentences: Sequence[Sentence]) -> Sequence[Judged]:
        """The judgement of each sentence. Never raises: it does without a model that cannot be used."""
        return (await self.read(sentences)).judged

    async def read(self, sentences: Sequence[Sentence]) -> Reading:
        """The judgement of each sentence, with their vectors. Never raises, as `judge`."""
        if not sentences:
            return Reading((), None)
        own = {one: one._replace(text=in_first_person(one.text)) for one in sentences}
        said = {words for one, words in own.items() if words != one}
        found = await self._read([*sentences, *said])
        of_said = dict(zip(said, found.judged[len(sentences) :], strict=True))
        judged = [
            what._replace(is_personal=of_said.get(own[one], what).is_personal)
            for one, what in zip(sentences, found.judged[: len(sentences)], strict=True)
        ]
        return Reading(judged, None if found.vectors is None else found.vectors[: len(sentences)])

    async def _read(self, sentences: Sequence[Sentence]) -> Reading:
        chars = sum(len(one.text) for one in sentences)
        vectors = None
        if self._embedder is not None:
            with suppress(ModelError):
                vectors = await self._vectors(self._embedder, [one.text for one in sentences])
        if vectors is None:
            return Reading(await read_aside(chars, partial(judged_by_words, sentences), most=_AT_ONCE), None)
        from kalito_mcp.kinds.head import judged  # noqa: PLC0415 - numpy loads when first needed

        return Reading(await read_aside(chars, partial(judged, vectors, sentences), most=_AT_ONCE), vectors)

    def forget(self) -> None:
        """Forget what was judged: something of it was erased."""
        self._remembered.clear()

    async def _vectors(self, embedder: Embedder, texts: Sequence[str]) -> "NDArray[np.float32]":
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        known = self._remembered
        found = {key: known[key] for key in keys if key in known}
        if new := {key: text for key, text in zip(keys, texts, strict=True) if key not in found}:
            found |= zip(new, await embedder.embed(list(new.values())), strict=True)
        import numpy as np  # noqa: PLC0415 - the same

        for key, vector in found.items():
            known.pop(key, None)
            known[key] = vector
        for key in list(known)[:-_REMEMBERED]:
            del known[key]
        return np.stack([found[key] for key in keys])
