"""Which rules are tried on whose words. Pure."""

from typing import Final

from kalito_mcp.pins import elsewhere, english, lives, work
from kalito_mcp.pins.rules import PinKind, rule_set

USER_RULES: Final = rule_set((*lives.HOME, *english.RULES, *lives.LIVES, *work.RULES))
"""For users."""

PERSON_RULES: Final = rule_set(tuple(rule for rule in USER_RULES.rules if rule.kind != PinKind.CONCEPT))
"""For a person who takes the assistant's part in a conversation of two."""

ASSISTANT_RULES: Final = rule_set(english.DECISIONS[:1])
"""For assistants: what `we` decided. Their `Decision:` is mostly a heading in a draft."""

SPACED_RULES: Final = rule_set(elsewhere.SPACED_RULES)
"""For people who write another language than English, in words."""

UNSPACED_RULES: Final = rule_set(elsewhere.UNSPACED_RULES)
"""For people who write without spaces."""
