"""Counts in words. Pure."""


def plural(count: int, noun: str) -> str:
    """`1 summary`, `2 summaries`, `2 keys`, `1,000 messages`."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"
