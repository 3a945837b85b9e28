"""The shapes of English sentences that are worth a pin, in order of importance. Pure.

Patterns read one sentence, in which every apostrophe is `'`. Every repetition in them is bounded, so that any
sentence is read in linear time.
"""

from typing import Final

from kalito_mcp.pins.rules import PinKind, shape


def any_of(words: str) -> str:
    """A pattern for any of the words."""
    return f"(?:{'|'.join(words.split())})"


NAMED: Final = r"(?-i:[A-Z][\w'.-]{0,40})"
LATELY: Final = r"(?: (?:all|both|finally|now|just|also|already|recently|then|mutually))?"
RELATIVES: Final = (
    "mother father mom dad mum parents sister brother son daughter wife husband partner fiance fiancé fiancee fiancée "
    "girlfriend boyfriend aunt uncle cousin niece nephew grandma grandpa grandmother grandfather granddaughter "
    "grandson stepmother stepfather stepson stepdaughter roommate boss manager landlord neighbor neighbour doctor "
    "dentist therapist dog cat puppy kitten rabbit parrot horse"
)
RELATIVE: Final = any_of(RELATIVES)
_STATE: Final = (
    r"(?:lives?|lived|works?|worked|is (?:called|named|an?|the|from|in|\d|getting married|pregnant|moving|retired)|"
    r"was (?:born|named|diagnosed)|has (?:an?|been|\d|two|three|four)|teaches|studies|studied|moved|passed away|died|"
    r"turns|turned|takes|owns|graduated|retired|got married)\b"
)
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
_CLOCK: Final = r"(?:\d{1,2}(?::\d\d)? ?[ap]\.?m\b|\d{1,2}:\d\d\b|noon\b|midnight\b)"
_WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DATE: Final = (
    rf"\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b|\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b|"
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|\b{_WEEKDAY},? (?:\w{{1,12}} ){{0,2}}{_CLOCK}|"
    rf"{_CLOCK} (?:on |next |this )?{_WEEKDAY}\b"
)
_EVENTS: Final = (
    "appointment appointments deadline meeting flight interview exam surgery birthday wedding anniversary launch "
    "launches demo conference checkup check-up dentist doctor dr reservation booked scheduled rescheduled concert "
    "graduation presentation submission expires renewal ceremony recital tournament funeral trial hearing marathon "
    "consultation workshop arrives departs go-live cutover audit"
)
_SYSTEMS: Final = (
    "api app server service database db backend frontend website repo repository cluster endpoint queue cache stack "
    "codebase pipeline container bucket dashboard worker staging production"
)
_FOODS: Final = "dairy gluten lactose nuts peanuts shellfish eggs alcohol caffeine meat sugar"
_VENTURES: Final = (
    "business store shop studio company startup blog channel podcast restaurant practice band farm bakery gym"
)
PROFESSIONS: Final = (
    "engineer developer teacher nurse doctor student manager designer writer lawyer accountant producer architect "
    "scientist researcher programmer consultant chef artist musician freelancer electrician professor analyst"
)
_WORKING_VERBS: Final = (
    "use include provide format add write put run answer reply call commit deploy push ask show give respond explain "
    "mention send check test return assume suggest recommend speak translate round list quote cite store log name keep "
    "load wrap indent sort label sign"
)

