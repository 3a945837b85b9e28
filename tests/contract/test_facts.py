"""What the store keeps of statements: lines, conflicts, and that they follow every change of their records."""

import random

import pytest

from kalito_mcp.domain.facts import StatedFact
from kalito_mcp.domain.memory_records import EditDraft, EditType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.ports.conversations import MessageDraft
from kalito_mcp.ports.store import Store
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
HERE = Scope(session="s")
LATER = START_MS + 10**9


async def say(store: Store, *said: str | MessageDraft, scope: Scope = HERE) -> list[str]:
    """Record, each message in a call of its own. Returns the ids."""
    ids: list[str] = []
    for one in said:
        draft = drafts.message(one) if isinstance(one, str) else one
        async with store.write() as transaction:
            session = await transaction.sessions.ensure(scope, now_ms=START_MS)
            [stored] = await transaction.conversations.append_messages(session, [draft], now_ms=draft.created_at)
            ids.append(f"msg_{stored.id}")
    return ids


async def line(store: Store, subject: str, attribute: str, scope: Scope | None = None) -> list[StatedFact]:
    async with store.read() as view:
        return list(await view.facts.line(scope or Scope(), subject, attribute, limit=100))


async def current(store: Store, scope: Scope | None = None) -> dict[tuple[str, str], str]:
    async with store.read() as view:
        found = await view.facts.current(scope or Scope(), limit=100)
        return {(one.subject, one.attribute): one.value for one in found}


async def edit(store: Store, record_id: str, **changes: object) -> None:
    """Change fields of a record: `deleted_at` forgets it, None restores it."""
    async with store.write() as transaction:
        record = await transaction.records.record(Scope(), record_id)
        assert record is not None
        content = {key: value for key, value in {**record.content, **changes}.items() if value is not None}
        draft = EditDraft(EditType.UPDATE, drafts.ANN, LATER, content, tokens=1)
        await transaction.records.change(record, draft)


async def test_the_newest_stands_and_the_older_ones_are_linked_and_dated(store: Store) -> None:
    first, second, third = await say(
        store,
        drafts.message("I live in Porto.", created_at=START_MS),
        drafts.message("I live in Graz.", created_at=START_MS + 1_000),
        drafts.message("I moved to Turin.", created_at=START_MS + 2_000),
    )
    turin, graz, porto = await line(store, "@user", "home")
    assert [turin.record_id, graz.record_id, porto.record_id] == [third, second, first]
    assert (porto.superseded_by, porto.valid_until, porto.known_until) == (second, START_MS + 1_000, START_MS + 1_000)
    assert (graz.superseded_by, graz.valid_from) == (third, START_MS + 1_000)
    assert turin.superseded_by is None
    assert porto.current_key == turin.record_key
    assert await current(store) == {("@user", "home"): "turin"}


async def test_a_value_that_comes_back_stands_again(store: Store) -> None:
    await say(store, "I live in Porto.", "I live in Graz.", "I live in Porto.")
    newest, middle, oldest = await line(store, "@user", "home")
    assert [newest.superseded_by, middle.superseded_by, oldest.superseded_by] == [
        None,
        newest.record_id,
        middle.record_id,
    ]


async def test_a_message_that_corrects_itself_leaves_its_last_word(store: Store) -> None:
    await say(store, "I live in Porto. Correction: I live in Graz. No wait, actually I live in Turin.")
    assert await current(store) == {("@user", "home"): "turin"}


async def test_a_contradiction_without_a_change_is_a_conflict_not_an_end(store: Store) -> None:
    first, second = await say(store, "I work at Globex.", "I work at Initech.")
    async with store.read() as view:
        [(older, newer)] = await view.facts.conflicts(Scope(), limit=10)
    assert (older.record_id, newer.record_id) == (first, second)
    assert older.superseded_by is None
    assert older.conflicts_with == second


async def test_two_speakers_do_not_contradict_each_other(store: Store) -> None:
    await say(store, drafts.message("I live in Porto.", name="Nora"), drafts.message("I live in Graz.", name="Igor"))
    assert await current(store) == {("nora", "home"): "porto", ("igor", "home"): "graz"}


async def test_a_fact_changes_in_another_language(store: Store) -> None:
    await say(store, "I live in Porto.", "Ich wohne jetzt in Graz.", "J'habite maintenant à Lyon.")
    assert await current(store) == {("@user", "home"): "lyon"}


