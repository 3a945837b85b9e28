"""Chooses what a hook adds to a prompt: records about its subject, or nothing. Reads only.

The user does not see it and cannot object to noise, so unlike a search it has a bar. It never shows what the assistant
still sees: messages of the same conversation, and records that were added before.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Final

import anyio.to_thread

from kalito_mcp.contexts import render
from kalito_mcp.contexts.bar import Bar
from kalito_mcp.contexts.history import History
from kalito_mcp.contexts.passages import Turn, passages
from kalito_mcp.contexts.recaller import is_trusted, messages_around, trustily_named
from kalito_mcp.contexts.steps import Steps
from kalito_mcp.domain.context import MOST_TOKENS, MemoryContext
from kalito_mcp.domain.given import GivenPart, LeftOut, PartContent, PartName, Why, left_out, parts_of
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit, SearchFilters, SeenPart
from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.domain.zone import Zone
from kalito_mcp.ports.search import TermIndex
from kalito_mcp.ports.store import ReadView
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.text.analysis import terms
from kalito_mcp.text.questions import ends_by_asking, questions_in
from kalito_mcp.text.sentences import split_sentences

_INJECTED: Final = frozenset({RecordType.MESSAGE, RecordType.DOCUMENT, RecordType.TASK, RecordType.PIN})
_READ_HITS: Final = 24
_MOST_HITS: Final = 12
"""More do not fit with what belongs to them."""

_BESIDE_SHOWN: Final = 0.6
"""The least score, as a share of that of a hit that the conversation has already: what is far from the answer adds
nothing to it."""

_AGAIN: Final = 0.5
"""The least share of common terms, of all that a prompt and a message have, at which the one says the other again."""

_RECALLED: Final = "Remembered from other conversations, perhaps of use here."
_START: Final = "Known of the user and the project."


@dataclass(frozen=True, slots=True)
class InjectionPolicy(Policy):
    """What hooks may add to a prompt. A record needs a score of `min_score`, and more for a long prompt or one with
    unknown terms. Unless the prompt asks something, it also needs specific words of it (`bar`)."""

    enabled: bool = True
    max_tokens: int = bounded(600, most=MOST_TOKENS)
    known_tokens: int = bounded(600, most=MOST_TOKENS)
    """Tokens for known facts of the person and the project, and for the ends of the latest conversations, at the start
    of a session."""
    min_score: float = bounded(0.15, most=1)
    timeout_s: float = bounded(0.25, most=4)
    """A prompt does not wait longer, except the first one of a server. Anything not found by then is left out."""


@dataclass(frozen=True, slots=True)
class Injection:
    """The text for a prompt, at most `max_tokens` tokens of it, its tokens, and the ids of the records in it. Empty if
    nothing matters. `made_of` and `missing` are as in a context."""

    text: str = ""
    record_ids: tuple[str, ...] = ()
    tokens: int = 0
    made_of: tuple[GivenPart, ...] = ()
    missing: tuple[LeftOut, ...] = ()


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
        """Records that matter for a prompt of the session, without what the assistant has `seen` there (`filtering`),
        and without the records that were `shown` before."""
        filters = SearchFilters(types=_INJECTED, seen=seen)
        request = self._searcher.lenient(prompt, wanted=_READ_HITS, filters=filters)
        if not self.policy.enabled or not self.policy.max_tokens or request is None:
            return Injection()
        request = replace(request, is_urgent=True)
        prepared = await self._searcher.prepare(scope, request)
        said = frozenset(terms(prompt))

        def is_shown(hit: Hit) -> bool:
            # Who says again what is known wants what was answered, which a pin of those words does not show.
            return hit.record_id in shown or not (shown.isdisjoint(hit.same) or _is_again(said, hit.text))

        def is_new(one: Hit | Candidate) -> bool:
            return one.record_id not in shown and is_trusted(one)

        async def find(view: ReadView) -> tuple[Sequence[Hit], Sequence[Candidate], Sequence[Hit]]:
            page = await self._searcher.page(view, scope, request, prepared, has_turns=False)
            least = _BESIDE_SHOWN * max((hit.score for hit in page.hits if is_shown(hit)), default=0.0)
            new = [trustily_named(hit) for hit in page.hits if hit.score >= least and is_new(hit) and not is_shown(hit)]
            if not new:
                return (), (), ()
            hits = (await self._of_use(view, scope, prompt, prepared.question, new))[:_MOST_HITS]
            around = await messages_around(view, scope, hits, filters)
            around = [trustily_named(one) for one in around if is_new(one)]
            return _without_unanswered(hits, around), around, page.hits

        hits, around, found = await self._searcher.read(find)
        made = await anyio.to_thread.run_sync(partial(self._packed, hits, around, prompt, scope, session_id))
        if not made.text:
            return made
        withheld = [hit.record_id for hit in found if not is_trusted(hit)]
        missing = [
            *left_out(PartName.FOUND, Why.READS_LIKE_AN_INSTRUCTION, withheld),
            *left_out(PartName.FOUND, Why.REPEATS_ANOTHER, (one for hit in hits for one in hit.same)),
            *left_out(PartName.FOUND, Why.IN_THE_CONVERSATION, (hit.record_id for hit in found if is_shown(hit))),
        ]
        return replace(made, missing=(*made.missing, *missing))

    def of_start(self, scope: Scope, context: MemoryContext) -> Injection:
        """The ends of the latest conversations and all known facts, for the start of a session."""
        latest, known = context.latest_messages, context.known
        if not latest and not known:
            return Injection()
        turns = [Turn(one, " ".join(one.text.split()), rank) for rank, one in enumerate(latest)]
        lasting = [one for one in known if one.reach is not Reach.SESSION]
        digest = [one for one in known if one.reach is Reach.SESSION]
        latest_ids = [one.record_id for one in latest]
        ends = render.HistoryLines(None, self._zone).lines(passages(turns))
        contents = {
            PartName.KNOWN: PartContent([one.record_id for one in lasting], render.known_lines(lasting, self._zone)),
            PartName.LAST_TIME: PartContent(
                [*(one.record_id for one in digest), *latest_ids], [*render.known_lines(digest, self._zone), *ends]
            ),
        }
        lines = {part: content.lines for part, content in contents.items()}
        last = render.left_out_line({"shared": context.left_out.get("shared", 0)})
        text = render.assemble(self._frame(scope, "", _START), lines, last=last)
        return self._counted(text, (*latest_ids, *(one.record_id for one in known)), contents, context.missing)

    def _counted(
        self,
        text: str,
        record_ids: tuple[str, ...],
        contents: Mapping[PartName, PartContent],
        missing: Sequence[LeftOut],
    ) -> Injection:
        tokens = self._counter.count(text)
        return Injection(text, record_ids, tokens, parts_of(tokens, contents), tuple(missing))

    def _frame(self, scope: Scope, session_id: str, what: str) -> tuple[str, str]:
        fence = blake2b(f"{scope.owner}\x1f{session_id}".encode(), key=self._fence_secret, digest_size=6).hexdigest()
        return render.injection_opening(fence, what), render.closing(fence)

    async def _of_use(
        self, view: ReadView, scope: Scope, prompt: str, question: Question, found: Sequence[Hit]
    ) -> list[Hit]:
        """The hits that may be added to the prompt, best first."""

        def counted(index: TermIndex) -> tuple[Mapping[str, int], int]:
            found = index.places(question.terms)
            return {term: len(places) for term, places in found.items()}, index.records.count

        record_counts, total = await view.search.in_index(scope, counted) or ({}, 0)
        asks = question.asks_nothing_else or bool(questions_in(prompt))
        recalls = asks and (question.intent.earlier or question.intent.assistant)
        bar = Bar(prompt, record_counts, total, asks=asks, recalls=recalls, min_score=self.policy.min_score)
        return [hit for hit in found if bar.admits(hit.score, hit.text)]

    def _packed(
        self, hits: Sequence[Hit], around: Sequence[Candidate], prompt: str, scope: Scope, session_id: str
    ) -> Injection:
        """The first hits that fit, with the messages that belong to them."""
        if not hits:
            return Injection()
        first, last = self._frame(scope, session_id, _RECALLED)
        steps = Steps(hits, around, prompt)
        history = History(steps, session_id, self._zone, lambda line: self._counter.count(line + "\n"))
        found = history.fitting(self.policy.max_tokens - self._counter.count(f"{first}\n{last}"))
        if not found.turns:
            return Injection()
        ids = tuple(turn.said.record_id for turn in found.turns)
        unfitting = left_out(
            PartName.FOUND, Why.DID_NOT_FIT, (hit.record_id for hit in hits if hit.record_id not in ids)
        )
        contents = {PartName.FOUND: PartContent(ids, found.lines)}
        return self._counted("\n".join([first, *found.lines, last]), ids, contents, unfitting)


def _is_again(said: frozenset[str], text: str) -> bool:
    earlier = frozenset(terms(text))
    return len(said & earlier) >= _AGAIN * len(said | earlier)


def _without_unanswered(hits: Sequence[Hit], around: Sequence[Candidate]) -> list[Hit]:
    """The hits without those that only ask and got no answer: they tell nothing."""
    said = {(one.session_id, one.seq) for one in hits} | {(one.session_id, one.seq) for one in around}

    def tells(hit: Hit) -> bool:
        only_asks = ends_by_asking(hit.text) and len(questions_in(hit.text)) == len(split_sentences(hit.text))
        return hit.seq is None or not only_asks or (hit.session_id, hit.seq + 1) in said

    return [hit for hit in hits if tells(hit)]