_HEALTH: Final = (
    shape(
        PinKind.HEALTH,
        r"\b(?:i'm|i am|we're|we are|he's|she's|is|are|patient) (?:\w{1,12} )?(?<!not )"
        r"(?:allergic to|[\w-]{3,12}[- ]intolerant\b)"
        r"|\b(?:have|has) (?:an? )?(?:[\w-]{1,14} ){0,2}(?:allerg(?:y|ies)|intolerance)\b",
        words="allergic allergy allergies intolerant intolerance",
    ),
    shape(
        PinKind.HEALTH,
        r"\b(?:was|were|been|got|is) (?:just |recently )?diagnosed with \w"
        r"|\b(?:i'm|i am|she's|he's|she is|he is) (?:(?:type \d )?diabetic|asthmatic|celiac|coeliac|pregnant)\b"
        rf"|\b(?:i have|i've got|(?:she|he|{NAMED}|my {RELATIVE}) has) (?:type \d )?"
        r"(?:diabetes|asthma|celiac disease|coeliac disease|epilepsy|a pacemaker)\b",
        words="diagnosed diabetic diabetes asthma asthmatic celiac coeliac epilepsy pregnant pacemaker",
    ),
    shape(
        PinKind.HEALTH,
        rf"\b(?:i|he|she|my {RELATIVE}|{NAMED})(?:'m on| am on| is on| (?:\w{{1,12}} )?takes?|"
        r" (?:was|is) prescribed)\b.{0,80}\d ?(?:mg|mcg|ml|pills|tablets)\b",
        words="mcg ml pills tablets",
        phrase="mg",
    ),
)
_IDENTITY: Final = (
    shape(
        PinKind.IDENTITY,
        r"\bmy (?:(?:full|last|first|middle|real) )?name(?:'s| is) (?!on\b|in\b|not\b|the\b)\w",
        words="name name's",
    ),
    shape(PinKind.IDENTITY, rf"^(?:please |just |you can |everyone ){{0,2}}calls? me {NAMED}", words="call calls"),
    shape(
        PinKind.IDENTITY,
        rf"(?-i:\bI(?:'m| am)) {NAMED}(?: {NAMED})?(?:, (?:and i'm |and i am )?(?:an?|the) \w|,? from {NAMED})",
        opening=r"I(?:'m| am) [A-Z]",
    ),
)
_DECISIONS: Final = (
    shape(
        PinKind.DECISION,
        rf"\bwe(?:'ve| have)?{LATELY} (?:decided|agreed|settled|opted) (?:to|on|that|not|against|for|upon|we)\b"
        rf"|\bwe(?:'ve| have)?{LATELY} cho(?:se|sen) (?!to (?:believe|think))\w",
        words="decided agreed chose chosen settled opted",
    ),
    shape(
        PinKind.DECISION,
        r"\b(?:the|our|final) (?:final )?decision (?:is|was) (?:to|that|not|against|made to)\b|^decision: \w"
        r"|^(?:it's )?(?:decided|agreed): \w|\bit (?:was|is|has been) (?:decided|agreed) (?:to|that|on)\b",
        words="decision decided agreed",
    ),
    shape(
        PinKind.DECISION,
        r"\bwe(?:'ll| will|'re going to| are going to) (?:all )?(?:go with|stick (?:with|to)|switch to|move to|"
        r"migrate to|adopt|drop|deploy (?:to|on)|launch on|release on|postpone|reschedule)\b",
        words="we'll stick switch migrate adopt drop postpone reschedule deploy",
        phrase="go with ",
    ),
    shape(
        PinKind.DECISION,
        rf"\bwe(?:'ve| have)?{LATELY} (?:switched|migrated) from {NAMED} to {NAMED}",
        words="switched migrated",
    ),
)
_OWN_DECISIONS: Final = (
    shape(
        PinKind.DECISION,
        rf"\bi(?:'ve| have)?{LATELY} (?:decided|opted|settled) (?:to|on|that|not|against|for|upon)\b",
        words="decided opted settled",
    ),
    shape(
        PinKind.DECISION,
        r"^let'?s (?:all )?(?:go (?:ahead )?with(?! the flow)|use|stick (?:with|to)|stay with|switch to|"
        r"move to|migrate to|adopt|drop|rename|postpone|settle on) (?!this\b|that\b|these\b|those\b|it\b|them\b)\w",
        words="let's lets",
    ),
)
_CONTACTS: Final = (
    shape(
        PinKind.CONTACT,
        r"\b(?:my|our) (?:[\w-]{1,14} ){0,2}(?:e-?mail|phone|number|address|zip(?: code)?|postcode|"
        r"username|handle|plate|github|extension)(?: address| number)?(?:'s| is|:) (?:at )?\S{0,40}[\d@/]",
        words="email e-mail phone number address zip postcode username handle plate github extension",
    ),
)
_DATES: Final = (
    shape(PinKind.DATE, rf"\b{any_of(_EVENTS)}\b|\bdue (?:on|by|date)\b", words=f"{_EVENTS} due Dr", also=_DATE),
)
_PREFERENCES: Final = (
    shape(
        PinKind.PREFERENCE,
        r"\bi no longer (?:want|like|use|eat|drink) (?!to\b|it\b|that\b|this\b|them\b)\w",
        words="longer",
    ),
    shape(
        PinKind.PREFERENCE,
        rf"\b(?:i|we|my {RELATIVE}|{NAMED})(?:'d| would| do)?(?: \w{{1,10}}ly| much| always)? prefers? "
        r"(?!not to (?:say|talk)|(?:it|that|this)\b)\w",
        words="prefer prefers",
    ),
    shape(
        PinKind.PREFERENCE,
        rf"^(?:please,? )?(?:always|never) (?:{any_of(_WORKING_VERBS)}|make sure)\b(?! up\b| in\b[.!]?$)"
        r"|^please (?:only|do not|don't) (?!worry|hesitate|tell|forget|be|let|go|stop|give up|mix)"
        r"(?!\w+ (?:it|them|this|that|me|us)\b)\w"
        rf"|^(?:please )?(?:don't|do not) (?:ever )?{any_of(_WORKING_VERBS)} (?!it\b|that\b|this\b|up\b|me\b"
        rf"|yourself)\w"
        r"|^(?:please )?avoid (?:using|including|adding|mentioning)\b|^from now on,? \w"
        r"|^(?:please )?(?:remember|note) that (?:i'm|i|we|we're|my|our|the|all|it's)\b",
        words="please Always Never Don't Avoid From Remember Note",
        phrase="Do not ",
    ),
    shape(
        PinKind.PREFERENCE,
        rf"\b(?:i'm|i am|(?:my {RELATIVE}|{NAMED}) is) (?:an? )?(?:strict )?"
        r"(?:vegan|vegetarian|pescatarian|left-handed)\b"
        r"|\bi (?:can't|cannot|don't|do not|never|only) (?:eat|drink) "
        r"(?!it\b|that\b|this\b|them\b|much\b|enough\b|to\b)\w"
        rf"|\bi (?:can't|cannot) have (?:any )?{any_of(_FOODS)}\b"
        r"|\bi (?:can't|cannot) (?:stand|abide|bear|stomach) "
        r"(?!it\b|that\b|this\b|by\b|when\b|to\b|up\b|the thought)\w",
        words=f"vegan vegetarian pescatarian stand abide bear stomach eat drink left-handed {_FOODS}",
    ),
    shape(
        PinKind.PREFERENCE,
        r"\b(?:my|our) (?:all-time )?favou?rites? (?:[\w-]{1,16} ){1,4}(?:is|are) (?!when|that|the way|to|about)\w",
        words="favorite favourite favorites favourites",
    ),
)
_FACTS: Final = (
    shape(
        PinKind.FACT,
        rf"\b(?:my|our) (?:[\w-]{{1,14}} ){{0,2}}{RELATIVE},? {NAMED}(?: {NAMED})?,? "
        rf"(?:(?:who|also|just|now|still) ){{0,2}}{_STATE}"
        rf"|\b(?:my|our) (?:[\w-]{{1,14}} ){{0,2}}{RELATIVE}"
        rf"(?:'s name is| is (?:called|named)| named| called),? {NAMED}"
        r"|\bmy (?:(?:older|younger|big|little|oldest|youngest|elder|late|twin|best) )?"
        rf"{RELATIVE} (?:also |just |now |still )?"
        r"(?:lives|works (?:as|at|for|in)|was born|studies|teaches|moved (?:to|from)|passed away|died|turned \d|"
        r"turns \d|is \d|is from|is an? (?!bit|little|lot|great|good|huge|big|real|true|joy|blessing|gem|handful|star)"
        r"[\w-]{3,})\b",
        words=RELATIVES,
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'ve got| have| got| adopted)(?: just)? (?:an?|two|three|\d) (?:[\w-]{{1,14}} ){{0,3}}"
        rf"(?:named|called) {NAMED}"
        r"|\bi(?:'ve got| have) (?:an? |one |two |three |four |five |six |\d{1,2} )(?:[\w-]{1,14} ){0,2}"
        r"(?:kids|children|sisters?|brothers?|dogs?|cats?|sons?|daughters?|siblings)\b",
        words="kids children sisters brothers dogs cats sons daughters siblings sister brother son daughter dog cat "
        "named called",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'ve| have)?{LATELY} (?:adopted|bought|sold|opened|launched|published|founded|"
        r"inherited|enrolled in|signed up for|graduated (?:from|with)|joined|won|donated|passed|completed) "
        rf"(?:(?:an?|my|our|the|two|three|another) (?!lot|bit|few|door|file|box|call|meeting|time)\w|{NAMED})"
        rf"|\bi(?:'ve| have)?{LATELY} (?:lost|quit|left|started|got|landed) my (?:\w{{1,14}} )?job\b"
        r"|\b(?:i|we)(?:'ve| have|'m|'re| am| are)? (?:just |recently |finally )?(?:got |been |was |were )?"
        r"(?:hired|fired|laid off|promoted|engaged|married|divorced)\b"
        r"|\bi started \w{2,14}ing (?:[\w-]{1,14} ){0,3}(?:\w{2,7}|\d{1,2}) (?:years|months) ago\b"
        r"|\bmy (?:[\w-]{1,14} ){0,3}goal is (?:to )?(?!simple|clear|that)\w",
        words="adopted bought sold opened launched published founded inherited enrolled signed graduated joined won "
        "donated passed completed job hired fired laid promoted engaged married divorced ago goal",
    ),
    shape(
        PinKind.FACT,
        r"\b(?:i'm|i am|we're|we are|i|we)(?:'ve| have)? (?:just |finally |now |recently )?"
        r"(?:started|starting|opened|opening|launched|launching|run|running|own) (?:up )?(?:my|our|an?) (?:own )?"
        rf"(?:[\w-]{{1,16}} ){{0,2}}{any_of(_VENTURES)}\b",
        words=_VENTURES,
    ),
    shape(
        PinKind.FACT,
        r"\b(?:i|we)(?:'ve| have) (?:known|had|worked|played|lived|owned|practiced|run|been (?:\w{3,12}ing|married|"
        r"together|vegan|vegetarian|sober|an?)) (?!for\b|since\b|(?:on |with |at )?(?:it|them|this|that)\b|them\b"
        r"|this\b|that\b|here\b).{0,60}?\b(?:for|since) "
        r"(?:(?:about|over|almost|nearly|around|more than|the (?:last|past)) )?"
        r"(?:(?:\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty) (?:years|months|decades)"
        r"|(?:19|20)\d\d|i was (?:\d|a kid|a child|young|little))",
        words="years months decades",
        opening=r"ince (?:I was|\d)",
    ),
    shape(
        PinKind.FACT,
        rf"\bnamed (?:him|her|it|them) {NAMED}|\b(?:his|her|its|their) names? (?:is|are) {NAMED}"
        rf"|\b(?:i|we) (?:call|called) (?:him|her|them) {NAMED}",
        words="named name names call called",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i'm|i am|we're|we are|i'll be|we'll be) "
        rf"(?:flying|travell?ing|moving|driving|relocating) (?:back )?to (?:the )?{NAMED}",
        words="flying traveling travelling moving driving relocating",
    ),
    shape(
        PinKind.FACT,
        r"\b(?:i|we)(?: currently| now| still| actually)? (?:live|grew up|was born|was raised) (?:in|at|near|on) "
        r"(?!peace|fear|the moment|a world)\w"
        rf"|\b(?:i|we)(?:'ve| have)?{LATELY} moved (?:here |back |away )?(?:to|from|into) (?:the )?{NAMED}"
        rf"|\b(?:i'm|i am|we're|we are) (?:currently |now |still )?living (?:in|near) {NAMED}",
        words="live born grew raised moved living",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i'm|i am|we're|we are) (?:originally )?from {NAMED}",
        words="originally",
        phrase="m from ",
    ),
    shape(
        PinKind.FACT,
        r"\bi(?: currently| now| also| still)? work (?:as (?:an?|the)|at|for) "
        r"(?!it\b|that\b|this\b|them\b|my best|home)\w"
        rf"|\bi(?:'m| am) working (?:as an?|at {NAMED}|for {NAMED})\b"
        rf"|\bi(?:'ve| have)?{LATELY} (?:started|got|landed|accepted) (?:an?|my|the) (?:new )?job (?:as|at|in|with)\b",
        words="job",
        opening=r" work(?:ing)? (?:as|at|for) ",
    ),
    shape(
        PinKind.FACT,
        rf"(?<!like )\bi(?:'m| am) (?:an?|the) (?:[\w/-]{{1,18}} ){{0,4}}{any_of(PROFESSIONS)}\b"
        r"|\bi(?:'m| am| just turned) \d{1,3} years old\b",
        words=PROFESSIONS,
        phrase="years old",
    ),
    shape(
        PinKind.TECHNICAL,
        rf"\b(?:our|my|the) (?:[\w-]{{1,18}} ){{0,3}}{any_of(_SYSTEMS)} (?:\w{{1,12}}ly |now )?"
        r"(?:(?:runs|listens|lives|sits|is (?:hosted|deployed|running|stored|located|written|built|served|backed)) "
        r"(?:on|at|in|with|under|behind|by|from) (?!it\b|that\b|this\b|time\b|the background\b|me\b)\w"
        rf"|uses (?:{NAMED}|`)|is at \S{{0,60}}[/.:\d])",
        words=_SYSTEMS,
    ),
    shape(
        PinKind.TECHNICAL,
        r"\b(?:runs?|running|listens?|listening|is|exposed|served|available) (?:[\w-]{1,12} ){0,2}port \d{2,5}\b",
        words="port",
    ),
    shape(
        PinKind.TECHNICAL,
        r"\bwe(?:'re| are)? (?:currently |now |all )?(?:use|using|run on|deploy(?:ing)? (?:to|on|with)|"
        rf"host(?:ing)? (?:on|with)) (?:an? )?(?:{NAMED}|`)",
        words="using deploy",
        phrase="e use ",
    ),
    shape(
        PinKind.FACT,
        rf"\bi(?:'m| am) using (?P<of>{NAMED}(?: {NAMED})?) (?:version )?v?\d[\w.]{{0,12}}",
        words="using",
        subject="version",
    ),
)
_TERM: Final = (
    r"(?:an? (?:[\w-]{2,24} ){1,3}|the (?:[\w-]{2,24} ){2,3}|(?-i:[A-Z])[\w.+#-]{1,24}(?: [\w.+#-]{1,24}){0,3} "
    r"|[\"“`'][\w .+#-]{2,40}[\"”`'] )"
)
_NO_TERM: Final = (
    r"(?!(?:this|that|it|he|she|there|here|what|my|your|our|his|her|their|they|these|those|one|everything|everyone|"
    r"life|today|i|we|you|another|some|each|every|the (?:only|best|first|next|last|main|most|key|goal|idea|problem|"
    r"issue|reason|point|thing|good|bad|result|answer|rest|other|above|following|code|output|error))\b)"
)
_CONCEPTS: Final = (
    shape(PinKind.CONCEPT, r"^by [\"'“`]?[\w -]{2,40}[\"'”`]?,? we mean\b", phrase="we mean"),
    shape(
        PinKind.CONCEPT,
        rf"^{_NO_TERM}{_TERM}is an? (?!great|good|nice|bit|lot|must|common|valuable|crucial|key|solid|fantastic|"
        r"powerful|perfect|excellent|more|very|big|step|ways?\b)(?:[\w-]{1,18} ){1,5}"
        r"(?:that|which|who|used (?:to|for|in|by))\b",
        phrase=" is a",
    ),
    shape(
        PinKind.CONCEPT,
        rf"^{_NO_TERM}(?:an? |the )?[\w`\"'.+#-]{{2,24}}(?: [\w`\"'.+#-]{{2,24}}){{0,2}} "
        r"(?:refers to|stands for|is short for|is defined as) ",
        words="refers stands short defined",
    ),
)

RULES: Final = (
    *_HEALTH,
    *_IDENTITY,
    *_DECISIONS,
    *_OWN_DECISIONS,
    *_CONTACTS,
    *_DATES,
    *_PREFERENCES,
    *_FACTS,
    *_CONCEPTS,
)
"""In order of importance."""
DECISIONS: Final = _DECISIONS