async def test_a_retraction_ends_a_fact_without_a_new_one(store: Store) -> None:
    await say(store, "I work at Globex.", "My sister lives in Porto.", "I drink coffee daily.")
    await say(store, "I don't work at Globex anymore.", "I misspoke, I have no sister.", "I no longer drink coffee.")
    stated = await current(store)
    assert ("@user", "employer") not in stated
    assert ("@user sister", "home") not in stated
    assert stated["@user", "drink coffe"] == "no"


async def test_of_two_names_only_the_one_that_left_is_ended(store: Store) -> None:
    await say(store, "Petra and Igor work with me.", "Igor left the team.")
    stated = await current(store)
    assert (stated["petra", "colleague"], stated["igor", "colleague"]) == ("yes", "no")


async def test_a_clock_that_was_set_back_does_not_turn_the_order(store: Store) -> None:
    await say(store, drafts.message("I live in Porto.", created_at=LATER))
    await say(store, drafts.message("I live in Graz.", created_at=START_MS), scope=Scope(session="other"))
    assert await current(store) == {("@user", "home"): "graz"}


async def test_an_import_of_older_words_comes_before_what_was_said_later(store: Store) -> None:
    await say(store, drafts.message("I live in Graz.", created_at=LATER))
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(Scope(session="import"), now_ms=LATER)
        old = [drafts.message("I live in Porto.", created_at=START_MS)]
        await transaction.conversations.append_messages(session, old, now_ms=LATER + 1)
    assert await current(store) == {("@user", "home"): "graz"}
    graz, porto = await line(store, "@user", "home")
    assert porto.superseded_by == graz.record_id


@pytest.mark.parametrize("change", [{"deleted_at": LATER}, {"text": "Nothing."}, {"visibility": "internal"}])
async def test_what_a_changed_record_ended_stands_again_until_it_is_restored(
    store: Store, change: dict[str, object]
) -> None:
    _, second = await say(store, "I live in Porto.", "I live in Graz.")
    await edit(store, second, **change)
    assert await current(store) == {("@user", "home"): "porto"}
    await edit(store, second, **{"deleted_at": None, "visibility": None, "text": "I live in Graz."})
    assert await current(store) == {("@user", "home"): "graz"}


async def test_a_purge_takes_the_facts_along(store: Store) -> None:
    _, second = await say(store, "I live in Porto.", "I live in Graz.")
    async with store.write() as transaction:
        record = await transaction.records.record(Scope(), second)
        assert record is not None
        await transaction.records.purge(record, now_ms=LATER)
    assert await current(store) == {("@user", "home"): "porto"}
    assert [one.value for one in await line(store, "@user", "home")] == ["porto"]


async def test_each_project_has_lines_of_its_own(store: Store) -> None:
    await say(store, "We upgraded Django to 5.1.", scope=Scope(session="a", project="shop"))
    await say(store, "We upgraded Django to 4.2.", scope=Scope(session="b", project="blog"))
    assert await current(store, Scope(project="shop")) == {("django", "version"): "5.1"}
    assert await current(store, Scope(project="blog")) == {("django", "version"): "4.2"}


async def test_a_record_supersedes_those_that_it_names(store: Store) -> None:
    [first] = await say(store, "The mug on the left is mine.")
    [second] = await say(store, drafts.message("The red mug is mine.", details={"supersedes": [first]}))
    key = int(first[4:])
    async with store.read() as view:
        [whole] = (await view.facts.of_records(Scope(), [key]))[key]
    assert (whole.superseded_by, whole.start, whole.end) == (second, 0, len("The mug on the left is mine."))
    with pytest.raises(RecordNotFound, match="msg_99"):
        await say(store, drafts.message("Mine too.", details={"supersedes": ["msg_99"]}))


async def test_any_order_of_recording_gives_the_same_line(store: Store) -> None:
    towns = ["porto", "graz", "turin", "lyon", "bergen"]
    said = list(enumerate(town.title() for town in towns * 4))
    random.Random(7).shuffle(said)
    for place, town in said:
        async with store.write() as transaction:
            session = await transaction.sessions.ensure(Scope(session=f"s{place}"), now_ms=LATER)
            draft = drafts.message(f"I live in {town}.", created_at=START_MS + place)
            await transaction.conversations.append_messages(session, [draft], now_ms=LATER)
    found = await line(store, "@user", "home")
    assert [one.value for one in found] == (towns * 4)[::-1]
    assert [one.superseded_by for one in found[1:]] == [one.record_id for one in found[:-1]]
