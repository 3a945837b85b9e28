"""The shapes of English sentences about somebody's life: home, people, animals, work, body, plans, likes. Pure.

They add to `pins.english`. Each states something that is likely to hold for months; what is felt, asked or done at the
moment has other shapes.
"""

from typing import Final

from kalito_mcp.pins.english import LATELY, NAMED, PROFESSIONS, RELATIVE, RELATIVES, any_of
from kalito_mcp.pins.rules import PinKind, PinRule, shape

_PETS: Final = (
    "dog dogs puppy puppies pup pups cat cats kitten kittens kitty rabbit rabbits bunny hamster hamsters parrot horse "
    "horses turtle turtles tortoise snake snakes lizard gecko fish ferret goldfish chinchilla"
)
_PET: Final = any_of(_PETS)
_BREEDS: Final = "retriever shepherd labrador poodle beagle terrier husky corgi dachshund collie spaniel"
_CLOSEST: Final = any_of(
    "wife husband partner fiance fiancé fiancée girlfriend boyfriend kids children son sons daughter daughters"
)
_BODY: Final = (
    "ankle knee leg arm wrist shoulder back hip foot finger elbow neck nose collarbone rib ribs toe tooth hamstring "
    "achilles acl"
)
_ILLNESSES: Final = (
    "arthritis migraines migraine insomnia anxiety depression adhd autism dyslexia anemia lupus eczema psoriasis "
    "hypertension gastritis tinnitus scoliosis endometriosis ptsd"
)
_PEOPLE: Final = (
    f"{RELATIVES} mom's dad's kids children family friend friends colleague coworker teacher coach mentor accountant "
    "lawyer plumber electrician nanny babysitter vet pediatrician client supervisor teammate"
)
_PERSON: Final = rf"(?:[\w'-]{{1,14}} ){{0,2}}{any_of(_PEOPLE)}"
_ON_DAY: Final = (
    r"(?:\d{1,2}(?:st|nd|rd|th)?\b|(?-i:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|in (?-i:[A-Z])|\d{4}-\d\d)"
)
_NUMBER: Final = r"\+?\d[\d ()./-]{4,16}\d"
_MAKING: Final = (
    "building restoring renovating writing designing developing launching recording training studying learning saving "
    "organizing organising creating opening starting composing knitting refurbishing"
)
_GOALS: Final = (
    r"(?:become|be an?|open|start(?! with| by| over| from)|buy|write|build|run|move to|launch|publish|adopt|win|create"
    r"|own)"
)

HOME: Final[tuple[PinRule, ...]] = (
    shape(
        PinKind.CONTACT,
        r"\b(?:my|our) (?:new |current |home )?address(?: is|:| will be| has changed to) (?=.{0,60}\d)"
        r"|\b(?:i|we)(?: now| currently)? live (?:at|on|in) (?:(?:the|no\.?|number) )?(?:\d+[a-z]? (?-i:[A-Z])"
        r"|(?-i:[A-Z])[\w'. -]{2,40} \d+)"
        r"|\b(?:i|we)(?:'ve| have)?(?: just| now| recently)? moved to (?:\d+[a-z]? (?-i:[A-Z])"
        r"|(?-i:[A-Z])[\w'. -]{2,40} \d+[a-z]?\b(?! (?:days|weeks|months|years)))",
        words="address live moved",
        subject="address",
    ),
    shape(
        PinKind.FACT,
        r"\b(?:i|we)(?: currently| now| still| actually)? live (?:in|near|at) (?!peace|fear|the moment|a world)\w"
        rf"|\b(?:i'm|i am|we're|we are) (?:currently |now |still )?living (?:in|near) {NAMED}",
        words="live living",
        subject="home",
    ),
)
"""Before all others: a newer home replaces the older."""

