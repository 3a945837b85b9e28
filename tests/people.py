"""People of a database, each with something in every table, and a word that only they said."""

from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final

from kalito_mcp import FinalizeOptions, Memory, NewMessage, Role
from kalito_mcp.domain.archive import ArchiveEntry, Selection
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.records import CreatePinRequest, Reach
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.records.digests import SHARED
from tests import sign_ins
from tests.scripted import START_MS

PASSPHRASE: Final = "five words that nobody guesses"


async def fill(memory: Memory, name: str, word: str) -> Memory:
    """Give a person records of every kind with a word, and access; returns their memory."""
    theirs = memory.of_owner(name)
    work = await theirs.in_project(f"project {word}")
    recorded = await work.record_messages(
        f"{word} trip",
        [
            NewMessage(Role.USER, f"Remember: my boat is called {word}.", name=word),
            NewMessage(Role.ASSISTANT, f"The boat is called {word}."),
            NewMessage(Role.USER, f"My sister {word} lives in Bergen."),
            *(NewMessage(Role.USER, f"And the {word} {thing}?") for thing in ("sails", "engine", "anchor", "paint")),
        ],
    )
    _, answered, sister, asked, *_ = recorded.message_ids
    await theirs.record_messages(f"{word} open", [NewMessage(Role.USER, f"I like {word}.")], agent_id=f"agent {word}")
    await theirs.settled(with_vectors=False)
    await work.create_pin(CreatePinRequest(f"{word} trip", f"Boat: {word}", scope=Reach.PERSON))
    await work.record_feedback(answered, "up", f"yes, {word}", session_id=f"{word} trip")
    await work.conversations.summarize(f"{word} trip")
    [task] = await theirs.remember("task", {"text": f"Paint {word}", "tags": [word]})
    await theirs.update_memory(task.id, {"text": "Paint the boat"}, expected_revision=1)
    [note] = await theirs.remember("note", {"text": f"{word} floats."})
    await theirs.remember("note", {"text": f"{word} sinks.", "supersedes": [note.id]})
    await theirs.remember("document", {"text": f"# {word}\n\nA boat.", "source": f"{word}.md"})
    await theirs.forget(sister)
    await theirs.purge([asked])
    await work.search_memory(word)
    await theirs.build_context(query=word)
    await work.finalize_session(f"{word} trip", FinalizeOptions())
    await theirs.orchestrator().save_snapshot("kept")
    await theirs.settled(with_vectors=False)
    await _let_in(memory.place.store, name, word)
    await memory.access.create_token("write", owner=name, name=word)
    await memory.access.sign_in.passphrases.set(name, f"{PASSPHRASE} {name}")
    return theirs


async def _let_in(store: Store, name: str, word: str) -> None:
    consent = sign_ins.grant(f"grt_{name}", owner=name)

    async def write(transaction: WriteTransaction) -> None:
        await transaction.sign_in.add_grant(consent, sign_ins.code(consent), name.encode())
        made = sign_ins.token(f"tok_of_{name}", owner=name, grant=consent.id, expires_at=START_MS << 1)
        await transaction.access.add_token(replace(made, name=word), b"text of " + name.encode())
        read = FileRead("host", f"/{word}.jsonl", size=1, modified_ns=1, read_to=1, fingerprint="x")
        await transaction.imports.keep(Scope(name), read, now_ms=START_MS)

    await store.write(write)


async def rows_of(store: Store, owner: str) -> list[ArchiveEntry]:
    """All that an archive has of somebody, without what is of the whole database."""
    async with store.view() as view, aclosing(view.archive.entries(owner, Selection())) as pages:
        return [one async for page in pages for one in page if one.kind not in SHARED]


def holding(folder: Path, word: str) -> list[str]:
    """The files below the folder that hold the word, as raw bytes in any case."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [str(path.relative_to(folder)) for path in paths if word.lower().encode() in path.read_bytes().lower()]
