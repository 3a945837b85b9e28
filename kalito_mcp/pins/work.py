"""The shapes of English sentences that set the rules of a project: what is always or never done, with what, by whom,
where things run. Pure.

They add to `pins.english`. Such a sentence is short and plain, and holds until somebody says otherwise.
"""

from typing import Final

from kalito_mcp.pins.english import NAMED, any_of
from kalito_mcp.pins.rules import PinKind, PinRule, shape

_DONE: Final = (
    "deploy release merge push commit run write ship test store support host log build publish bill charge migrate "
    "back archive version tag review squash rebase lint format name document install cache mock import export do use "
    "update upgrade restart rotate encrypt touch edit change accept take"
)
_DOING: Final = any_of(_DONE)
_ROUTINES: Final = "deploy release merge push ship publish bill charge review migrate restart rotate archive"
_WEEKDAYS: Final = "mondays tuesdays wednesdays thursdays fridays saturdays sundays"
_THING: Final = r"(?!it\b|this\b|that\b|them\b|these\b|those\b|you\b|him\b|her\b|me\b|us\b)[`\w\"'/.+#-]{2,30}"
_NOT_A_THING: Final = (
    r"(?!(?:i|you|he|she|it|we|they|this|that|there|these|those|who|which|what|your|his|her|their|someone|everyone)\b)"
)
_MATTERS: Final = (
    "deploys releases reboots merges prices dates times figures tests commits branches backups migrations amounts keys "
    "logs images tables tasks errors imports exports invoices reviews upgrades restarts numbers units tickets docs "
    "comments deployments secrets passwords credentials metrics"
)
_PLACES: Final = "staging production prod dev host hostname gitlab registry url domain endpoint base dashboard bucket"
_PLACE: Final = (
    r"[`<]?(?:https?://\S|localhost\b|[\w-]{2,40}(?:\.[\w-]{2,30}){1,5}(?::\d+)?(?=[\s`,;.)>]|$)|/[\w/.-]{3,60})"
)

