"""The shapes of English texts that tell an assistant what to do, each with its weight. Pure.

A weight of three is enough. A sign that is only ever written to steer a model has it alone. Signs of the same kind
have the same name, and only the heaviest of them counts.
"""

from typing import Final

from kalito_mcp.safety.instruction_signs import (
    AI,
    AI_WORDS,
    DO,
    DUTY,
    GIVEN,
    PERSON,
    PRIVATE,
    RULES,
    SAY,
    UP_TO_2,
    UP_TO_4,
    UP_TO_8,
    sign,
)

ENGLISH: Final = (
    sign(
        "sets earlier instructions aside",
        3,
        "ignore ignoring disregard forget override bypass neglect discard drop overrule follow obey attention "
        "following",
        r"\b(?:ignor(?:e|ing)|disregard|forget|override|bypass|neglect|discard|drop|overrule|stop (?:follow|obey)ing|"
        rf"(?:do not|don't|no longer|never) (?:have to )?(?:follow|obey)) {UP_TO_2}{GIVEN}{UP_TO_2}{RULES}",
        r"\b(?:ignore|disregard|forget|override|neglect) (?:all|any|every|these|those) "
        rf"{UP_TO_2}(?:instructions?|prompts?|rules|guidelines|directions|directives|orders)\b",
        rf"\b(?:ignore|disregard|forget|neglect|follow) {UP_TO_2}{RULES} {UP_TO_2}"
        r"(?:above|before|earlier|given|so far|of your)\b",
        r"\bforget (?:everything|all|anything) (?:you|above|before|that (?:was|you)|i (?:told|said)|said)\b",
        rf"\b(?:ignore|disregard|no attention to|forget) (?:what )?(?:the )?(?:developer|system|{PERSON})",
    ),
    sign(
        "sets the text before it aside",
        2,
        "ignore disregard forget obsolete void cancelled canceled revoked invalid superseded replace everything",
        r"\b(?:ignore|disregard|forget) (?:the |all |everything )*above\b",
        rf"\b{RULES} (?:[^\s.!?]{{1,30}}+\s{{1,3}}+){{0,5}}?"
        r"(?:obsolete|void|cancell?ed|revoked|invalid|superseded)\b",
        r"\beverything above (?:this )?(?:was|is)\b|\bignore the (?:text|question|document|page|rest)\b",
    ),
    sign(
        "speaks of its rules",
        1,
        "rules instructions",
        r"\b(?:rules|instructions) (?:that )?you (?:had|were given|got)\b",
    ),
    sign(
        "says that nothing is checked", 1, "safety", r"\bsafety (?:checks?|filters?|mode) (?:is|are) (?:off|disabled)\b"
    ),
    sign(
        "gives new instructions",
        2,
        "task job instruction instructions orders order rules goal objective role action directive purpose",
        r"\byour (?:(?:new|real|actual|only|true|next|first|main|sole) ){1,2}(?:task|job|instructions?|orders?|rules?|"
        r"goal|objective|role|action|directive|purpose)\b",
        rf"\b(?:new|real|actual) {RULES} ?(?:is|are)? ?:",
        r"\b(?:follow|obey|apply) (?:only )?(?:these|the|this) (?:new|following) (?:instructions?|rules?|orders?)",
        rf"\bnew (?:task|{RULES}) (?:for|from) (?:the |this )?(?:system|{AI})",
    ),
    sign(
        "assigns a role",
        2,
        "now longer pretend imagine act behave play character simulate are terminal",
        rf"\byou are (?:now |no longer |an? |in |the ){{1,2}}{UP_TO_4}"
        rf"(?:dan|twin|mode|shell|terminal|pirate|hacker|persona|{AI})",
        r"\bpretend (?:that )?you(?:'re| are)\b",
        rf"\b(?:imagine (?:that )?you(?:'re| are)|simulate) (?:an? |the )?{UP_TO_2}{AI}",
        r"\byou (?:will|shall|must) (?:now )?play (?:the )?(?:part|role)\b",
        r"\b(?:act|behave) (?:as|like) (?:an? |the |my )"
        rf"{UP_TO_2}(?:terminal|shell|console|interpreter|hacker|administrator|{AI})",
    ),
    sign("stays in character", 1, "character", r"\bstay in character\b"),
    sign("forbids to refuse", 1, "refuse refuses refusal", r"\bnever refuses?\b|\bevery refusal\b"),
    sign(
        "lifts all limits",
        2,
        "restrictions restriction rules limits limitations filter filters ethics policy unrestricted unfiltered "
        "uncensored jailbreak jailbroken anything refuse refuses refusal",
        r"\b(?:no|without|any) (?:any )?(?:restrictions?|rules|limits|limitations|filters?|ethics|content policy)\b",
        r"\bunrestricted\b|\bunfiltered\b|\buncensored\b|\bjailbr(?:eak|oken)\b",
        r"\bcan do anything\b|\bdo anything now\b",
    ),
    sign(
        "switches a mode on",
        1,
        "mode",
        r"\b(?:developer|god|jailbreak|debug|dan|admin|sudo|root|unsafe) mode\b",
    ),
    sign(
        "imitates a turn of the conversation",
        3,
        "im endoftext inst sys system instruction instructions assistant end new",
        r"<\|?(?:im_start|im_end|endoftext|start_header_id|eot_id|system|user|assistant)\|>|\[/?inst\]|<</?sys>>",
        r"</?system(?:[ _-]\w{1,20})?>|^\W{0,3}\[system\]|^ ?#{2,4} ?(?:system|instruction)s?:",
        r"\[new \w{1,12} message\]|^system (?:message|override|alert|notice):",
    ),
    sign(
        "imitates a role",
        2,
        "role system assistant end",
        r"[\"']role[\"'] ?: ?[\"'](?:system|developer)[\"']|^\W{0,3}system ?:|^assistant ?: ?(?:sure|i will|i have)\b",
        r"(?:---|\[)\s?end of (?:\w{1,20} ){0,3}\w{1,20}\s?(?:---|\])",
    ),
    sign(
        "hides from the user",
        3,
        "user human customer reader operator person client tell mention reveal anyone nobody",
        r"\b(?:do not|don't|never|not|without|nor) (?:ever )?(?:tell|mention|inform|reveal|alert|notify|disclose|warn|"
        rf"bring|say)(?:ing)? {UP_TO_4}(?:user|human|reader|operator)s?\b",
        r"\b(?:do not|don't|never|not) (?:ever )?(?:mention|reveal|disclose|tell|repeat) "
        rf"{UP_TO_4}(?:these|this|those|your) (?:note|message|instruction|rule|prompt|text|paragraph)s?\b",
        rf"\b(?:hidden|secret|back) from (?:the |your ){PERSON}",
    ),
    sign(
        "asks for secrecy",
        2,
        "know notice nobody nothing find secret hidden secretly silently quietly",
        rf"\b{PERSON} {UP_TO_4}(?:does not|doesn't|do not|must not|should not|must never) (?:need to )?"
        r"(?:know|find out|learn|notice|be told)\b",
        r"\btell (?:nobody|no one)\b|\bsay nothing about th(?:is|ese)\b|\bsecretly (?:add|send|include|insert)\b",
    ),
    sign("acts in secret", 1, "secretly silently quietly", r"\b(?:secret|silent|quiet)ly\b"),
    sign(
        "speaks to a model",
        3,
        AI_WORDS,
        rf"\bif you(?: are|'re) (?:an? |the )?(?:large )?(?!agent|model){AI}",
        rf"\b{AI} (?:that |who |which )?(?:is |are )?(?:read(?:s|ing)?|process(?:es|ing)|summari[sz](?:es|ing)|"
        r"pars(?:es|ing)|handles|handling|screening) th(?:is|ese)\b",
        rf"\b(?:note|message|instructions?|attention|notice)(?: to| for)? (?:the |any |all )?(?!agent|model){AI} ?"
        r"(?::|that|who)",
        rf"^(?:(?:dear|hey|hi|hello|attention) )?(?:the )?(?!agent|model){AI} ?, (?:please |you |now |always )?"
        rf"(?:never |not |do not |(?:must|should|need to|have to) ){{0,2}}(?:{SAY}|{DO})",
    ),
    sign(
        "names a model",
        2,
        AI_WORDS,
        rf"\b(?:dear|hey|hi|hello|attention|note to|message for|instructions? for) (?:the |any |all )?{AI}",
        rf"\b(?!agent|model){AI} (?:instruction|note|message|reviewers?|agents|screening) ?[:,]?",
        rf"\b(?:as|to|any) (?:an? |the |any |all )?(?!agent|model|assistant){AI}(?: reading|,|:)",
        rf"(?:^|[>(\"#-] ?|(?:<!--|alt=\") ?){AI} ?[,:] ",
    ),
    sign(
        "tells a model its duty",
        2,
        AI_WORDS,
        rf"\b{AI} {DUTY} (?:now |always |never |first |only |not ){{0,2}}(?:{SAY}|{DO})",
    ),
    sign(
        "tells the reader its duty",
        1,
        "must should shall will have need required",
        rf"\byou {DUTY} (?:now |always |never |first |only |not |also ){{0,2}}(?:{SAY}|{DO})",
    ),
    sign(
        "rules every answer",
        2,
        "answer answers reply replies response responses output question questions word",
        r"\byour (?:(?:next|final|first) )?(?:answer|reply|response|output|summary|review)s? (?:must|shall|has to)\b",
        r"\b(?:to|in|with|of|end|begin|at the end of) (?:each|every|all of your|your every) "
        r"(?:answer|reply|response|question|message)s?\b",
        r"\banswers? every(?:thing| question)\b|\b(?:reply|respond|answer) only\b|\b(?:confirm|answer|reply) with the "
        r"(?:word|sentence|phrase)\b",
    ),
    sign(
        "shapes the answer",
        2,
        "response reply answer output token",
        rf"\b(?:start|begin|prepend|prefix|end|append|insert|open|close|beginning|starting) {UP_TO_8}"
        r"(?:your|every|each|all|next|agent) (?:\w{3,6} )?(?:response|reply|answer|output|token)s?\b",
        r"\ball (?:responses|replies|answers) must (?:begin|start|end|include|contain)\b",
        r"\byour (?:first|next) (?:output|token|word|message|response)\b|\boutput the (?:word|token|string|marker)\b",
    ),
    sign(
        "asks to change the answer",
        3,
        "response reply answer output answer's",
        rf"\b(?:add|integrate|include|insert|append|embed) an? {UP_TO_8}(?:in|into|to|at the end of) your "
        r"(?:response|reply|answer|output)\b",
        r"\b(?:translate|encode|encrypt|reverse|convert) your (?:\w{4,8} )?(?:response|reply|answer|output)",
    ),
    sign(
        "mentions a hidden order",
        2,
        "hidden embedded mandatory secret shadow override supersedes",
        r"\b(?:hidden|embedded|mandatory|secret|shadow) (?:instruction|directive|rule|command)s?\b",
        r"\bsupersedes? (?:the |your |all )?(?:system|previous|earlier)\b|\[(?:\w{3,10} )?(?:override|directive)\]",
    ),
    sign(
        "always or never says",
        1,
        "always never only",
        rf"\b(?:always|never|only) (?:be )?(?:{SAY}|{DO}|described|ask|choose|trust)",
    ),
    sign(
        "waits for the user's words",
        2,
        "asks asked says mentions types wants writes hesitates requests appears question want next after",
        rf"\b(?:when(?:ever)?|if|once|as soon as|every time|each time|next time|the moment|until|should) (?:the |an? )?"
        rf"(?:{PERSON}|someone|somebody|anyone|anybody) (?:ever )?"
        r"(?:asks?|says?|mentions?|types|wants?|requests|writes|hesitates)\b",
        r"\b(?:if|when|every time you are) asked\b|\bwhenever a question\b|\bonce the word\b",
        r"\bon the next (?:request|message|turn)\b|\bafter the (?:\w{2,8} )?(?:message|turn|reply|answer)\b",
    ),
    sign(
        "puts words in its mouth",
        1,
        "reply respond answer say tell claim recommend call name quote send write begin insist suggest",
        rf"[,;] (?:then |always )?(?:{SAY}|name|quote|call|send|begin)\b",
        r"\b(?:reply|respond|answer|say|claim|insist|write|(?:tell|reply to) (?:him|her|them|the \w{4,8})) that\b",
    ),
    sign(
        "calls a tool",
        2,
        "tool function invoke action",
        rf"\b(?:call|invoke|use|run|execute|trigger|using) (?:the |your |this |an? ){UP_TO_2}tool\b",
        rf"\binvoke the {UP_TO_2}function\b|\bnext action\b",
    ),
    sign(
        "names a function",
        1,
        "call invoke execute use",
        r"\b(?:call|invoke|execute|use) (?:the )?(?:function )?[`'\"]?[a-z]{2,20}_[a-z]",
    ),
    sign(
        "names a function that acts",
        1,
        "call invoke execute",
        r"\b(?:call|invoke|execute) (?:the )?(?:function )?[`'\"]?(?:send|delete|transfer|remove|grant|wipe)_[a-z]",
    ),
    sign(
        "gives a tool its arguments", 1, "with every", r"\bwith (?:the (?:full|whole|last)\b|\w{1,20}=)|\bfor every\b"
    ),
    sign(
        "comes before the answer",
        2,
        "before step",
        r"\bbefore (?:you )?(?:answer|reply|respond|summari[sz]|process|writ)(?:e|ing)?\b",
        r"\bbefore any (?:other )?(?:response|content)\b|\bbefore anything else\b|\bas (?:a|your) first step\b",
    ),
    sign(
        "runs a command",
        2,
        "curl wget rm execute git terminal shell",
        r"\b(?:curl|wget) [^\n|]{0,120}\| ?(?:sudo )?(?:ba|z)?sh\b",
        r"\b(?:run|execute) [`'\"]?(?:rm -|git push|curl|sudo)",
        r"\bexecute (?:the |this )?(?:attached|following) (?:script|code|command)",
    ),
    sign("runs a command", 1, "run execute paste", r"\b(?:run|execute|paste) (?:the |this|every )"),
    sign("goes to a bare address", 1, "http https", r"https?://(?!127|10\.|0\.|192\.168|172\.)\d{1,3}(?:\.\d{1,3}){3}"),
    sign(
        "goes without asking",
        2,
        "asking confirmation confirmations prompt comment check checks confirmed agreed approve review ask question",
        r"\bwithout (?:asking|(?:any |a |further )?(?:confirmation|prompt|comment|checks))\b",
        r"\b(?:needs?|wants?) no confirmations?\b|\bnever ask\b|\bauto-approve\b|\bdo not ask (?:him|her|the user)\b",
        r"\buser has (?:already )?(?:agreed|confirmed|approved|allowed)\b|\bskip the (?:\S{1,20} )?(?:review|check)\b",
    ),
    sign(
        "claims authority",
        2,
        "admin administrator access rights allowed authorized",
        r"\b(?:user|reader) (?:is|has) (?:an? |the )?(?:admin(?:istrator)?|full access|root)\b|\badmin rights\b",
        r"\bgrant (?:the user |me |every ){0,1}(?:full )?(?:access|request)\b|\badministrator has allowed\b",
    ),
    sign(
        "sends secrets away",
        3,
        "send post forward email upload transmit leak append encode share collect put paste",
        r"\b(?:send|post|forward|e-?mail|upload|transmit|leak|append|encode|share|put|paste) "
        rf"{UP_TO_8}{PRIVATE} {UP_TO_8}(?:https?://|\S{{1,40}}@\S|webhook|(?:to|into|in) (?:the |this )?"
        r"(?:webhook|server|link|address))",
        r"\b(?:send|forward) (?:every|all|each) (?:the )?(?:message|mail|e-?mail)s?",
        rf"\bcollect {UP_TO_4}{PRIVATE} {UP_TO_2}(?:and )?(?:transmit|send)",
    ),
    sign(
        "links with data",
        2,
        "http https",
        r"https?://[^\s]{1,200}?[=/](?:[{<\[]|%7b)[a-z]",
        r"\]\(https?://[^\s)]{1,200}?[?&][a-z]{1,20}=[^\s)]{0,40}(?:prompt|secret|token|password|history)",
    ),
    sign("shows a remote picture", 1, "http https", r"!\[[^\]\n]{0,80}\]\(https?://[^\s)]{1,200}\?"),
    sign(
        "asks to open a link",
        1,
        "https http",
        rf"\b(?:fetch|open|visit|show|render|show it) {UP_TO_4}\S{{0,9}}https?:",
    ),
    sign(
        "asks for the prompt",
        3,
        "reveal print output repeat show leak dump display list prompt instructions credentials message told text",
        r"\b(?:reveal|print|output|repeat|show|leak|dump|display|list|(?:tell|give) me|see|encode|translate|"
        rf"what (?:is|are|were)) {UP_TO_4}(?:your (?:system )?(?:prompt|instructions|message)|"
        r"(?:initial|hidden|secret|stored|system|starting) (?:instructions?|prompt|credentials))\b",
        r"\b(?:print|repeat|output|copy) (?:everything|all|the (?:text|words)) above\b|\bevery secret you\b",
        r"\bmessage that comes before this\b|\b(?:the |all )?instructions (?:that )?you (?:were|have been|are) given\b",
        r"\bwhat (?:were|have) you (?:been )?(?:told|instructed)\b|\btext above in full\b",
    ),
    sign("names a file of secrets", 1, "env", r"(?<!\w)\.env\b(?!\.)"),
    sign("names the system prompt", 1, "prompt", r"\bsystem prompt\b"),
    sign(
        "names where secrets are",
        2,
        "passwd passwords password id_rsa rsa environment env variables variable",
        r"/etc/passwd|\bid_rsa\b|\bprint (?:all |the )?environment variables\b|\b(?:admin|saved) passwords?\b",
        r"\bevery variable you\b",
    ),
    sign(
        "writes itself into memory",
        2,
        "memory remember memorise memorize store rule preference permanently future self",
        rf"\b(?:save|add|store|write|commit|put|record) {UP_TO_4}(?:to|in|into) (?:your |the )?(?:long-term )?memory\b",
        r"\b(?:update|in|into|of) your (?:long-term )?memory\b|\byour future self\b|\bpermanent preference\b",
        r"\bremember (?:that )?(?:you (?:must|should|have to|are)|to always)\b",
        r"\b(?:memori[sz]e|store|keep|save|apply) (?:this|the following|these) (?:rule|instruction)s?\b",
    ),
    sign(
        "reaches into later conversations",
        2,
        "future later subsequent summarised summarized cleared good",
        r"\b(?:all|every|any|in|for) (?:future|later|subsequent) (?:chat|conversation|session|repl|answer|request)",
        r"\b(?:conversation|context|session|chat) is (?:summari[sz]ed|cleared|reset)\b|\bin mind for good\b",
    ),
    sign("asks to last", 1, "permanently forever good always never", r"\bpermanently\b|\bforever\b|\bfor good\b"),
    sign(
        "steers a summary",
        2,
        "summary summaries recap summarising summarizing summariser summarizer condenses summarise summarize",
        r"\b(?:when|while|before) (?:you )?summari[sz]\w{1,3} th(?:is|e)\b|\b(?:in|from) your (?:summary|recap)\b",
        rf"\b(?:summar(?:y|ies)|recap|summari[sz]er|condenses) {UP_TO_4}{DUTY} "
        r"(?:\w{2,8} )?(?:say|include|state|contain|leave|claim|carry|repeat)\b",
        r"\binto every summary\b",
    ),
    sign(
        "asks for exact words",
        1,
        "word sentence unchanged verbatim claim state",
        r"\bword for word\b|\bverbatim\b|\bunchanged\b|\bthe sentence\b|, (?:claim|state|say) that\b|\bsay that\b",
    ),
    sign(
        "steers a judgement",
        2,
        "review stars rank fit best excellent certified applicant request",
        r"\bpositive review only\b|\brank this\b|\bgive this (?:paper|text)\b|\bwith five stars\b",
        r"\bapprove (?:the|this) (?:merge|pull) request\b|\bonly be described\b|\bconclude that this\b",
    ),
    sign("begins a new order", 1, "now here moment", r"\bfrom (?:now|here|this (?:point|moment)) on\b"),
    sign(
        "orders from now on",
        2,
        "now here",
        rf"\bfrom (?:now|here|this point) on,? (?:you\b|always\b|only\b|never\b|{SAY}|{DO})",
    ),
    sign(
        "raises its voice",
        1,
        "important critical urgent attention immediately instead",
        r"\b(?:important|critical|urgent|attention) ?[:!]|\bimmediately (?:execute|call|run)\b",
    ),
    sign(
        "hides in markup",
        1,
        "<!-- display font color opacity hidden [// comment alt",
        r"<!--|display: ?none|font-size: ?0|opacity: ?0|color: ?white|aria-hidden|^\[(?://|comment)\]: ",
        r"<img alt=",
    ),
    sign(
        "asks to decode and obey",
        3,
        "decode base64 rot13 translate solve cipher backwards letter unscramble hex morse",
        rf"\b(?:decode|un-?base64|decipher|unscramble|solve|translate|backwards|letter) {UP_TO_8}"
        r"(?:and |then )(?:follow|do|execute|carry out|obey|act|run|treat)\b",
    ),
    sign(
        "asks to obey a text",
        2,
        "do obey treat whatever",
        r"\bdo what(?:ever)? (?:it|is|they|the \S{1,12}) (?:tells|says|written)|\bobey th(?:e|is)\b|\bas my request\b",
    ),
    sign("destroys", 1, "delete erase wipe", r"\b(?:delete|erase|wipe) (?:all|every|everything|the)\b"),
)
