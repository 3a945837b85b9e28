"""What a hook puts into a prompt: what is remembered of what the prompt is about, or nothing. Reads only.

A person does not see it and cannot say that it is noise, so it has a bar of its own, above that of a search. It never
shows what the assistant still sees: messages of the same conversation, and what was put into it before.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Final

import anyio.to_thread

from kalito_mcp.contexts import render
from kalito_mcp.contexts.history import History
from kalito_mcp.contexts.passages import turns
from kalito_mcp.domain.context import MOST_TOKENS
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import RecordType, origin_of_role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit, SearchFilters, SeenPart
from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.domain.zone import Zone
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.safety.trust import is_name_withheld, is_withheld
from kalito_mcp.text.questions import ends_by_asking, questions_in
from kalito_mcp.text.recollection import refers_to_the_past
from kalito_mcp.text.sentences import split_sentences

_INJECTED: Final = frozenset({RecordType.MESSAGE, RecordType.DOCUMENT, RecordType.TASK, RecordType.PIN})
_READ_HITS: Final = 24
_PLAIN_WORDS: Final = 32
_RECALLED: Final = "Remembered from other conversations, perhaps of use here."
_KNOWN: Final = "Known of the user and the project."


@dataclass(frozen=True, slots=True)
class InjectionPolicy(Policy):
    """What hooks may put into a prompt. A record needs `min_share` of the best one's score, and a least score: of a
    prompt that only asks, in a few words, of one that asks among other things, and of one that states or orders. One
    that asks for what was said earlier needs none."""

    enabled: bool = True
    max_tokens: int = bounded(600, most=MOST_TOKENS)
    known_tokens: int = bounded(400, most=MOST_TOKENS)
    """Of what is known of the person and the project, at the start of a session."""
    min_score_if_plain: float = bounded(0.15, most=1)
    min_score_if_asked: float = bounded(0.3, most=1)
    min_score: float = bounded(0.4, most=1)
    min_share: float = bounded(0.6, most=1)
    timeout_s: float = bounded(0.25, most=4)
    """A prompt does not wait longer, except for the first one of a server. What is not found by then is left out."""


@dataclass(frozen=True, slots=True)
class Injection:
    """The text for a prompt, at most `max_tokens` tokens of it, and the ids of the records in it. Empty if nothing
    matters."""

    text: str = ""
    record_ids: tuple[str, ...] = ()


class Injector:
    """Finds what to put into prompts."""

    def __init__(
        self, searcher: Searcher, counter: TokenCounter, policy: InjectionPolicy, *, fence_secret: bytes, zone: Zone
    ) -> None:
        self.policy = policy
        self._searcher = searcher
        self._counter = counter
        self._fence_secret = fence_secret
        self._zone = zone

    async def inject(
        self,
        scope: Scope,
        prompt: str,
        *,
        session_id: str,
        seen: frozenset[SeenPart] = frozenset(),
        shown: Set[str] = frozenset(),
    ) -> Injection:
        """What matters for a prompt of the session, without what the assistant has `seen` there (`filtering`), and
        without the records that are `shown`: they were put into it before."""
        filters = SearchFilters(types=_INJECTED, seen=seen)
        request = self._searcher.lenient(prompt, wanted=_READ_HITS, filters=filters)
        if not self.policy.enabled or not self.policy.max_tokens or request is None:
            return Injection()
        page = await self._searcher.search(scope, replace(request, is_urgent=True))

        def is_new(hit: Hit) -> bool:
            return hit.record_id not in shown and shown.isdisjoint(hit.same)

        new = [hit for hit in page.hits if is_new(hit) and not is_withheld(hit.origin, hit.text)]
        new = [replace(hit, name=None) if is_name_withheld(hit.origin, hit.name) else hit for hit in new]
        if not new:
            return Injection()
        bar = max(self._least_score(prompt), self.policy.min_share * new[0].score)
        hits = _with_answers([hit for hit in new if hit.score >= bar], new, shown)
        return await anyio.to_thread.run_sync(partial(self._packed, hits, prompt, scope, session_id))

    def of_known(self, scope: Scope, records: Sequence[KnownRecord]) -> Injection:
        """What is known, all of it: at the start of a session."""
        if not records:
            return Injection()
        first, last = self._frame(scope, "", _KNOWN)
        pieces = [render.known_piece(one, self._zone) for one in records]
        lines = [f"{piece.label}{piece.text}" for piece in pieces]
        return Injection("\n".join([first, *lines, last]), tuple(one.record_id for one in records))

    def tokens(self, injection: Injection) -> int:
        """How many tokens its text has."""
        return self._counter.count(injection.text) if injection.text else 0

    def _frame(self, scope: Scope, session_id: str, what: str) -> tuple[str, str]:
        fence = blake2b(f"{scope.owner}\x1f{session_id}".encode(), key=self._fence_secret, digest_size=6).hexdigest()
        return render.injection_opening(fence, what), render.closing(fence)

    def _least_score(self, prompt: str) -> float:
        """People who ask for something they told before ask plainly; a long prompt brings what it is about itself."""
        asked = questions_in(prompt)
        if not asked:
            return self.policy.min_score
        if any(refers_to_the_past(one) for one in asked):
            return 0.0
        is_plain = len(prompt.split()) <= _PLAIN_WORDS and len(asked) == len(split_sentences(prompt))
        return self.policy.min_score_if_plain if is_plain else self.policy.min_score_if_asked

    def _packed(self, hits: list[Hit], prompt: str, scope: Scope, session_id: str) -> Injection:
        """The first hits that fit."""
        if not hits:
            return Injection()
        first, last = self._frame(scope, session_id, _RECALLED)
        older = turns(hits, (), prompt)
        history = History(older, session_id, self._zone, lambda line: self._counter.count(line + "\n"))
        room = self.policy.max_tokens - self._counter.count(f"{first}\n{last}")
        kept = next((kept for kept in range(len(older), 0, -1) if history.cost(kept) <= room), 0)
        if not kept:
            return Injection()
        ids = tuple(one for turn in older[:kept] for one in (turn.said.record_id,))
        return Injection("\n".join([first, *history.lines(kept), last]), ids)


def _with_answers(hits: Sequence[Hit], found: Sequence[Hit], shown: Set[str]) -> list[Hit]:
    """The hits, then the answers to those of them that ask, wherever these stand among all that was found. What only
    asks, and got no answer, tells nothing and is left out."""
    said = {(hit.session_id, hit.seq): hit for hit in found if hit.seq is not None}
    kept: dict[str, Hit] = {}
    answers: list[Hit] = []
    for hit in hits:
        answer = None
        if hit.seq is not None and ends_by_asking(hit.text):
            answer = said.get((hit.session_id, hit.seq + 1)) or _as_hit(hit)
            if answer is None and len(questions_in(hit.text)) == len(split_sentences(hit.text)):
                continue
        kept[hit.record_id] = hit
        answers += [answer] if answer is not None and answer.record_id not in shown else []
    return list({**kept, **{one.record_id: one for one in answers if one.record_id not in kept}}.values())


def _as_hit(asking: Hit) -> Hit | None:
    """The answer to a hit as a hit of its own; None if it has none."""
    answer = asking.answer
    if answer is None or answer.role is None or asking.seq is None:
        return None
    return Hit(
        record_id=answer.record_id,
        type=RecordType.MESSAGE,
        session_id=asking.session_id,
        role=answer.role,
        name=answer.name,
        text=answer.text,
        created_at=asking.created_at,
        score=asking.score,
        client_key=None,
        key=0,
        origin=origin_of_role(answer.role),
        seq=asking.seq + 1,
        project=asking.project,
    )
