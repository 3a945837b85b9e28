"""Finds code that somebody will want again verbatim: it worked, or somebody wants to keep it. Pure.

A person says so of the code in the same message, or of the code in the assistant's answer before it, or asks for what
is to be kept. Code that nobody confirms is only a proposal. Code to keep is pinned whatever it is; code that only
worked, if it is a command that may be run again, not one that installs, looks or repairs once.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from kalito_mcp.domain.records import MessageWithImportance, Origin, PinType, Role
from kalito_mcp.pins.found import FoundPin, code_key
from kalito_mcp.text.code_blocks import FENCE, CodeBlock, code_blocks
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import split_sentences

_IT: Final = (
    r"(?:that|this|it|which|everything|all(?: of (?:it|that|this))?|both"
    r"|(?:that|this|the|your|those|these)(?: [\w.-]+){1,3})"
)
_NOW: Final = r"(?:'s|'ve| is| are| has| have| all| now| finally| just| actually| totally| really| seems to have)*"
_WORKED_WORDS: Final = (
    r"works?|worked|working|did it|did the (?:trick|job)|does the (?:trick|job)|fixed|fixes|solved|solves|"
    r"sorted|was it|passe[sd]|builds|built|compile[sd]|runs|ran|green|passing|nailed it"
)
_WORKED: Final = lazy(
    rf"\b{_IT}{_NOW} (?:{_WORKED_WORDS})\b"
    r"|\b(?:works|worked|working|fixed|sorted|solved|passing|builds|compiles) (?:now|fine|well|perfectly|great|"
    r"nicely|beautifully|like a charm|as expected|(?:(?:on|at) )?(?:the )?(?:very )?first (?:try|time|go)"
    r"|for me|here|locally)\b"
    r"|^\W*(?:\w+\W+){0,3}(?:works|worked|fixed|sorted|solved|all green|all passing)\W*$"
    r"|\b(?:funktioniert|klappt|läuft)(?: jetzt| nun)?\b|\bça marche\b|\bfunciona\b|\bработает\b"
    r"|好了|可以了|成功了|动了|動きました|動いた|うまくいきました",
    re.IGNORECASE,
)
_THING: Final = r"(?:command|script|query|snippet|one-?liner|version|function|config|setup|one|line|regex|workflow)"
_THIS: Final = rf"(?:(?:this|that)(?: {_THING})?|it|these|those|them|the (?:same|above|last|new) {_THING})"
_WHENEVER: Final = (
    r"(?:from (?:now|here|today) on|(?:in|for) (?:the )?future|always|going forward|every (?:time|day|night|week|month|"
    r"quarter|year|release|morning)|each (?:time|day|week|month|release)|before (?:every|each)|after (?:every|each)|"
    r"(?:for|at) (?:all|every|each|any|the (?:daily|weekly|monthly|quarterly|yearly))|when(?:ever)? (?:you|we|i)|as is)"
)
_TO_KEEP: Final = lazy(
    rf"\b(?:use|run|take|need|keep to|do) {_THIS}\b[^.?!\n]{{0,60}}\b{_WHENEVER}\b"
    rf"|\b(?:keep|save|remember|pin|bookmark|note(?: down)?|write down) {_THIS}(?=$|\W*$|[,.!;:]| (?:please|command"
    r"|one|for|in(?! mind)|as|somewhere|version|around|handy)\b)"
    r"|\b(?:let's|lets|let us|we'll|we will|i'll|i will|we|please|and|ok|so) (?:just )?"
    r"(?:keep|use|always (?:use|run)|stick (?:with|to)|go with|adopt|standardi[sz]e on|save|pin|remember|ship|merge) "
    r"(?:this|that|it|those|the (?:same|above))(?! (?:to|for now|in mind|as (?:a|an) (?:idea|start|base)))\b"
    rf"|\b(?:this|that|it)(?:'s| is)(?: now)? (?:the|our|my|exactly) (?:new )?(?:\w+ ){{0,2}}(?:standard|official|"
    rf"canonical|final|default|way|{_THING})\b(?:(?= (?:now|to keep|then|from now|for (?:all|every)|i'll|we'll))|\W*$)"
    r"|\bis (?:the|our|my|as) final\b(?! (?:question|step|thought))|\bfinal version\b"
    r"|\b(?:this|that|it)(?:'s| is)(?: now)? (?:the|our|my) (?:new )?[\w.-]{2,30}(?:\.(?:sh|py|ps1|sql|ya?ml|toml|mk)\b"
    r"|, final\b)"
    r"|\bexactly (?:how|what|the way) (?:i|we) (?:want|like|need)(?:ed)?\b"
    r"|\b(?:saved?|put|added|copied|goes|went|in|pasted|committed) (?:this |it |that )?(?:straight )?(?:in(?:to)?|to) "
    r"(?:the|our|my) (?:\w+ )?(?:run-?book|read-?me|wiki|make-?file|justfile|notes|docs|cheat-?sheet|snippets|playbook|"
    r"toolbox|dotfiles|handbook|scripts? folder)\b"
    r"|\bi(?:'ll| will) (?:need|use|want|run|keep|save) (?:this|that|it)\b[^.?!\n]{0,40}\b(?:again|every|after each|"
    r"before each|each)\b"
    rf"|\b(?:we|i) (?:decided on|settled on|agreed on|always (?:run|use)) {_THIS}\b",
    re.IGNORECASE,
)
_THE_COMMAND: Final = lazy(
    r"\bthe (?:\w+ ){0,2}(?:command|script|query|snippet) (?:i|we)(?: always| usually)? (?:use|run)\b"
    r"|\b(?:i|we)(?: always| usually)? (?:use|run|call|start|build|deploy|test) (?:it|this|them|that)?\s?"
    r"(?:like (?:this|so|that)|with(?: this)?|this way)\b"
    r"|\b(?:we|i) (?:decided on|settled on|agreed on|always (?:run|use))\b"
    r"|\b(?:keep|save|remember|pin) (?:this|the following)\b|\bfor (?:future|later) reference\b",
    re.IGNORECASE,
)
_ASKS_TO_KEEP: Final = lazy(
    r"\b(?:write|note|put) (?:it |that |this |them |the \w+ |the \w+ \w+ )?down\b|\bfor the record\b"
    r"|\b(?:give|show|send|write) (?:me )?(?:once more |again )?the (?:full|final|whole|complete) "
    r"(?:thing|command|script|sequence|version|file|query|one)\b|\bthat(?:'s| is) (?:my|our|the) new [\w-]{3,}"
    r"|\bwhat was (?:the|that|our|my) (?:exact |full )?(?:command|query|one-?liner|script)\b",
    re.IGNORECASE,
)
_WORD: Final = lazy(r"[A-Za-z][\w.-]{3,}")
_WHICH: Final = lazy(
    r"\b(?:the |your |option |number |variant |version )?(?:(first|1st|one|1|(?-i:A)|former)|(second|2nd|two|2|(?-i:B))"
    r"|(third|3rd|three|3|(?-i:C)))(?: one| option| version| variant| way| approach| query| command| snippet)?"
    r"(?: please| it is|, please)\b"
    r"|\b(?:go with|take|use|keep|prefer|choose|pick|went with) (?:the |your )?(?:option |number |variant |version )?"
    r"(?:(first|1st|1|(?-i:A)|former)|(second|2nd|2|(?-i:B)|latter)|(third|3rd|3|(?-i:C)))\b(?! \w+ (?:of|in)\b)"
    r"|^\W*(?:\w+\W+){0,2}(?:the )?(?:(first)|(second)|(third)) one(?=\W*$|[,.!;]| (?:please|it is|then|and)\b)",
    re.IGNORECASE,
)
_DOUBTS: Final = lazy(
    r"[?？]\s*$|\b(?:not?|never|\w+n't|nor|but|however|except|almost|unless|until|if|whether|would|could|might|"
    r"only (?:on|for|in|when|half|part\w*)|partially|half|nicht|kein\w*|pas|не)\b|没|ません|ない",
    re.IGNORECASE,
)
_STILL_BROKEN: Final = lazy(
    r"\?\s*$|\b(?:but|however|error|fails?|failing|not working|n't work|doesn't|issue|problem|can you|could you"
    r"|help me|how (?:do|can|to))\b",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = lazy(
    r"\[redacted: |(?:key|token|secret|passw(?:or)?d|credential)\w{0,20}[\"']?\s{0,3}[:=]\s{0,3}[\"'][^\"'\s]{6,}[\"']",
    re.IGNORECASE,
)
_ONCE: Final = lazy(
    r"\s*(?:[$>%]\s+)?(?:sudo\s+)?(?:"
    r"#|export\b|cd\b|ls\b|cat\b|echo\b|which\b|whoami|mkdir\b|touch\b|rm\b|cp\b|mv\b|ln\b|chmod\b|chown\b|kill\b|pkill\b"
    r"|unzip\b|wget\b|ping\b|dig\b|nslookup\b|df\b|free\b|top\b|ps\b|lsof\b|ss\b|head\b|tail\b|grep\b|man\b|source\b"
    r"|(?:apt|apt-get|brew|dnf|yum|choco|winget|snap|gem|rustup|nvm|pyenv|pipx?|pip3|python3? -m pip|conda|poetry|npm"
    r"|pnpm|yarn|bun|uv|cargo|go|dotnet|composer|code|helm|kubectl krew|npx|xcode-select)\s+(?:\S+\s+)?(?:add|install|i"
    r"|init|update|upgrade|remove|uninstall|get|use|new|create|cache|tap|config|pip|freeze|list|show|search)\b"
    r"|git\s+(?:-\S+\s+)*(?:clone|init|reset|rebase|cherry-pick|revert|checkout|switch|restore|rm|filter-\w+|commit|"
    r"stash|merge|remote|config|add|branch|tag|bisect|reflog|show|diff|blame|log|grep|status|push|pull|fetch|mv)\b"
    r"|kubectl\s+(?:-n \S+\s+)?(?:get|describe|logs?|delete|edit|rollout|cordon|uncordon|drain|scale|exec|create|label|"
    r"explain|config)\b"
    r"|docker\s+(?:\w+\s+)?(?:ps|logs|inspect|rm|rmi|stop|kill|pull|prune|images|exec)\b"
    r"|terraform\s+(?:init|import|state|taint|show|output)\b|systemctl\b|journalctl\b|systemd-\w+|crontab\b|mount\b"
    r"|sed\s+-i|hash\b|locale-gen|(?:aws|gcloud|az)\s+.{0,40}\b(?:put|create|delete|set|update)\b"
    r"|(?:Copy|Move|Remove|New|Rename|Get|Set|Test|Install|Start|Stop|Restart|Import)-\w+"
    r"|(?:alter|create|drop|update|delete|insert|truncate|grant|revoke|explain|vacuum|set|analyze|reindex)\b"
    r")",
    re.IGNORECASE,
)
"""A line that is run once, or looks at something."""
_OUTPUT: Final = lazy(
    r"(?i:\b(?:errors?|warning|failed|failure|traceback|exception|refusing|denied|not found|unknown)\b)"
    r"|^\s*at \w+[.(]|^\d{4}-\d\d-\d\d|^\+?\$? ?\w+\|",
    re.MULTILINE,
)
_AGAIN: Final = lazy(
    r"\s*(?:[$>%]\s+)?(?:[A-Z_]+=\S+\s+)*(?:sudo\s+|time\s+|nice(?:\s+-n\s*\d+)?\s+|ionice\s+\S+(?:\s+\d)?\s+){0,3}(?:"
    r"make|just|task|npm (?:run|test|start)|pnpm (?!add|i\b|install|remove|up)|yarn (?!add|remove|install)|npx|bunx"
    r"|bun run|uvx?|poetry run|pipenv run|hatch|tox|nox|pytest|python3? -m|python3? \S+\.py|ruff|mypy"
    r"|cargo (?!add|install|init|new)|go (?:test|build|run|vet)|dotnet (?:test|build|run|publish)|mvn|\./gradlew|gradle"
    r"|\./mvnw|sbt|mix (?!new|deps)|rake|rails|bundle exec|php artisan|composer run|docker compose|docker-compose"
    r"|(?:docker|podman) (?:run|build)|kubectl (?:-n \S+ )?(?:apply|top|port-forward)|helm upgrade"
    r"|terraform (?:plan|apply)|tofu|ansible(?:-playbook)?|fly|flyctl|heroku|vercel|netlify|gcloud|az|gh|adb"
    r"|aws s3 (?:cp|sync)|xcodebuild|fastlane|rsync|rclone|restic|borg|pg_dump|pg_restore|psql|mysqldump|sqlite3|duckdb"
    r"|dbt|\\copy|ssh|scp|lftp|curl|http|ffmpeg|gs|latexmk|pandoc|quarto|Rscript|jupyter|hyperfine|parallel|find|for\b|while\b"
    r"|select|with|copy|tmux|\./|bash \S|sh \S)",
    re.IGNORECASE,
)
"""A line that is part of how somebody works: tests, builds, deploys, copies, queries."""
_SETS_UP: Final = lazy(r"\s*(?:#|cd\b|export\b|set -|source\b|[A-Z_]+=|[})]|done\b|fi\b)")
_COMMANDS: Final = frozenset(("", "sh", "bash", "zsh", "shell", "console", "terminal", "powershell", "sql"))
_SAID_OF_ANY: Final = frozenset(
    "that this with works worked working fixed keep command script query version from after before have first here "
    "it's then them they will when what which just also good great nice perfect thanks need next time code file line "
    "test tests build builds runs".split()
)
_IMPORTANCE: Final = 0.58
_MAX_COMMANDS: Final = 6
_MOST_SENTENCES: Final = 4
_LONGEST_CONFIRMING: Final = 1_000
"""Characters. A longer message tells a story of its own."""
_NO_CODE: Final = frozenset(("markdown", "md", "text", "txt", "plaintext", "log", "diff", "csv", "output"))


def own_code(parts: Sequence[tuple[str, CodeBlock | None]], max_chars: int) -> FoundPin | None:
    """The last block of a person's message, if the sentence before it or those after it say that it works, or is what
    they use or keep."""
    blocks = [block for _, block in parts if block]
    if not blocks or not (blocks[-1].definitions() or _is_command(blocks[-1])):
        return None
    last = max(place for place, (_, block) in enumerate(parts) if block)
    before, after = (
        split_sentences(" ".join(text for text, _ in some).replace("’", "'"))
        for some in (parts[: last + 1], parts[last + 1 :])
    )
    said = before[-1:] + after
    sentences = [one for one in said if not one.rstrip().endswith(("?", "？"))]
    is_kept = any(_TO_KEEP().search(one) or _THE_COMMAND().search(one) for one in sentences)
    works = (
        any(_WORKED().search(one) for one in sentences)
        and not any(_STILL_BROKEN().search(one) for one in said)
        and not (_is_command(blocks[-1]) and _OUTPUT().search("\n".join(blocks[-1].lines)))
    )
    return _code_pin(blocks[-1], max_chars) if is_kept or works else None


def confirmed_code(said: MessageWithImportance, before: MessageWithImportance, max_chars: int) -> FoundPin | None:
    """The code of the assistant's message `before` that the person's message `said`, the next one, confirms."""
    if said.role is not Role.USER or before.role is not Role.ASSISTANT:
        return None
    if max(said.origin.distrust, before.origin.distrust) > Origin.ASSISTANT.distrust or FENCE not in before.text:
        return None
    sentences, has_own = _confirming(said.text)
    blocks = [block for _, block in code_blocks(before.text) if block and block.language not in _NO_CODE]
    chosen = next((place for one in sentences if (place := _place(one)) is not None), None)
    if chosen is not None:
        return _code_pin(blocks[chosen], max_chars) if chosen < len(blocks) else None
    if any(_TO_KEEP().search(one) for one in sentences):
        kept = [block for block in blocks if _is_command(block)] or blocks
        return _code_pin(_named(kept, sentences), max_chars) if kept else None
    if not has_own and any(_WORKED().search(one) for one in sentences):
        again = [block for block in blocks if _is_command(block) and _is_run_again(block)]
        return _code_pin(_named(again, sentences), max_chars) if again else None
    return None


def chooses_code(sentence: str) -> bool:
    """Whether the sentence says which code is meant, or that it is to be kept: nothing that helps without the code."""
    said = sentence.replace("’", "'")
    return _TO_KEEP().search(said) is not None or _place(said) is not None


def asked_code(said: MessageWithImportance, before: MessageWithImportance, max_chars: int) -> FoundPin | None:
    """The commands of the assistant's message `said` that the person asked for in `before` to keep them."""
    if said.role is not Role.ASSISTANT or before.role is not Role.USER or FENCE not in said.text:
        return None
    if max(said.origin.distrust, before.origin.distrust) > Origin.ASSISTANT.distrust:
        return None
    if len(before.text) > _LONGEST_CONFIRMING or not _ASKS_TO_KEEP().search(before.text.replace("’", "'")):
        return None
    blocks = [block for _, block in code_blocks(said.text) if block and _is_command(block)]
    return _code_pin(blocks[0], max_chars) if blocks else None


