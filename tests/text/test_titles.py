"""A conversation is called by the name that somebody gave it, or by the user's first words."""

from kalito_mcp.text.titles import TITLE_CHARS, is_named, is_short_id, short_id, title_of

UUID = "6513270e-269e-4d37-b2a7-4de452e6b438"
TIMED = "019a8f21-7c3e-7b14-9d2a-1f0c5e7a9b42"
OPENED = "<ide_opened_file>The user opened the file /home/ann/ferry.py in the IDE.</ide_opened_file>"


def test_an_id_that_somebody_chose_is_the_title() -> None:
    for session_id in ("trip-planning", "tax", "conv-26", "meeting-20251120", "Überfahrt", "旅行"):
        assert is_named(session_id)
        assert title_of(session_id, ["Where is the ferry to Oslo?"]) == session_id


def test_an_id_that_a_program_made_is_no_title() -> None:
    for session_id in (
        UUID,
        TIMED,
        f"{UUID}~2",
        "ses_6f2ab0c91ffeKx0J2mWq",
        "20251120_1",
        "1763650000000",
        f"{UUID}~0f9a8b7c",
        "codex-0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c",
    ):
        assert not is_named(session_id)
        assert title_of(session_id, ["Where is the ferry to Oslo?"]) == "Where is the ferry to Oslo?"
        assert title_of(session_id, []) is None


def test_the_title_is_the_first_line_with_words_that_the_user_typed() -> None:
    for texts, title in (
        (["/model opus", "fix the flaky poller test"], "fix the flaky poller test"),
        (["/review", "hi", "why is the build red?"], "why is the build red?"),
        (["/home/ann/ferry.py fails on line 3"], "/home/ann/ferry.py fails on line 3"),
        ([f"{OPENED}\nWhere is it used?"], "Where is it used?"),
        (["<command-name>/clear</command-name>", "rename the module"], "rename the module"),
        (["<system-reminder>never closed", "rename the module"], "rename the module"),
        (["good morning", "hello there"], "good morning"),
        (["```\nTraceback (most recent call last):\n```\nwhat does this mean?"], "what does this mean?"),
        (["# Plan for the week\n\n- call Rute"], "Plan for the week"),
        (["  two\tspaces \n\nand more"], "two spaces"),
        (["直してください、テストが落ちます"], "直してください、テストが落ちます"),
        (["?!", "..."], None),
    ):
        assert title_of(UUID, texts) == title


def test_a_long_title_ends_with_a_word_and_an_ellipsis() -> None:
    title = title_of(UUID, ["add the UPS adapter: same retry policy, and a webhook signature check like GLS"])
    assert title == "add the UPS adapter: same retry policy, and a…"
    for text in ("x" * 90 + " y z", "a b " + "ü" * 90, "one, two, three " * 9):
        found = title_of(UUID, [text])
        assert found is not None
        assert len(found) <= TITLE_CHARS
        assert found.endswith("…")


def test_the_short_id_of_a_uuid_is_its_beginning() -> None:
    assert short_id(UUID) == "6513270e"
    assert short_id(TIMED) == "019a8f21-7c3e"  # eight digits of the time would be those of a whole minute
    assert all(map(is_short_id, ("6513270e", "019a8f21-7c3e")))
    for other in ("trip-planning", "ses_6f2ab0c91ffeKx0J2mWq", f"{UUID}~2"):
        assert short_id(other) == other
        assert not is_short_id(other)
