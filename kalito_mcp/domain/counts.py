"""Numbers of a memory's answers since it was opened. No words and no ids."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Shared by all owners of an opened memory. A silence is a search that found no answer. What hooks put into prompts
    is injected."""

    searches: int = 0
    hits: int = 0
    silences: int = 0
    contexts: int = 0
    context_tokens: int = 0
    injections: int = 0
    injected_tokens: int = 0

    def searched(self, hits: int) -> None:
        """Count a search with this many hits."""
        self.searches += 1
        self.hits += hits
        self.silences += not hits

    def built(self, tokens: int) -> None:
        """Count a context."""
        self.contexts += 1
        self.context_tokens += tokens

    def injected(self, tokens: int) -> None:
        """Count what was put into a prompt, if anything was."""
        self.injections += bool(tokens)
        self.injected_tokens += tokens
