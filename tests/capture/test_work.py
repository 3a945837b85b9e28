"""What is kept of the tools that an assistant used."""

from kalito_mcp.capture.events import ToolUse
from kalito_mcp.capture.work import work_note


def ran(command: str, error: str | None = None) -> ToolUse:
    return ToolUse("Bash", command=command, error=error)


def edited(file: str, error: str | None = None) -> ToolUse:
    return ToolUse("Edit", files=(file,), error=error)


def test_nothing_is_kept_of_what_worked_at_once() -> None:
    assert work_note([ran("make test"), ran("git status")]) == ""
    assert work_note([]) == ""


def test_changed_files_are_named_once() -> None:
    assert work_note([edited("a.py"), edited("b.py"), edited("a.py")]) == "Changed a.py, b.py."


def test_a_failure_is_kept_with_what_fixed_it() -> None:
    note = work_note([ran("pytest -q", "ImportError: foo"), edited("foo.py"), ran("pytest -q")])
    assert note.splitlines() == [
        "Changed foo.py.",
        "`pytest -q` failed: ImportError: foo",
        "What worked then: the same, after changing foo.py",
    ]


def test_another_command_of_the_same_program_is_what_worked() -> None:
    note = work_note([ran("npm test", "missing script"), ran("ls"), ran("npm run test:unit")])
    assert note.splitlines()[-1] == "What worked then: `npm run test:unit`"


def test_what_never_worked_is_kept_alone() -> None:
    assert work_note([ran("make", "no rule"), ran("git log")]) == "`make` failed: no rule"


def test_a_failed_edit_changed_nothing() -> None:
    assert work_note([edited("a.py", "string not found")]) == "Edit a.py failed: string not found"


def test_many_files_and_long_errors_are_cut() -> None:
    note = work_note([*(edited(f"f{place}.py") for place in range(25)), ran("make", "x" * 900 + " undefined symbol")])
    assert "and 5 more files" in note
    assert note.endswith("undefined symbol")
    assert len(note) < 1_000