LIVES: Final[tuple[PinRule, ...]] = (
    shape(
        PinKind.HEALTH,
        r"\b(?:my|our|his|her) epi-?pen\b|\bcarr(?:y|ies) an epi-?pen\b"
        rf"|\b(?:i|he|she|my {RELATIVE}|{NAMED}) (?:can't|cannot|mustn't|must not|isn't allowed to) (?:eat|have"
        rf"|drink|tolerate) "
        r"(?!it\b|that\b|this\b|them\b|to\b|enough\b|much\b|a break\b|both\b)\w",
        words="EpiPen Epi-Pen epipen eat tolerate",
        phrase="cannot have",
    ),
    shape(
        PinKind.HEALTH,
        rf"\bi(?:'ve| have)?{LATELY} (?:broke|broken|sprained|tore|torn|injured|twisted|fractured|dislocated|hurt) "
        rf"(?:my|an?) (?:\w{{1,10}} )?{any_of(_BODY)}\b"
        rf"|\b(?:i|he|she|my {RELATIVE}|{NAMED}) (?:have|has|had|suffers? from"
        rf"|live with) (?:\w{{1,12}} )?{any_of(_ILLNESSES)}\b"
        rf"|\b(?:i|he|she|my {RELATIVE}) (?:had|needs?|am having|is having) (?:an? )?(?:\w{{1,12}} )?surgery\b",
        words=f"{_BODY} {_ILLNESSES} ADHD PTSD ACL surgery",
    ),
    shape(
        PinKind.CONTACT,
        rf"\b(?:my|our|the) {_PERSON}(?:'s| has(?: the)?|,)? .{{0,40}}{_NUMBER}"
        rf"|(?-i:\b[A-Z])[\w'. -]{{1,40}}(?:'s (?:phone |cell |mobile )?number (?:is|:)|has the number"
        rf"|can be reached (?:at|on|under)|is reachable (?:at|on)) {_NUMBER}"
        rf"|\b(?:phone|cell|mobile|number) (?:is|:) {_NUMBER}",
        words="number phone reached reachable mobile cell",
        also=_NUMBER,
    ),
    shape(
        PinKind.DATE,
        rf"\bbirthday(?:'s| is| falls)?(?: on)?(?: the)? {_ON_DAY}|\b(?:was|were) born (?:on|in) {_ON_DAY}"
        rf"|\bbirthday\b.{{0,30}}\b(?:is|on) (?:the )?{_ON_DAY}|\banniversary (?:is|falls) (?:on )?(?:the )?{_ON_DAY}",
        words="birthday birthday's born anniversary",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:my|our) (?:[\w-]{{1,14}} ){{0,2}}(?:boss|manager|supervisor|landlord|landlady|doctor|dentist"
        rf"|therapist|coach|mentor|team lead|teacher|tutor|trainer|instructor|vet|accountant|lawyer|adviser|advisor)"
        rf"(?: is|'s|,)? (?:called |named )?(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?{NAMED}"
        rf"|{NAMED} is (?:my|our) (?:[\w-]{{1,14}} ){{0,2}}{any_of(_PEOPLE)}\b",
        words=_PEOPLE,
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'ve got| have| own| got| adopted| rescued| bought)(?: just| also)? (?:an?|another|two"
        rf"|three|four"
        rf"|some|\d) "
        rf"(?:[\w-]{{1,16}} ){{0,3}}(?:{_PET}|{any_of(_BREEDS)})\b"
        rf"|\b(?:my|our) (?:[\w-]{{1,14}} ){{0,2}}{_PET},? (?:is |are |was )?(?:called |named )?{NAMED}"
        rf"|{NAMED}(?: and {NAMED})? (?:is|are) (?:my|our) (?:[\w-]{{1,14}} ){{0,2}}{_PET}\b",
        words=f"{_PETS} {_BREEDS}",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:my|our) (?:[\w-]{{1,14}} ){{0,2}}{_CLOSEST} "
        r"(?:and i )?(?:is|are|was|were|has|have|got|had|goes|go|plays|play|started|starts|works|loves|turned|just)\b "
        r"(?!so\b|such\b|really\b|been (?:so|very)|always\b|a (?:lot|great)|amazing|awesome|great|happy|excited"
        r"|proud|my\b|the best)\w",
        words="wife husband partner fiancé fiancée fiance girlfriend boyfriend kids children son sons daughter "
        "daughters",
        also=rf"\d|(?<=[a-z,] ){NAMED}|\b(?:school|college|university|job|work|married|engaged|pregnant|allergic"
        r"|doctor|teacher|team|lessons|class)\b",
    ),
    shape(
        PinKind.FACT,
        r"\bi(?:'m| am) (?:an? )?(?:single|divorced|married|engaged|widowed|pregnant|retired|unemployed|self-employed|"
        r"transgender|trans|gay|lesbian|bisexual|jewish|muslim|christian|catholic|buddhist|hindu|veteran|vet of|"
        r"introvert|extrovert|lefty|colou?r-?blind|deaf)\b(?! (?:i|we)\b)"
        r"|\b(?:my|me|myself|i)\b(?:(?! you).){0,40} as an? (?:single|trans|transgender|gay|disabled) (?:mom"
        r"|mother|dad|father|parent|woman|man|person)\b",
        words="single divorced married engaged widowed pregnant retired unemployed self-employed transgender trans gay "
        "lesbian bisexual jewish muslim christian catholic buddhist hindu Jewish Muslim Christian veteran introvert "
        "extrovert color-blind colour-blind colorblind deaf",
    ),
    shape(
        PinKind.FACT,
        rf"\bi(?:'ve| have)?{LATELY} (?:(?:start|begin|began|accept|land|got|get)(?:ed|ing|s)? (?:an? |my "
        rf"|the )?(?:new )?(?:full-time |part-time )?"
        r"(?:job|position|role|internship|apprenticeship)|signed (?:an?|my|the) (?:\w{1,14} )?contract|quit my"
        r"|left my job|retired from)\b"
        rf"|\bi(?:'ll| will)? (?:start|begin|work) (?:work )?(?:at|for|with) {NAMED}|\bi worked (?:as|at|for"
        rf"|in) (?:an? |the )?\w"
        r"|\bi(?: currently| also| now)? (?:teach|coach|manage|run|own) (?:an?|the|my|at|in|[a-z]{3,20}(?: to| at"
        r"| for| in)\b)"
        r"|\bi(?: also| regularly| often| currently)? volunteer(?:ed)? (?:at|for|with|as|in)\b"
        rf"|\bi work(?:ed)? in \w|\bmy (?:job|profession|employer|company|work) (?:is|as) (?!so\b|really\b|very\b"
        rf"|great\b|hard\b|crazy\b|busy\b|keeping\b)\w",
        words="job position role internship contract quit retired teach coach volunteer volunteered worked work "
        "employer profession",
    ),
    shape(
        PinKind.FACT,
        r"\bi(?:'m| am)(?: currently| now| also)? (?:studying|majoring in|enrolled (?:in|at)|doing an? (?:degree"
        r"|phd|masters?)) (?!for (?:my|the|an?) (?:test|exam)|it\b|this\b|that\b)\w"
        r"|\bi(?:'ve| have)? (?:studied (?!hard|for)|majored in|graduated|got into|got accepted (?:to|into)"
        r"|was accepted) \w"
        r"|\b(?:my|an?) (?:\w{1,14} )?(?:degree|major|phd|diploma|certificate|certification) (?:is |was )?(?:in"
        r"|from) \w",
        words="studying studied majoring majored enrolled graduated accepted degree major diploma certificate "
        "certification",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'m|'re| am| are| have been|'ve been)(?: currently| now| also| actually"
        rf"| slowly)? {any_of(_MAKING)} "
        r"(?:for |up )?(?:an? |my |our |the )(?!lot\b|bit\b|few\b|schedule\b|plan\b|list\b|good\b|ropes\b|next\b"
        r"|first\b|day\b|"
        r"conversation\b|topic\b|email\b|function\b|file\b|table\b)\w",
        words=_MAKING,
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'d| would)? (?:(?:always |really |finally )?want(?:ed)?|plan|'m planning|am planning"
        rf"|hope one day|dream(?:ed)? of) "
        rf"to {_GOALS} (?!it\b|that\b|this\b|them\b|there\b|able\b|part of\b|sure\b|more\b)(?:an?|my|our|the|\w{{4,}})"
        r"|\b(?:i'm|i am|we're|we are) (?:planning|going) to (?:become|open|buy|adopt|retire|get married"
        r"|teach|study|join|sell|move (?:to|in|out)|train (?:as|for)"
        r"|launch|publish|run for)\b"
        r"|\b(?:my|our) (?:biggest |ultimate |big |life |lifelong |long-term |main )?(?:dream|ambition"
        r"|aspiration)(?: job| home)? (?:is|has always been|was) \w"
        r"|\bi(?:'m| am) (?:saving (?:up )?for|training for|applying (?:to|for)|running for|thinking of working)\b \w",
        words="plan planning dream dreamed saving training applying ambition aspiration",
        phrase="anted to ",
        opening=r"\b(?:want|going|running) (?:to (?:become|be an?|open|start|buy|adopt|launch|publish"
        "|run for|get married|write|own|create|build|teach|study|join|sell|move|train|retire)|for) ",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'ve| have)?{LATELY} (?:finished|won|ran|completed|got(?= an?\b| my\b| another\b)|made"
        rf"|received|earned|published"
        rf"|released|recorded|wrote|hosted|organi[sz]ed|started|opened|set up|signed) "
        r"(?:(?:an?|my|our|the|his|her|\d+) )?(?:[\w'-]{1,16} ){0,3}(?:award|prize|tournament|marathon"
        r"|half-marathon|race|championship|"
        r"competition|contest|medal|trophy|scholarship|grant|promotion|raise|diploma|certificate|degree"
        r"|endorsement|sponsorship|"
        r"deal|tattoo|novel|screenplay|script|book|album|song|blog|podcast|channel|startup|business|store|shop|studio|"
        r"fundraiser|charity|club|band|garden|ep)\b",
        words="finished won ran completed received earned published released recorded wrote hosted organized "
        "organised promotion "
        "tattoo scholarship award tournament raise degree opened signed started endorsement screenplay script deal",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'ve| have)?{LATELY} (?:went to|visited|travell?ed to|took a trip to|got back from"
        rf"|returned from|"
        rf"been to|flew to|hiked|camped (?:in|at)|went (?:camping|hiking|surfing|skiing|kayaking) (?:in|at|to)) "
        rf"(?:the |a |an )?(?:\w{{1,14}} )?{NAMED}",
        words="visited traveled travelled trip returned flew hiked camped camping hiking",
        phrase="went to ",
        opening=r"\b(?:been to|back from) ",
    ),
    shape(
        PinKind.FACT,
        r"\bi(?:'ve| have)? (?:been )?(?:play|playing|played|paint|painting|dance|dancing|sing|singing|knit"
        r"|knitting|collect|collecting|"
        r"bake|baking|surf|surfing|run|running|climb|climbing|garden|gardening|write|writing|draw|drawing|practice"
        r"|practicing|meditate|cycle|cycling) "
        r"(?!it\b|this\b|that\b|them\b|out\b|into\b|with you\b|around\b|late\b|low\b|for (?:about|over)\b)(?:the "
        r"|in |at |on |as )?\w",
        words="play playing played paint painting dance dancing sing knit collect collecting bake baking surf "
        "surfing climb garden "
        "gardening practice meditate cycle",
        also=r"\b(?:every|each|for (?:\w{1,10} ){0,2}(?:years|months)|since|years|weekly|daily|regularly|hobby"
        r"|instrument|"
        r"guitar|piano|violin|clarinet|drums|flute|saxophone|ukulele|cello|bass|trumpet|team|league|band|choir)\b",
    ),
    shape(
        PinKind.FACT,
        r"\bi(?:'m| am|'ve been| have been|'ve started| started|'ve also started|'m also|'m now|'m currently) "
        r"(?:(?:now|currently|also|started) )?(?:mentoring|coaching|teaching|volunteering|blogging|interning"
        r"|tutoring|fostering"
        r"|(?:taking|attending) (?:\w{1,14} ){0,2}(?:lessons|classes|courses?|workshops?)|learning (?:how )?to \w{3,}"
        r"|learning (?:the |an? )?(?:piano|guitar|violin|drums|(?-i:[A-Z])\w+))\b",
        words="mentoring coaching teaching volunteering blogging interning tutoring fostering taking attending "
        "learning",
    ),
    shape(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'ve| have)?{LATELY} (?:participated in|took part in|attended|went on"
        rf"|signed (?:up )?(?:with )?(?={NAMED})) "
        rf"(?:(?:an?|our|my|the|this) )?(?:[\w'-]{{1,16}} ){{1,3}}"
        rf"(?:trip|cruise|vacation|retreat|honeymoon|tour|hike|conference|workshop|convention|camp|parade|march"
        rf"|event|race|{NAMED})\b"
        r"|\b(?:i|we) (?:were|was) (?:an? )?[\w-]{3,16} for (?:\d{1,2}|two|three|four|five|six|seven|eight|nine"
        r"|ten) years\b"
        r"|\bi(?:'ve| have) always (?:been (?:passionate about|interested in|into|fascinated by|afraid of)|wanted to) "
        r"(?!it\b|that\b|this\b|you\b)\w",
        words="participated attended trip cruise vacation retreat honeymoon tour hike conference workshop convention "
        "passionate interested fascinated wanted years signed",
        phrase="took part",
    ),
    shape(
        PinKind.LIKING,
        r"(?!.*\b(?:that|this|these|those|here|there)\b)(?:^|[,;:–-] |\b(?:and|but|because|since|so|why"
        r"|too) )i(?: really| absolutely| always| also| truly"
        r"| totally)? "
        r"(?:love|enjoy|hate|dislike|adore|can't stand|despise) "
        r"(?:to )?(?!it\b|that\b|this\b|these\b|those\b|them\b|their\b|him\b|his\b|her\b|you\b|your\b|how\b|when\b"
        r"|what\b"
        r"|the\b|its\b|just\b|some\b|not\b|seeing\b|hearing\b|hear\b|see\b|know\b|help\b|have\b|being\b|having\b"
        r"|every\b"
        r"|all\b|everything\b|my\b|our\b|spending\b|sharing\b|talking\b|an?\b|both\b|and\b|getting\b|making\b"
        r"|watching (?:you|them|him|her)\b|learning\b|about\b|where\b|so\b|to\b)"
        r"(?:[\w'-]{3,16})(?: (?:\w[\w'-]*)){0,8}[.!…]?$"
        r"|\bi(?:'m| am) (?:a (?:big|huge|massive) fan of"
        r"|(?:really |super |also )?(?:into|passionate about|afraid of|scared of)) "
        r"(?!it\b|that\b|this\b|them\b|those\b|these\b|you\b|your\b|how\b|what\b|making\b|helping\b|creating\b)\w",
        words="love enjoy hate dislike adore despise fan passionate afraid scared into",
    ),
    shape(
        PinKind.PREFERENCE,
        r"\b(?:i'd|i would) (?:like|want|prefer) you to (?:always|never)\b|\b(?:please )?(?:keep|make) (?:your|all"
        r"|the) (?:answers|replies|responses)\b"
        r"|\b(?:answer|reply|respond|write|explain)(?: to)?(?: me)? (?:briefly|in (?:short|bullet|plain|simple"
        r"|(?-i:[A-Z])\w+))\b.{0,60}\b(?:always|from now on|please|in future|in the future)\b",
        words="answers replies responses answer reply respond Keep always",
    ),
    shape(
        PinKind.FACT,
        r"`[^`]{4,120}`,? (?:finally |now |just )?(?:worked|works|fixed (?:it|the)|solved (?:it|the)"
        r"|did the trick|did it)\b"
        r"|\b(?:fixed|solved|resolved) (?:it|the \w{1,20}(?: \w{1,20})?) (?:with|by|using"
        r"|by running) (?:[\w ]{0,20})?`[^`]{4,120}`",
        words="worked works fixed solved resolved trick",
        phrase="`",
    ),
    shape(
        PinKind.FACT,
        rf"(?<!like )\bi(?:'m| am) (?:an?|the) (?:[\w/-]{{1,18}} ){{0,3}}(?:{any_of(PROFESSIONS)}|vegetarian|runner"
        rf"|gamer|mom|mother|dad|father|parent|widow|widower|twin|"
        r"christian|photographer|dancer|athlete|captain|volunteer|counselor|politician|veteran|filmmaker|novelist"
        r"|screenwriter|baker|singer|pilot|soldier|policeman|firefighter)\b",
        words=f"{PROFESSIONS} runner gamer mom mother dad father parent twin photographer dancer athlete captain "
        "volunteer "
        "counselor veteran filmmaker novelist screenwriter baker singer pilot soldier firefighter",
    ),
)
"""After those of `pins.english`."""
