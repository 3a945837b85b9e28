"""The demonstration: its screen as pure functions, its script, and the real command in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.cli.demo import screen as ds
from kalito_mcp.cli.demo.conversation import CONVERSATION, PINS, QUESTIONS, SEARCHES
from tests.server import prepared
from tests.server.wire import COVERED, clean_environment

ROOT = Path(__file__).parents[2]
BUDGET_LINE = re.compile(r"([\d,]+) of ([\d,]+) tokens")
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# Words, wide characters, combining marks, emoji, controls: what a message may hold.
TEXTS = st.text(
    st.sampled_from("ab c\n\t-日本全한é\u0301\u200d🙂\x1b\x07.,…") | st.characters(exclude_categories=["Cs"])
)
WIDTHS = st.integers(ds.MIN_WIDTH, ds.MAX_WIDTH)
TOKENS = st.integers(0, 5000)


def screen(width: int = 80, *, colour: bool = False, glyphs: ds.Glyphs = ds.BLOCKS) -> ds.Screen:
    return ds.Screen(width, colour, glyphs)


def everything(on: ds.Screen, text: str, tokens: int) -> list[str]:
    """One of each thing that the screen can draw."""
    shares = ds.Shares(tokens, tokens // 2, tokens // 3, 1, total=2 * tokens, budget=max(1, 2 * tokens))
    hit = ds.ShownHit(7, text, "Mon 2 March", text, 0.5, is_expected=True)
    return [
        *ds.heading(on, text.replace("\n", " ")),
        *ds.prose(on, text),
        *ds.bubble(on, 9, "Maya", text, is_user=True, max_lines=2),
        *ds.notice(on, on.glyphs.pin, "pinned", text, ds.Tone.PIN),
        *ds.budget_bar(on, shares),
        *ds.hit_list(on, text.replace("\n", " "), [hit], 12.3),
        *ds.framed(on, "the context", text, marks=["a"]),
        *ds.figures_table(on, [("1,234", text)]),
    ]


@given(parts=st.lists(TOKENS, min_size=1, max_size=4), spare=TOKENS, width=st.integers(1, 90))
def test_each_part_of_a_bar_is_within_one_cell_of_its_share_and_all_fill_it(
    parts: list[int], spare: int, width: int
) -> None:
    whole = sum(parts) + spare
    cells = ds.bar_cells(parts, whole, width)
    assert sum(cells) == width
    for part, drawn in zip([*parts, spare], cells, strict=True):
        assert whole == 0 or abs(drawn - part * width / whole) <= 1


@given(text=TEXTS, width=WIDTHS, tokens=TOKENS)
def test_no_line_is_wider_than_the_screen(text: str, width: int, tokens: int) -> None:
    for line in everything(screen(width, colour=True), text, tokens):
        assert ds.text_width(ESCAPES.sub("", line)) <= width


@given(text=TEXTS, tokens=TOKENS)
def test_without_colour_nothing_that_is_drawn_holds_an_escape_code(text: str, tokens: int) -> None:
    assert not any("\x1b" in line or "\n" in line for line in everything(screen(), text, tokens))


@given(text=st.text(st.characters(max_codepoint=126, min_codepoint=32)), tokens=TOKENS)
def test_the_ascii_twin_draws_in_ascii_alone(text: str, tokens: int) -> None:
    for line in everything(screen(glyphs=ds.ASCII), text, tokens):
        assert line.isascii()


@given(text=TEXTS)
def test_colour_changes_nothing_but_the_escape_codes(text: str) -> None:
    plain = everything(screen(), text, 600)
    painted = everything(screen(colour=True), text, 600)
    assert [ESCAPES.sub("", line) for line in painted] == plain


@given(text=TEXTS, width=st.integers(2, 90))
def test_wrapping_fits_the_width_and_loses_no_visible_character(text: str, width: int) -> None:
    lines = ds.wrap(text, width)
    assert all(ds.text_width(line) <= width for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", ds.printable(text))


@given(text=TEXTS, width=st.integers(4, 90), max_lines=st.integers(1, 3))
def test_a_text_that_was_cut_ends_in_the_ellipsis(text: str, width: int, max_lines: int) -> None:
    whole, cut = ds.wrap(text, width), ds.wrap(text, width, max_lines=max_lines)
    assert len(cut) == min(len(whole), max_lines)
    assert cut == whole if len(whole) <= max_lines else cut[-1].endswith("…")
    assert all(ds.text_width(line) <= width for line in cut)


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    widths = {"": 0, "abc": 3, "日本": 4, "e\u0301": 1, "🙂": 2, "a\u200bb": 2}
    assert {text: ds.text_width(text) for text in widths} == widths


def test_clipping_never_splits_a_wide_character() -> None:
    assert ds.clip("日本語", 5) == "日本…"
    assert ds.clip("日本語", 4) == "日…"
    assert ds.clip("日本語", 6) == "日本語"


def test_a_screen_suits_its_terminal() -> None:
    def of(
        columns: int = 80, *, is_terminal: bool = True, no_color: bool = False, encoding: str = "utf-8"
    ) -> ds.Screen:
        return ds.screen_for(columns, is_terminal=is_terminal, no_color=no_color, encoding=encoding)

    assert [of(columns).width for columns in (20, 83, 240)] == [60, 83, 100]
    assert [of().colour, of(no_color=True).colour, of(is_terminal=False).colour] == [True, False, False]
    assert [of(encoding=name).glyphs for name in ("utf-8", "cp1252", "ascii")] == [ds.BLOCKS, ds.ASCII, ds.ASCII]
    assert ds.writable(of(encoding="cp1252"), "jam … 日") == "jam ? ?"
    assert ds.writable(of(), "jam … 日") == "jam … 日"


def test_every_pin_question_and_search_of_the_script_points_at_a_turn_that_says_so() -> None:
    said = {turn.number: turn for turn in CONVERSATION}
    for question in QUESTIONS:
        assert question.fact in said[question.answered_by].text
        assert said[question.turn].role == "user"
        assert said[question.turn + 1].role == "assistant"
    for search in SEARCHES:
        assert search.fact in said[search.turn].text
    assert all(said[pin.turn].role == "user" for pin in PINS)


def run_demo(*options: str, is_fresh: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, its output going to a file."""
    return prepared.run(
        [sys.executable, "-m", "kalito_mcp", "demo", *options],
        is_fresh=is_fresh,
        cwd=ROOT,
        env=clean_environment(**{"COLUMNS": "80", "PYTHONUTF8": "1", **environment}),
        capture_output=True,
        encoding="utf-8",
        timeout=90,
        check=False,
    )


