"""Pairs of queries: similar, different, or equal except for case, punctuation and white space."""

from typing import Final

_LONG: Final = (
    "please remind me again of what we had agreed upon in our last call about the new flat in the old harbour: "
)
_CODE: Final = (
    "the following line of the deployment script fails on the build server and i do not understand why it does: "
)

NUMBERS: Final = [
    (_LONG + "was the rent 1250 a month?", _LONG + "was the rent 1350 a month?"),
    (_LONG + "did they want 2 keys back?", _LONG + "did they want 3 keys back?"),
    (_LONG + "is the deposit 3.5 rents?", _LONG + "is the deposit 35 rents?"),
    (_LONG + "does it have 4 rooms?", _LONG + "does it have 5 rooms?"),
    (_LONG + "is it -5 degrees in winter?", _LONG + "is it 5 degrees in winter?"),
    (_LONG + "is it on floor 11?", _LONG + "is it on floor 111?"),
    (_LONG + "is it 80 m2 large?", _LONG + "is it 90 m2 large?"),
    (_LONG + "was it 10% cheaper?", _LONG + "was it 10 cheaper?"),
]
DATES: Final = [
    (_LONG + "do we move in on 2026-03-04?", _LONG + "do we move in on 2026-04-03?"),
    (_LONG + "is the visit on May 5?", _LONG + "is the visit on May 6?"),
    (_LONG + "is the visit on Monday?", _LONG + "is the visit on Sunday?"),
    (_LONG + "does it begin in June?", _LONG + "does it begin in July?"),
    (_LONG + "was it built in 1998?", _LONG + "was it built in 1989?"),
    (_LONG + "is it at 8 am?", _LONG + "is it at 8 pm?"),
    (_LONG + "is it at 17:30?", _LONG + "is it at 17:45?"),
]
NEGATIONS: Final = [
    (_LONG + "are pets allowed?", _LONG + "are pets not allowed?"),
    (_LONG + "they do want a dog", _LONG + "they don't want a dog"),
    (_LONG + "it has a lift", _LONG + "it has no lift"),
    (_LONG + "it is furnished", _LONG + "it is unfurnished"),
    (_LONG + "we can sublet it", _LONG + "we can't sublet it"),
    (_LONG + "i ever said yes", _LONG + "i never said yes"),
    (_LONG + "it is legal", _LONG + "it is illegal"),
]
ANTONYMS: Final = [
    (_LONG + "is it hot in there?", _LONG + "is it cold in there?"),
    (_LONG + "do we buy it?", _LONG + "do we sell it?"),
    (_LONG + "is it open?", _LONG + "is it shut?"),
    (_LONG + "does the rent go up?", _LONG + "does the rent go down?"),
    (_LONG + "is it on the left?", _LONG + "is it on the right?"),
    (_LONG + "do i send or receive the keys first? send", _LONG + "do i send or receive the keys first? receive"),
    (_LONG + "before the holidays?", _LONG + "after the holidays?"),
]
NAMES: Final = [
    (_LONG + "was it Anna who called?", _LONG + "was it Hanna who called?"),
    (_LONG + "was it Jon who called?", _LONG + "was it John who called?"),
    (_LONG + "did Mr Meier sign?", _LONG + "did Mr Maier sign?"),
    (_LONG + "is it in Oslo?", _LONG + "is it in Bonn?"),
    (_LONG + "is it near Lund?", _LONG + "is it near Lunde?"),
    (_LONG + "is Vattenfall the supplier?", _LONG + "is Wattenfall the supplier?"),
]
CODE: Final = [
    (_CODE + "if (count >= 10) return;", _CODE + "if (count > 10) return;"),
    (_CODE + "git reset --soft HEAD~1", _CODE + "git reset --hard HEAD~1"),
    (_CODE + "x == y", _CODE + "x != y"),
    (_CODE + "rm -r build/tmp", _CODE + "rm -rf build/tmp"),
    (_CODE + "a[i] = b[i + 1]", _CODE + "a[i] = b[i - 1]"),
    (_CODE + "total += price", _CODE + "total -= price"),
    (_CODE + "chmod 644 run.sh", _CODE + "chmod 744 run.sh"),
    (_CODE + "cp .env /srv/app", _CODE + "cp env /srv/app"),
    (_CODE + "import os.path", _CODE + "import ospath"),
]
DIFFERENT: Final = {
    "number": NUMBERS,
    "date": DATES,
    "negation": NEGATIONS,
    "antonym": ANTONYMS,
    "name": NAMES,
    "code": CODE,
}

SAME: Final = [
    ("How do I bake bread?", "how do i bake bread"),
    ("How do I bake bread?", "HOW DO I BAKE BREAD?!"),
    ("How do I bake bread?", "  How  do\tI bake\n\nbread ?"),
    ("How do I bake bread?", "\u201cHow do I bake bread?\u201d"),
    ("What's new, Ann?", "What\u2019s new, Ann"),
    ("Rent: 1,250 a month.", "rent 1,250 a month"),
    ("the ﬁle is missing", "The file is missing..."),
    ("Ｈｅｌｌｏ there", "hello there"),
    ("cafe\u0301 in Oslo", "CAFÉ in oslo"),
    ("well-known places", "well\u2010known places"),
]
