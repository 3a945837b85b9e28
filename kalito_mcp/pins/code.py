"""Finds the code that somebody will want again, exactly so: it worked, or it is to be kept. Pure.

A person says so of the code in the same message, or of the code in the assistant's answer before it. Code that nobody
confirms is only a proposal.
"""

import re
from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.records import MessageWithImportance, Origin, PinType, Role
from kalito_mcp.pins.found import FoundPin, code_key
from kalito_mcp.pins.rules import IMPORTANCE, PinKind
from kalito_mcp.text.code_blocks import FENCE, CodeBlock, code_blocks
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import cut, split_sentences

_WORKS: Final = lazy(
    r"\b(?:this|that|it|which)(?: one| version| code| query| command| script)?(?: now| finally)? (?:works|worked"
    r"|fixed|solved|did it)\b"
    r"|\b(?:finally|now) (?:works|working|worked)\b|\b(?:is|as|our|my) (?:the |our |my )?final\b(?! (?:question"
    r"|step|thought))"
    r"|\bfinal version\b|\b(?:keep|save|remember|pin) (?:this|the following)\b|\b(?:we|i) (?:decided on|settled on"
    r"|agreed on|always (?:run|use))\b"
    r"|\bfor (?:future|later) reference\b|\b(?:funktioniert|marche|funciona|работает|动作|可以用了|動きました)\b",
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
_COMMANDS: Final = frozenset(("", "sh", "bash", "zsh", "shell", "console", "terminal", "powershell", "sql"))
_MAX_COMMANDS: Final = 6

_IT: Final = (
    r"(?:that|this|it|which|everything|all(?: of (?:it|that|this))?|both"
    r"|(?:that|this|the|your|those|these)(?: [\w.-]+){1,3})"
)
_NOW: Final = r"(?:'s|'ve| is| are| has| have| all| now| finally| just| actually| totally| really| seems to have)*"
_WORKED: Final = (
    r"works?|worked|working|did it|did the (?:trick|job)|does the (?:trick|job)|fixed|fixes|solved|solves|"
    r"sorted|was it|passe[sd]|builds|built|compile[sd]|runs|ran|green|passing|nailed it"
)
_CONFIRMS: Final = lazy(
    rf"\b{_IT}{_NOW} (?:{_WORKED})\b"
    r"|\b(?:works|worked|working|fixed|sorted|solved|passing|builds|compiles) (?:now|fine|perfectly|great|nicely|"
    r"beautifully|like a charm|as expected|(?:on the )?first (?:try|time)|for me|here|locally)\b"
    r"|^\W*(?:\w+\W+){0,3}(?:works|worked|fixed|sorted|solved|all green|all passing)\W*$"
    r"|\b(?:let's|lets|let us|we'll|we will|i'll|i will|please|and|ok|so) (?:just )?"
    r"(?:keep|use|always (?:use|run)|stick (?:with|to)|go with|adopt|standardi[sz]e on|save|pin|remember|ship|merge) "
    r"(?:this|that|it|those|the (?:second|first|last|new|above))\b"
    r"|^\W*(?:keep|save|remember|pin) (?:this|that|it)\b"
    r"|\b(?:this|that|it)(?:'s| is)(?: now)? (?:the|our|my) (?:standard|official|canonical|final|default|way)\b"
    r"|\b(?:funktioniert|klappt|läuft)(?: jetzt| nun)?\b|\bça marche\b|\bfunciona\b|\bработает\b"
    r"|好了|可以了|成功了|动了|動きました|動いた|うまくいきました",
    re.IGNORECASE,
)
_DOUBTS: Final = lazy(
    r"[?？]\s*$|\b(?:not?|never|\w+n't|nor|but|however|except|almost|unless|until|if|whether|would|could|might|"
    r"only (?:on|for|in|when|half|part\w*)|partially|half|nicht|kein\w*|pas|не)\b|没|ません|ない",
    re.IGNORECASE,
)
_MOST_SENTENCES: Final = 4
_LONGEST_CONFIRMING: Final = 1_000
"""Characters. A longer message tells a story of its own."""
_MOST_LINES: Final = 12
_NO_CODE: Final = frozenset(("markdown", "md", "text", "txt", "plaintext", "log", "diff", "csv", "output"))


def own_code(parts: Sequence[tuple[str, CodeBlock | None]], max_chars: int) -> FoundPin | None:
    """The last block of a person's message, if its words say that it works or is final: a definition, or commands."""
    prose = " ".join(text for text, _ in parts)
    blocks = [block for _, block in parts if block]
    if not blocks or not _WORKS().search(prose) or _STILL_BROKEN().search(prose):
        return None
    is_kept = blocks[-1].definitions() or _is_command(blocks[-1])
    return _code_pin(blocks[-1], max_chars) if is_kept else None


def confirmed_code(said: MessageWithImportance, before: MessageWithImportance, max_chars: int) -> FoundPin | None:
    """The code of the assistant's message `before` that the person's message `said`, the next one, confirms."""
    if said.role is not Role.USER or before.role is not Role.ASSISTANT:
        return None
    if max(said.origin.distrust, before.origin.distrust) > Origin.ASSISTANT.distrust or FENCE not in before.text:
        return None
    if FENCE in said.text or len(said.text) > _LONGEST_CONFIRMING or not _confirms(said.text):
        return None
    blocks = [block for _, block in code_blocks(before.text) if block and _is_kept(block)]
    return _code_pin(blocks[0], max_chars) if blocks else None


def _confirms(text: str) -> bool:
    """Whether one of the first sentences says that what was proposed works, or is to be kept."""
    sentences = split_sentences(text.replace("’", "'"))[:_MOST_SENTENCES]
    return any(_CONFIRMS().search(one) and not _DOUBTS().search(one) for one in sentences)


def _is_kept(block: CodeBlock) -> bool:
    return block.language not in _NO_CODE and (len(_lines(block)) <= _MOST_LINES or bool(block.definitions()))


def _is_command(block: CodeBlock) -> bool:
    return block.language in _COMMANDS and 0 < len(_lines(block)) <= _MAX_COMMANDS


def _lines(block: CodeBlock) -> list[str]:
    return [line for line in block.lines if line.strip()]


def _code_pin(block: CodeBlock, max_chars: int) -> FoundPin | None:
    """`python: def parse_date(text):` and as many whole lines after it as fit; None if it may contain a secret."""
    definitions = block.definitions()
    lines = list(block.lines[definitions[0].line :]) if definitions else _lines(block)
    if not lines:
        return None
    content = cut(f"{block.language or 'code'}: {lines[0].strip()}", max_chars)
    for line in lines[1:]:
        if len(content) + 1 + len(line.rstrip()) > max_chars:
            break
        content += f"\n{line.rstrip()}"
    content = content.rstrip()
    if _SECRET_VALUE().search(content):
        return None
    return FoundPin(content, PinType.CODE, IMPORTANCE[PinKind.CODE], code_key(content), PinKind.CODE)
