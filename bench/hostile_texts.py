"""What hostile texts cost each pass over a text, and what another client's call waits beside one of 512 KiB.

`passes`: the CPU of each function that recording, editing, searching, importing or purging runs over a whole text, for
each family of texts at 120 and 480 KiB. A pair is `super_linear` if four times the text takes over six times the time,
and `slow` above 0.2 s. `wire`: two clients of one server over HTTP. One sends texts of 512 KiB, one call after the
other; the other makes small calls all the time. `waits` are those of the other client, with and without the texts
beside it. A second core shows the server's waits, not its CPU.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.hostile import hostile_texts
from bench.over_http import HttpClient, served
from bench.report import emit, latency, options, progress
from kalito_mcp.contexts.excerpts import excerpt
from kalito_mcp.domain.records import MessageWithImportance, RecordType, Role
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.entities import entities
from kalito_mcp.graph.hashing import HashingEmbedder
from kalito_mcp.inference.tokens import token_counter
from kalito_mcp.kinds.cues import judged_by_words
from kalito_mcp.pins.automatic import found_pins, pinnable
from kalito_mcp.records.chunking import chunks
from kalito_mcp.records.diffs import diff, diff_summary
from kalito_mcp.records.importance import score_importance
from kalito_mcp.retrieval.question import parse_question
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.safety.instructions import is_instruction_like
from kalito_mcp.safety.redaction import redact
from kalito_mcp.summaries.extractive import read_messages, write
from kalito_mcp.text.analysis import index_text, indexed_words, words
from kalito_mcp.text.code_blocks import collapse_code
from kalito_mcp.text.identifiers import identifier_keys
from kalito_mcp.text.languages import likely_languages
from kalito_mcp.text.look_alikes import compact
from kalito_mcp.text.questions import questions_in
from kalito_mcp.text.repetition import keys_of, keys_stated, keys_to_forget
from kalito_mcp.text.sentences import split_sentences
from kalito_mcp.text.times.annotation import languages_of, with_dates

_CHARS: Final = (120 * 1024, 480 * 1024)
_SLOW_S: Final = 0.2
_SUPER_LINEAR: Final = 6.0
_MEASURABLE_S: Final = 0.004
_WIRE_CHARS: Final = 512 * 1024
_ALONE_S: Final = 3.0
_SHOWN: Final = 10
_QUICK_STEP: Final = 10
_NOW_MS: Final = 1_750_000_000_000
_COUNTER: Final = token_counter("calibrated")
_EMBEDDER: Final = HashingEmbedder()


def _said(text: str) -> MessageWithImportance:
    return MessageWithImportance(
        id=1, session_id="s", role=Role.USER, text=text, model_id=None, token_usage=None, created_at=_NOW_MS,
        importance_score=0.5, seq=1, tokens=1,
    )  # fmt: skip


def _pins(text: str) -> object:
    message = _said(text)
    sentences = pinnable(message)
    return found_pins(message, sentences, judged_by_words(sentences))


def _summary(messages: Sequence[MessageWithImportance]) -> str:
    draft = read_messages(messages)
    return write(draft, judged_by_words([one.sentence for one in draft.said]), None, max_chars=800)


PASSES: Final[Mapping[str, Callable[[str], Any]]] = {
    "redact": redact,
    "instructions": is_instruction_like,
    "importance": lambda text: score_importance(Role.USER, text),
    "as data": as_data,
    "tokens": _COUNTER.count,
    "index": index_text,
    "keys": keys_of,
    "keys stated": keys_stated,
    "keys to forget": lambda text: keys_to_forget(text, RecordType.MESSAGE),
    "keys to forget of a pin": lambda text: keys_to_forget(text, RecordType.PIN),
    "compact": compact,
    "identifiers": identifier_keys,
    "pins": _pins,
    "sentences": split_sentences,
    "code": collapse_code,
    "languages": lambda text: likely_languages(words(text)),
    "dates": lambda text: with_dates(text, _NOW_MS, languages_of(text)),
    "questions": questions_in,
    "chunks": chunks,
    "entities": entities,
    "node key": canonical_key,
    "hashes": lambda text: _EMBEDDER.embed(text[:4_000]),
    "summary": lambda text: _summary([_said(text)] * 2),
    "excerpt": lambda text: excerpt(text, ["porto", "word", "key"], 600),
    "words of a hit": indexed_words,
    "diff": lambda text: diff({"text": text}, {"text": f"x{text[: len(text) // 2]}y{text[len(text) // 2 :]}"}),
    "diff summary": lambda text: diff_summary({"text": text}, {"text": f"x{text}y"}),
    "question": lambda text: parse_question(text[:100_000], max_terms=400, now_ms=_NOW_MS),
}


def _cpu_s(read: Callable[[str], Any], text: str) -> float:
    started = time.process_time()
    read(text)
    return time.process_time() - started


def costs(families: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str, float, float]]:
    """Each family and pass with its CPU at both lengths, in seconds."""
    for family, (short, long) in families.items():
        for name, read in PASSES.items():
            yield family, name, _cpu_s(read, short), _cpu_s(read, long)


def waits(families: Mapping[str, str]) -> dict[str, Any]:
    """What small calls of one client wait alone, and while another sends each text, asks with it and forgets it."""
    small: Mapping[str, Mapping[str, Any]] = {
        "list_tasks": {},
        "search_memory": {"query": "where do I live", "session_id": "small"},
        "build_context": {"session_id": "small"},
    }
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as server:
        sends, asks = HttpClient(server).call, HttpClient(server).call
        said = [{"role": "user", "text": text} for text in ("I live in Porto.", "My account is ABC-123-45 there.")]
        ids = asks("record_messages", {"session_id": "small", "messages": said})["message_ids"]
        asks("forget", {"record_ids": ids[1:]})  # from now on, every text is compared with what was forgotten
        over = threading.Event()
        family = ""
        took: list[tuple[str, str, float]] = []

        def probe() -> None:
            while not over.wait(0.002):
                for tool, arguments in small.items():
                    during, started = family, time.perf_counter()
                    asks(tool, arguments)
                    took.append((during, tool, time.perf_counter() - started))

        prober = threading.Thread(target=probe)
        prober.start()
        time.sleep(_ALONE_S)
        for family, text in families.items():  # noqa: B007 - the prober reads it
            message = {"role": "user", "text": text}
            recorded = sends("record_messages", {"session_id": "large", "messages": [message]})
            sends("build_context", {"session_id": "large", "query": text[:3_000]})
            sends("forget", {"record_ids": recorded["message_ids"]})
        over.set()
        prober.join()
    beside = [one for one in took if one[0]]
    return {
        "alone": latency([wait for during, _, wait in took if not during]),
        "beside": {tool: latency([wait for _, name, wait in beside if name == tool]) for tool in small},
        "longest": [(name, tool, wait) for name, tool, wait in sorted(beside, key=lambda one: -one[2])[:_SHOWN]],
    }


def main() -> int:
    """Run the benchmark."""
    given = options(__doc__).parse_args()
    short, long = (hostile_texts(chars) for chars in _CHARS)
    names = list(long)[:: _QUICK_STEP if given.quick else 1]
    for read in PASSES.values():
        read("I moved to Porto.")  # compiles its expressions
    found = []
    for cost in costs({name: (short[name], long[name]) for name in names}):
        found.append(cost)
        if cost[3] > _SLOW_S:
            progress(f"{cost[0]}, {cost[1]}: {cost[2]:.3f} s, then {cost[3]:.3f} s")
    longest = {name: max(((s, family) for family, by, _, s in found if by == name)) for name in PASSES}
    whole = {
        name: text.encode()[: 512 * 1024].decode(errors="ignore") for name, text in hostile_texts(_WIRE_CHARS).items()
    }
    emit(
        "hostile_texts",
        {
            "families": len(names),
            "passes": {name: {"max_s": s, "of": family} for name, (s, family) in longest.items()},
            "slow": sum(s > _SLOW_S for _, _, _, s in found),
            "super_linear": [
                (family, name, before, s)
                for family, name, before, s in found
                if s > _MEASURABLE_S and s > _SUPER_LINEAR * max(before, _MEASURABLE_S / _SUPER_LINEAR)
            ],
            "wire": waits({name: whole[name] for name in names}),
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