@pytest.fixture(scope="module")
def shown() -> str:
    """What one run of the demonstration prints."""
    run = run_demo(**COVERED)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What one with a small budget prints to an ASCII terminal, and its database."""
    database = tmp_path_factory.mktemp("small") / "kept.db"
    ascii_only = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    run = run_demo("--budget", "500", "--database", str(database), is_fresh=True, **ascii_only, **COVERED)
    assert run.returncode == 0, run.stderr
    return run.stdout, database


def beside_the_conversation(shown: str) -> str:
    """What the server gave back, without the script's own bubbles, on one line."""
    lines = [line.strip("│ ") for line in shown.splitlines() if ds.BLOCKS.bar not in line]
    return " ".join(" ".join(lines).split())


def test_every_answer_is_in_a_context_or_among_the_hits_and_the_demo_says_so(shown: str) -> None:
    given_back = beside_the_conversation(shown)
    assert [one.fact for one in (*QUESTIONS, *SEARCHES) if one.fact not in given_back] == []
    asked = len(QUESTIONS) + len(SEARCHES)
    assert f"{asked} of {asked}" in shown
    assert ds.BLOCKS.no not in shown


def test_no_context_of_the_demo_exceeds_its_budget(shown: str) -> None:
    figures = [(int(used.replace(",", "")), budget) for used, budget in BUDGET_LINE.findall(shown)]
    assert len(figures) > len(QUESTIONS) + 7
    assert all(0 < used <= 1200 and budget == "1,200" for used, budget in figures)


def test_summaries_pins_the_last_context_and_the_next_step_are_shown(shown: str) -> None:
    assert "summary of messages 1 to 15:" in shown
    assert shown.count("Maya pins this:") == len(PINS)
    frame = shown.partition("╭")[2].partition("╰")[0]
    assert PINS[1].content in " ".join(re.sub(r"[│\s]+", " ", frame).split())
    assert shown.rstrip().endswith("kalito-mcp install --import")


def test_piped_output_is_plain_and_fits_eighty_columns(shown: str) -> None:
    assert "\x1b" not in shown
    assert max(map(ds.text_width, shown.splitlines())) <= 80


@pytest.mark.campaign
def test_a_small_budget_holds_too_and_a_named_database_stays(small: tuple[str, Path]) -> None:
    shown, database = small
    figures = [(int(used.replace(",", "")), budget) for used, budget in BUDGET_LINE.findall(shown)]
    assert len(figures) > len(QUESTIONS) + 7
    assert all(0 < used <= 500 and budget == "500" for used, budget in figures)
    assert database.stat().st_size > 0


def test_a_server_that_cannot_start_is_one_sentence_and_exit_1(tmp_path: Path) -> None:
    damaged = tmp_path / "notes.txt"
    damaged.write_text("this is not a database, " * 400)
    run = run_demo("--database", str(damaged), **COVERED)
    assert run.returncode == 1
    assert run.stderr.startswith("kalito-mcp: the demonstration's server failed: ")
    assert len(run.stderr.splitlines()) == 1
    assert damaged.read_text().startswith("this is not a database")


def test_an_ascii_terminal_gets_an_ascii_demonstration(small: tuple[str, Path]) -> None:
    shown, _ = small
    assert shown.isascii()
    assert "[####" in shown