def subject_of(content: str) -> str:
    """What this code is: the function that it defines, or the command that it runs. Empty if that is unknown. Of
    two automatic pins with the same subject, the newer one holds."""
    language, _, rest = content.partition(": ")
    block = CodeBlock(language, tuple(rest.split("\n")))
    names = block.definitions()
    name = names[0].name if names else _command_of(block)
    return f"{language}: {name}" if name else ""


def _command_of(block: CodeBlock) -> str:
    """The command that the block runs, without its options and operands: `uv run pytest`; empty if that is one word."""
    lines = [line for line in _lines(block) if not _ONCE().match(line)] if _is_command(block) else []
    words = lines[0].split() if lines else []
    named = list(takewhile(lambda word: word.replace("-", "").replace("_", "").isalnum() and word[0] != "-", words))
    if words[1:2] == ["-m"]:
        named = words[:3]
    return " ".join(named[:3]) if len(named) > 1 else ""


def _named(blocks: Sequence[CodeBlock], sentences: Sequence[str]) -> CodeBlock:
    """The block with most of the words of the sentences; of equals the first."""
    words = {word.casefold() for one in sentences for word in _WORD().findall(one)} - _SAID_OF_ANY
    return max(blocks, key=lambda block: sum(word in " ".join(block.lines).casefold() for word in words))