RULES: Final[tuple[PinRule, ...]] = (
    shape(
        PinKind.PREFERENCE,
        r"\brules? (?:for \w[^:]{0,30}|btw|here|now|from now(?: on)?)?\s?:"
        r"|^.{12,400}?[,.;–-] ?(?:that|this)(?:'s| is) (?:my|our|a|the) (?:\w{1,10} )?rule\b"
        r"|\b(?:my|our|one|two|three|house|project) (?:\w{1,10} )?rules?(?: btw| here)?:",
        words="rule rules rule: rules:",
    ),
    shape(
        PinKind.DECISION,
        rf"\bwe {_DOING}(?: \w{{1,14}}){{0,3}}? (?:only|never|always|exclusively)\b"
        rf"|\bwe (?:only|never|always|no longer) (?:\w{{1,12}} )?{_DOING}\b"
        rf"|\b{_THING},? (?:we|i) (?:do|use|run|make|write) only (?:with|in|on|for|by)\b"
        rf"|\bi (?:never|always) (?:{any_of('deploy release merge push commit ship store rebase squash edit touch')}"
        r"|(?:run|write|use|change|test|log) (?:raw|any|a|the|my|our|`|\"))"
        rf"|\bwe {_DOING} (?:on|every) \w{{3,6}}days?\b"
        rf"|\b(?:i|we) {any_of(_ROUTINES)}\b.{{0,30}} (?:every|each|on)(?: other| second)? "
        r"(?:\w{3,6}days?|night|week|month)\b"
        rf"|^(?:and |so |but |the |our |all )?{any_of(_MATTERS)}\b(?!\?).{{0,40}}? (?:only|always|never)\b"
        r"|\banything (?:that|which) .{3,40} (?:only|never|always)\b",
        words="never always only exclusively longer",
        opening=r"\b(?:[wW]e|[iI]) \w+ .{0,30}(?:on|every|each) (?:other |second )?\w{3,6}",
    ),
    shape(
        PinKind.PREFERENCE,
        rf"\b(?:i|we) (?:actually )?(?:use|write|speak|run) {_THING},? (?:and )?not "
        r"(?!(?:yet|it|only|sure|to|for|that|because|very|really|so)\b)\w|\bplease always\b|\balways,? please\b"
        rf"|\balways (?:use )?{_THING},? never {_THING}",
        words="always Always never",
        opening=r"\b[Ii]? ?(?:use|write|speak|run) \S+ not ",
        phrase=", not ",
    ),
    shape(
        PinKind.PREFERENCE,
        r"^(?!(?:this|that|it|these)\b|.*\b(?:use|run|take|do|keep|try) (?:this|that|it|these|those|them|the same)\b)"
        r".{12,400}?,? (?:from (?:now|here|today|this point)(?: on(?:wards?)?)?|going forward)\b"
        r"(?! (?:to|until|till|in|it's|it is|the|a|my|we are|i am)\b)",
        opening=r"\b(?:from (?:now|here|today|this point)|going forward)\b",
    ),
    shape(
        PinKind.DECISION,
        r"^(?:and |so |ok,? |then )?no (?:more )?[\w./+#*`-]{2,24}(?:,? [\w./+#*`-]{1,20}){0,6} "
        r"(?:here any ?more|any ?more (?:in|for|on)|in (?:our|this|the) (?:\w{1,12} )?"
        r"(?:project|repo|code|codebase|reports?|team|company|app|service|pipeline)|for us|outside (?:the )?tests?)\b"
        r"|^(?:and |so )?no [\w./+#*`-]{2,24}(?: [\w./+#*`-]{1,20}){0,3},? .{0,40}\b(?:never|only)\b",
        words="anymore more project repo codebase reports tests never only",
    ),
    shape(
        PinKind.DECISION,
        rf"^(?:and |so |but |also |because )?{_NOT_A_THING}(?:[\w/.'`-]{{1,24}} ){{1,6}}?"
        r"(?:never (?:go|goes|get|gets|leave|leaves|touch|touches) "
        r"|(?:must|have to|has to|needs? to|may|can) (?:never|always|not|only|stay|remain)\b)"
        rf"|^(?:and |so |but |also )?{_NOT_A_THING}(?:[\w/.'`-]{{1,24}} ){{1,6}}?(?:must|have to|has to) be "
        r"(?:kept|stored|deleted|removed|signed|approved|encrypted|logged|reviewed|tested|named|written|in [A-Z]"
        r"|at least|at most|under|below|above|\d)",
        words="must never",
        phrase=" to be ",
        opening=r"\b(?:has to|have to|needs? to|may|can) (?:never|always|only|stay|remain)\b",
    ),
    shape(
        PinKind.PREFERENCE,
        r"\b(?:please|pls|kindly) (?:stick to|refrain from|keep to|always|never|only) (?!it\b|that\b|this\b|them\b)\w"
        r"|\b(?:don't|dont|do not) (?:ever )?use (?!it\b|that\b|this\b|them\b|my\b|your\b|the word)[\w`.]+ \w.{3}"
        r"|\b(?:we shall|i (?:should|would) like (?:us|you) to) (?:use|write|report|round|keep|state|adopt)\b"
        r"|\bmy (?:fav|favou?rite|usual|standard) (?:[\w-]{1,12} ){0,2}(?:cmd|command|query|script|shortcut) is\b"
        r"|^[\w.-]{0,20}\d[\w.-]{0,8} is the (?:only|main|real|official) \w",
        words="please pls kindly Please dont don't cmd command query script shortcut shall only main official",
        phrase=" like us to",
    ),
    shape(
        PinKind.DECISION,
        r"^(?:ok,? |then |so |right,? )?(?-i:[A-Z][\w.+#-]{5,20}) it is(?=\W*$|[,.!;])",
        phrase=" it is",
    ),
    shape(
        PinKind.PREFERENCE,
        r"\bi want (?!to\b|it\b|you\b|him\b|them\b|out\b|some|an? )(?:[\w'`.+#-]{2,20} ){1,6}?"
        r"(?:only|in every|in all|everywhere|not \w|never|without)\b",
        phrase=" want ",
    ),
    shape(
        PinKind.PREFERENCE,
        r"^.{15,400}?[,.;:–-] ?(?:please )?(?:write (?:that|this|it) down|remember (?:that|this|it)"
        r"|keep (?:that|this|it) in mind|don't forget (?:that|this|it))\W*$"
        r"|^(?:please |and |ok,? |so )?(?:remember|note|fyi|for the record): ?\w.{9}",
        words="remember Remember note Note fyi FYI record down forget mind remember: Remember: note: Note:",
        phrase="emember:",
    ),
    shape(
        PinKind.TECHNICAL,
        rf"\b{any_of(_PLACES)}(?: (?!is\b|at\b)\w{{1,14}}){{0,3}} ?(?:is|=|at|:|are|runs on|lives (?:at|on))(?: now)?"
        rf"(?: at| on| self-hosted:?)? {_PLACE}",
        words=f"{_PLACES} API URL GitLab",
    ),
    shape(
        PinKind.TECHNICAL,
        r"\b(?:i|we)(?:'ve| have)? (?:just |now |already |also )?(?:upgraded|updated|migrated|moved|switched)"
        r"(?: \w{1,14}){0,3} to [A-Za-z][\w.@+#-]{0,20} ?v?\d"
        r"|\b(?:i|we)(?:'re| are) (?:now )?on [A-Za-z][\w.+#-]{1,20} v?\d[\d.]*\b|\bis (?:now )?upgraded to v?\d",
        words="upgraded updated migrated moved switched",
        opening=r"[wW]e(?:'re| are) (?:now )?on ",
    ),
    shape(
        PinKind.FACT,
        rf"\b{NAMED} (?:owns|maintains|is responsible for|is in charge of|signs off|approves|looks after|takes care of)"
        r" (?!me\b|it\b|him\b|her\b|us\b|you\b)\w"
        rf"|\b(?:contact(?: person)?|owner|maintainer|reviewer|point of contact)(?: \w{{1,14}}){{0,4}} is {NAMED}",
        words="owns maintains responsible charge signs approves contact owner maintainer reviewer",
        phrase="takes care of",
    ),
    shape(
        PinKind.DECISION,
        r"^.{15,400}?[,;–-] ?(?:it's |that's |so )?(?:decided|settled)\W*$"
        r"|\bwe(?:'ll)? (?:stay|stick) with (?!it\b|this\b|that\b|them\b|you\b|him\b|her\b|our\b)\w"
        r"|\bi(?:'ll)? (?:stay|stick) with [`A-Za-z][\w`.+#-]+ (?:\+|and|for|as|in|instead|over) ",
        words="decided settled stay stick",
    ),
    shape(
        PinKind.DATE,
        rf"\b{any_of(_WEEKDAYS)}(?: (?:evenings?|mornings?|afternoons?|nights?))?,?(?: (?:at|from|before|after))? "
        r"(?:\d|(?:noon|midnight|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b)",
        words=_WEEKDAYS,
        also=r"\b(?:i|i'm|i've|we|my|our|from|until)\b",
    ),
)
"""After those of `pins.english` and `pins.lives`."""
