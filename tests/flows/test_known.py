"""What is known of the person and of the project reaches every new conversation."""

from pathlib import Path

import pytest

from tests.flows.harness import said, served

pytestmark = pytest.mark.anyio

NEW = "new-chat-1"
DINNER = "Can you suggest something for dinner tonight?"
SEAFOOD = "The user is a vegetarian and allergic to seafood."
SHORT = "The user wants short answers, in English, without bullet points."


async def test_a_pinned_allergy_is_in_the_first_turn_of_a_new_conversation(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("create_pin", session_id="november", content=SEAFOOD, importance_score=1.0)
        text = await h.text("build_context", session_id=NEW, max_tokens=3000, query=DINNER)
        assert SEAFOOD in text
        assert SEAFOOD in await h.text("build_context", max_tokens=3000, query=DINNER)


async def test_a_note_on_how_to_answer_is_in_every_conversation(database: Path, era: str) -> None:
    explicit = "Halte dich ab jetzt kurz, ohne Listen."
    async with served(database, era) as h:
        await h.facts("remember", type="note", text=SHORT, fields={"scope": "person"})
        await h.facts("remember", type="note", text=explicit)
        await h.facts("remember", type="note", text="The shed code is heron.")
        text = await h.text("build_context", session_id=NEW, query="Explain how TCP handshakes work")
        assert SHORT in text
        assert explicit in text
        assert "heron" not in text


async def test_a_known_fact_is_shown_once(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("create_pin", session_id="november", content=SEAFOOD)
        await h.facts("create_pin", session_id="december", content=SEAFOOD)
        for asked in ({"session_id": "november"}, {"session_id": NEW}, {}):
            text = await h.text("build_context", query="Is seafood all right for a vegetarian?", **asked)
            assert text.count(SEAFOOD) == 1


async def test_an_empty_memory_gives_only_the_frame(database: Path, era: str) -> None:
    async with served(database, era) as h:
        text = await h.text("build_context", session_id=NEW, query=DINNER)
        assert "KNOWN" not in text
        assert len(text) < 400


async def test_what_is_known_of_one_project_is_not_in_another_and_the_persons_facts_are_in_both(
    database: Path, era: str
) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="in shop", project="shop", messages=said("Hello."))
        await h.facts("create_pin", session_id="in shop", content="We decided to use PostgreSQL for the shop.")
        await h.facts("create_pin", session_id="in shop", content=SEAFOOD, scope="person")
        await h.facts("record_messages", session_id="in garden", project="garden", messages=said("Hello."))
        shop = await h.text("build_context", project="shop", query=DINNER)
        assert SEAFOOD in shop
        assert "PostgreSQL" in shop
        for asked in ({"project": "garden"}, {"project": "garden", "session_id": "in garden"}, {"project": "personal"}):
            garden = await h.text("build_context", query="PostgreSQL for dinner?", **asked)
            assert SEAFOOD in garden
            assert "PostgreSQL" not in garden
        assert "PostgreSQL" not in await h.text("build_context", session_id="in garden", query=DINNER)


@pytest.mark.parametrize("scope", ["session", "project", "person"])
async def test_create_pin_says_for_which_conversations_it_is(database: Path, era: str, scope: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="in shop", project="shop", messages=said("Hello."))
        made = await h.facts("create_pin", session_id="in shop", content="The bell rings at six.", scope=scope)
        assert made["pin"]["scope"] == scope
        is_known = {
            project: "The bell" in await h.text("build_context", project=project, query=DINNER)
            for project in ("shop", "personal")
        }
        assert is_known == {"shop": scope != "session", "personal": scope == "person"}


async def test_an_unknown_scope_names_the_three(database: Path, era: str) -> None:
    async with served(database, era) as h:
        refusal = await h.refusal("create_pin", session_id="s", content="x", scope="galaxy")
        assert all(one in refusal for one in ("session", "project", "person"))


async def test_the_scope_of_a_project_without_one_is_refused_with_what_to_do(database: Path, era: str) -> None:
    async with served(database, era) as h:
        refusal = await h.refusal("create_pin", session_id="s", content="x", scope="project")
        assert "needs a project" in refusal
        assert "scope='person' or 'session'" in refusal
        made = await h.facts("create_pin", session_id="s", content="x", scope="session")
        changes = {"scope": "project"}
        refusal = await h.refusal("update_memory", record_id=made["pin"]["id"], changes=changes, expected_revision=1)
        assert "needs a project" in refusal


async def test_a_pin_is_made_lasting_and_back_with_a_history(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="in shop", project="shop", messages=said("Hello."))
        made = await h.facts("create_pin", session_id="in shop", content="The bell rings at six.", scope="session")
        pin = made["pin"]["id"]

        async def is_known(project: str) -> bool:
            return "The bell" in await h.text("build_context", project=project, query=DINNER)

        await h.facts("update_memory", record_id=pin, changes={"scope": "person"}, expected_revision=1)
        assert (await is_known("shop"), await is_known("garden")) == (True, True)
        await h.facts("update_memory", record_id=pin, changes={"scope": "project"}, expected_revision=2)
        assert (await is_known("shop"), await is_known("garden")) == (True, False)
        await h.facts("restore", record_id=pin, version=1)
        assert (await is_known("shop"), await is_known("garden")) == (False, False)
        history = await h.facts("memory_history", record_id=pin)
        assert [one["version"] for one in history["edits"]] == [1, 2, 3, 4]
        assert "scope" in history["edits"][1]["diff_summary"]


async def test_what_is_forgotten_is_no_longer_known_and_what_is_corrected_is_known_corrected(
    database: Path, era: str
) -> None:
    async with served(database, era) as h:
        pin = (await h.facts("create_pin", session_id="november", content=SEAFOOD))["pin"]["id"]
        await h.facts(
            "update_memory", record_id=pin, changes={"text": "The user eats seafood again."}, expected_revision=1
        )
        text = await h.text("build_context", query=DINNER)
        assert "eats seafood again" in text
        assert SEAFOOD not in text
        await h.facts("forget", record_ids=[pin])
        assert "seafood" not in await h.text("build_context", query=DINNER)
        await h.facts("restore", record_id=pin)
        assert "seafood" in await h.text("build_context", query=DINNER)
        await h.facts("forget", record_ids=[pin], purge=True, confirmed=True)
        assert "seafood" not in await h.text("build_context", query=DINNER)


async def test_the_profile_is_a_resource_by_subject(database: Path, era: str) -> None:
    async with served(database, era) as h:
        assert await h.resource("memory://profile") == {"known": [], "pinned_in_a_session": []}
        await h.facts("create_pin", session_id="november", content=SEAFOOD)
        for text in ("We decided to use PostgreSQL.", "Always answer in English."):
            await h.facts("record_messages", session_id="november", messages=said(text))
        await h.settled()
        found = (await h.resource("memory://profile"))["known"]
        assert [(one["subject"], one.get("kind"), one["text"]) for one in found] == [
            ("rules", "rule", "Always answer in English."),
            ("decisions", "decision", "We decided to use PostgreSQL."),
            ("facts", None, SEAFOOD),
        ]
        assert all(one["record_id"] and one["created_at"] for one in found)