def _confirming(text: str) -> tuple[list[str], bool]:
    """The first sentences without a doubt, and whether code of the person's own follows. The sentence right before it
    is about that code."""
    words, fence, _ = text.partition(FENCE)
    if len(words) > _LONGEST_CONFIRMING:
        return [], bool(fence)
    sentences = split_sentences(words.replace("’", "'"))
    about = sentences[:-1] if fence else sentences
    return [one for one in about[:_MOST_SENTENCES] if not _DOUBTS().search(one)], bool(fence)


def _place(sentence: str) -> int | None:
    """Which of several proposals is chosen, from 0."""
    match = _WHICH().search(sentence)
    if match is None or match.lastindex is None:
        return None
    # Each shape has three groups: one for the first proposal, one for the second, one for the third.
    return (match.lastindex - 1) % 3


def _is_command(block: CodeBlock) -> bool:
    return block.language in _COMMANDS and 0 < len(_lines(block)) <= _MAX_COMMANDS


def _is_run_again(block: CodeBlock) -> bool:
    """Whether it is whole, and part of how somebody works: no line of it is run only once."""
    lines = [line for line in _lines(block) if not _SETS_UP().match(line)]
    if not lines:
        return False
    is_whole = not lines[-1].rstrip().endswith(("then", "do", "{", "(", "\\", "|", "..."))
    begins = [line for line in lines if not line[:1].isspace()]
    return is_whole and any(map(_AGAIN().match, begins)) and not any(map(_ONCE().match, begins))


def _lines(block: CodeBlock) -> list[str]:
    return [line for line in block.lines if line.strip()]


def _code_pin(block: CodeBlock, max_chars: int) -> FoundPin | None:
    """`python: def parse_date(text):` and its other lines; None if it is too long, or may contain a secret."""
    definitions = block.definitions()
    lines = list(block.lines[definitions[0].line :]) if definitions else _lines(block)
    if not lines:
        return None
    content = f"{block.language or 'code'}: " + "\n".join((lines[0].strip(), *(line.rstrip() for line in lines[1:])))
    content = content.rstrip()
    if len(content) > max_chars or _SECRET_VALUE().search(content):
        return None
    return FoundPin(content, PinType.CODE, _IMPORTANCE, code_key(content))
