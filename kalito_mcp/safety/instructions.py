"""Guesses whether a remembered text addresses the assistant that reads it, and tells it to do something. Pure.

It is a hint: such text of tools, documents and imports is left out of a context unless somebody asks for it. It is
never a defence, and nothing may rely on it. Filters of stored or retrieved text, and models as judges, left 88 % of
the attacks on an assistant's memory working. When memory could not steer tools, none worked on eight of nine models
(arXiv 2605.08442, 5,040 runs). Anyone who knows these signs can write around them. The protection is that remembered
text is quoted as data, with its origin.

Method: weighted signs. A sign that is only ever written to steer a model is enough alone. A sign that is common in
honest prose counts together with others near it.

Measured (`bench/instructions.py`): it finds 93 % of 300 payloads written for this, 90 of the 100 that were set aside
before the weights were chosen, and 76 of 120 that were written later without a look at the signs. False alarms: 4 of
5,192 real messages, 3 of 177 honest notes that look like instructions, two of which quote an attack, none of 60 plain
ones. A note of 120 characters takes 50 microseconds; the slowest million characters found take 0.9 s.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from kalito_mcp.text.lazy_pattern import lazy

_ENOUGH: Final = 3
# Signs in one piece count together. Pieces overlap, so that few signs are cut in two, and any text is read in linear
# time: each repetition in a pattern ends with the piece.
_PIECE_CHARS: Final = 600
_STEP_CHARS: Final = 450

# Text for people does not need these: tags (plane 14), direction overrides, variation selectors in a row, and many
# zero-width characters in a row. The exception is flags such as England's, which are written with tags.
_FLAG: Final = lazy("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
_INVISIBLE: Final = lazy(
    "[\U000e0001-\U000e007f]{3}|[\u202d\u202e]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}|[\u200b-\u200f\u2060-\u2064\ufeff]{8}"
)
_MIXED_SCRIPTS: Final = lazy("[a-z][\u0430-\u0458]|[\u0430-\u0458][a-z]")
_LOOK_ALIKES: Final = str.maketrans("аеорсхуіјѕԁһ", "aeopcxyijsdh")
_SPACED_OUT: Final = lazy(r"\b\w(?:[ .*_-]\w\b){4}")
_BETWEEN_LETTERS: Final = lazy(r"(?<=\b\w)[ .*_-](?=\w\b)")
_DIGIT_IN_WORD: Final = lazy(r"[a-z][0134@$]+[a-z]")
_DIGITS_AS_LETTERS: Final = str.maketrans("0134@$", "oieaas")
_BLOB: Final = lazy(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{24,}+={0,2}")
_WIDE_GAP: Final = lazy(r"\s{2,}")

_BLOCKS: Final = {
    "<2>": r"(?:[^\s.!?]{1,30}+\s{1,3}+){0,2}?",
    "<4>": r"(?:[^\s.!?]{1,30}+\s{1,3}+){0,4}?",
    "<8>": r"(?:[^\s.!?]{1,30}+\s{1,3}+){0,8}?",
    "<RULES>": r"(?:instructions?|prompts?|rules?|guidelines?|guidance|directions?|directives?|orders?|commands?|"
    r"constraints?|polic(?:y|ies)|safeguards?|guardrails?|restrictions?|filters?|training|programming|context)\b",
    "<GIVEN>": r"(?:previous|prior|above|earlier|preceding|initial|original|existing|foregoing|former|system|safety|"
    r"developer|developer's|your|its|hidden)\s",
    "<AI>": r"(?:ais?|ai agents?|ai models?|llms?|language models?|assistants?|chatbots?|bots?|agents?|models?|chatgpt|"
    r"claude|gpt|gemini|copilot|summari[sz]ers?)\b",
    "<PERSON>": r"(?:user|human|customer|reader|operator|visitor|person|client|owner)s?(?:'s)?\b",
    "<SAY>": r"(?:reply|respond|answer|say|state|tell|claim|recommend|suggest|mention|describe|output|print|include|"
    r"insist|confirm|conclude|approve|rate|link)\b",
    "<DO>": r"(?:call|invoke|run|execute|send|e-?mail|forward|open|visit|delete|fetch|obey|follow|ignore|trust|treat|"
    r"begin|refuse|add|set|show|write|skip|stop|mark|disregard|reveal|act)\b",
    "<DUTY>": r"(?:must|shall|should|will|ha(?:s|ve) to|needs? to|(?:is|are) (?:required|ordered|instructed|asked) to)",
    "<PRIVATE>": r"(?:conversations?|chats?|history|messages|memory|memories|keys?|passwords?|credentials?|secrets?|"
    r"tokens?|prompt|user's|notes|contacts|variables|user)\b",
}
"""Shorthands for patterns in `_SIGNS`; a number stands for up to this many words of one sentence."""
_AI_WORDS: Final = (
    "ai,ais,llm,llms,model,models,assistant,assistants,chatbot,chatbots,bot,bots,agent,agents,chatgpt,claude,gpt,gemini,"
    "copilot,summariser,summarizer"
)
_SIGNS: Final = r"""
3 sets earlier instructions aside [ignore,ignoring,disregard,forget,override,bypass,neglect,discard,drop,overrule,
    follow,obey,attention,following,ignoriere,ignorier,ignorieren,vergiss,missachte,befolge,ignorez,oublie,oubliez,
    neglige,ignora,olvida,olvide,descarta,dimentica,trascura,ignora,esqueca,desconsidere,игнорируй,игнорируйте,забудь,
    забудьте,отбрось,следуй,следуйте]: \b(?:ignorier\w{0,3}|vergiss|missachte|befolge (?:nicht|
    keine)) <4>(?:anweisung|instruktion|vorgabe|befehl|regel|richtlinie|systemprompt)\w{0,3}\b|
    \bvergiss alles,? was (?:dir|du|vorher|bisher|ich)\b|\b(?:ignore[sz]?|oublie[sz]?|
    neglige[sz]?) <2>(?:instructions|consignes|regles|directives|ordres) (?:precedente?s|ci-dessus|anterieure?s|
    initiales|recues|du systeme)|\b(?:ignor[ae]|olvid[ae]|descarta) <4>(?:instrucciones|reglas|indicaciones|ordenes|
    directrices) (?:\w+ )?(?:anteriores|previas|iniciales|de arriba|del sistema)|\b(?:ignora|dimentica|
    trascura) <4>(?:istruzioni|regole|indicazioni|direttive) (?:precedenti|di sopra|ricevute|iniziali|del sistema)|
    \b(?:ignor[ae]|esqueca|desconsidere) <4>(?:instrucoes|regras|ordens|diretrizes) (?:anteriores|acima|previas|
    iniciais|do sistema)|\b(?:игнорируй|забудь|отбрось|не следуй)\w{0,2} <4>(?:инструкци|указани|правил|
    команд)\w{0,3}|\b(?:ignor(?:e|ing)|disregard|forget|override|bypass|neglect|discard|drop|overrule|stop (?:follow|
    obey)ing|(?:do not|don't|no longer|never) (?:have to )?(?:follow|obey)) <2><GIVEN><2><RULES>|\b(?:ignore|
    disregard|forget|neglect|follow) <2><RULES> <2>(?:above|before|earlier|given|so far|of your)\b|
    \bforget (?:everything|all|anything) (?:you|above|before|that (?:was|you)|i (?:told|said)|said)\b|\b(?:ignore|
    disregard|no attention to|forget) (?:what )?(?:the )?(?:developer|system|<PERSON>)
3 sets earlier instructions aside []: (?:以前|これまで|上記|前|すべて|全て|今まで|システム).{0,10}(?:指示|命令|ルール|
    規則|プロンプト|設定).{0,6}(?:無視|忘れ|破棄|従わな)
3 waits for the user's words [пользователь]: \b(?:когда|если) пользователь (?:спро|спра|скаж|попро|упомян)
3 orders from now on [maintenant,desormais,ahora,ora,agora]: \ba partir de maintenant,? (?:tu (?:es|dois|reponds)|
    vous (?:etes|devez)|reponds)|\btu es (?:maintenant|desormais)\b|\ba partir de ahora,? (?:debes|tienes que|eres|
    responde)|\bd'ora in poi,? (?:rispondi|sei|devi|dovrai)|\ba partir de agora,? (?:voce|responda|deve)
3 hides from the user [user,human,customer,reader,operator,person,client,tell,mention,reveal,sag]: \b(?:do not|don't|
    never|not|without|nor) (?:ever )?(?:tell|mention|inform|reveal|alert|notify|disclose|warn|bring|
    say)(?:ing)? <4>(?:user|human|reader|operator)s?\b|\b(?:hidden|secret|back) from (?:the |your )<PERSON>
3 hides from the user []: (?:不要|别|勿|不得|不能)(?:告诉|告訴|让|向|通知).{0,4}(?:用户|用戶|使用者|客户)|
    ユーザー?(?:に|へ).{0,10}(?:言わ|伝え|知らせ|教え|話さ)(?:ず|な)
3 asks for the prompt [reveal,print,output,repeat,show,leak,dump,display,list,prompt,instructions,credentials,message,
    systeme,systemprompt]: \b(?:reveal|print|output|repeat|show|leak|dump|display|list|(?:tell|give) me|see|encode|
    translate|what (?:is|are|were)) <4>(?:your (?:system )?(?:prompt|instructions|message)|(?:initial|hidden|secret|
    stored|system|starting) (?:instructions?|prompt|credentials))\b|\bevery secret you\b|
    \bmessage that comes before this\b
3 asks for the prompt []: (?:输出|輸出|显示|透露|打印|告诉我|泄露).{0,8}(?:系统提示|提示词|密码|密钥)
3 imitates a turn of the conversation [im,endoftext,inst,sys,system,instruction,instructions,assistant,end,new]: <\|
    ?(?:im_start|im_end|endoftext|start_header_id|eot_id|system|user|assistant)\|>|\[/?inst\]|<</?sys>>|
    </?system(?:[ _-]\w{1,20})?>|^\W{0,3}\[system\]|^ ?#{2,4} ?(?:system|instruction)s?:|\[new \w{1,12} message\]
3 speaks to a model [<AI>]: \bif you(?: are|'re) (?:an? |the )?(?:large )?(?!agent|model)<AI>|\b<AI> (?:that |who |
    which )?(?:is |are )?(?:read(?:s|ing)?|process(?:es|ing)|summari[sz](?:es|ing)|pars(?:es|ing)|handles|handling|
    screening) th(?:is|ese)\b|\b(?:note|message|instructions?|attention|notice)(?: to| for)? (?:the |any |
    all )?(?!agent|model)<AI> ?(?::|that|who)
3 asks to change the answer [response,reply,answer,output]: \b(?:add|integrate|include|insert|append|
    embed) an? <8>(?:in|into|to|at the end of) your (?:response|reply|answer|output)\b
3 sends secrets away [send,post,forward,email,mail,mails,upload,transmit,leak,append,encode,share,collect,put,paste]:
    \b(?:send|post|
    forward|e-?mail|upload|transmit|leak|append|encode|share|put|paste) <8><PRIVATE> <8>(?:https?://|\S{1,40}@\S|
    webhook|(?:to|into|in) (?:the |this )?(?:webhook|server|link|address))|\b(?:send|forward) (?:every|all|
    each) (?:the )?(?:message|mail|e-?mail)s?|\bcollect <4><PRIVATE> <2>(?:and )?(?:transmit|send)
3 asks to decode and obey [decode,base64,translate,solve,cipher,backwards,letter,unscramble,hex]: \b(?:decode|
    un-?base64|decipher|unscramble|solve|translate|backwards|letter) <8>(?:and |then )(?:follow|do|execute|carry out|
    obey|act|run|treat)\b
2 orders from now on [now,here]: \bfrom (?:now|here|this point) on,? (?:you\b|always\b|only\b|never\b|<SAY>|<DO>)
2 orders from now on []: 你现在是
2 lifts all limits [restrictions,restriction,rules,limits,limitations,filter,filters,ethics,policy,unrestricted,
    unfiltered,uncensored,jailbreak,jailbroken,limite,filtre,filtros,restricciones,limites,filtri,restrizioni,
    restricoes]: \b(?:no|without|any) (?:any )?(?:restrictions?|rules|limits|limitations|filters?|ethics|
    content policy)\b|\bunrestricted\b|\bunfiltered\b|\buncensored\b|\bjailbr(?:eak|oken)\b
2 lifts all limits []: (?:没有|沒有|不受)(?:任何)?(?:限制|规则|規則|约束)
2 sets the text before it aside [ignore,obsolete,void,cancelled,canceled,revoked,invalid,superseded]:
    \b<RULES> (?:[^\s.!?]{1,30}+\s{1,3}+){0,5}?(?:obsolete|void|cancell?ed|revoked|invalid|superseded)\b|
    \bignore the (?:text|question|document|page|rest)\b
2 gives new instructions [instruction,instructions,orders,order,rules,directive]: \b(?:new|real|
    actual) <RULES> ?(?:is|are)? ?:|\b(?:follow|obey|apply) (?:only )?(?:these|the|this) (?:new|
    following) (?:instructions?|rules?|orders?)
2 assigns a role [now,longer,pretend,act,behave,play,are,terminal]: \byou are (?:now |no longer |an? |in |
    the ){1,2}<4>(?:dan|twin|mode|shell|terminal|pirate|hacker|persona|<AI>)|\bpretend (?:that )?you(?:'re| are)\b|
    \byou (?:will|shall|must) (?:now )?play (?:the )?(?:part|role)\b|\b(?:act|behave) (?:as|like) (?:an? |the |
    my )<2>(?:terminal|shell|console|interpreter|hacker|administrator|<AI>)
2 imitates a role [role,system]: [\"']role[\"'] ?: ?[\"'](?:system|developer)[\"']|^\W{0,3}system ?:
2 asks for secrecy [know,notice,nobody,find]: \b<PERSON> <4>(?:does not|doesn't|do not|must not|should not|
    must never) (?:need to )?(?:know|find out|learn|notice|be told)\b|\btell (?:nobody|no one)\b
2 names a model [<AI>]: \b(?:dear|hey|hi|hello|attention|note to|message for|instructions? for) (?:the |any |
    all )?<AI>|\b(?!agent|model)<AI> (?:instruction|note|message|reviewers?|agents|screening) ?[:,]?|\b(?:as|to|
    any) (?:an? |the |any |all )?(?!agent|model|assistant)<AI>(?: reading|,|:)|(?:^|[>(\"#-] ?|(?:<!--|
    alt=\") ?)<AI> ?[,:]\s
2 tells a model its duty [<AI>]: \b<AI> <DUTY> (?:now |always |never |first |only |not ){0,2}(?:<SAY>|<DO>)
2 rules every answer [answer,answers,reply,replies,response,responses,question,questions,word]: \b(?:to|in|with|of|
    end|begin|at the end of) (?:each|every|all of your|your every) (?:answer|reply|response|question|message)s?\b|
    \banswers? every(?:thing| question)\b|\b(?:confirm|answer|reply) with the (?:word|sentence|phrase)\b
2 waits for the user's words [asks,once,asked,says,mentions,types,wants,writes,hesitates,requests,question,want,next,
    after]: \b(?:when(?:ever)?|if|once|as soon as|every time|each time|next time|the moment|until|should) (?:the |
    an? )?(?:<PERSON>|someone|somebody|anyone|anybody) (?:ever )?(?:asks?|says?|mentions?|types|wants?|requests|
    writes|hesitates)\b|\b(?:if|when|every time you are) asked\b|\bwhenever a question\b|\bonce the word\b|
    \bafter the (?:\w{2,8} )?(?:message|turn|reply|answer)\b
2 calls a tool [tool,invoke,action]: \b(?:call|invoke|use|run|execute|trigger|using) (?:the |your |this |
    an? )<2>tool\b|\bnext action\b
2 comes before the answer [before,step]: \bbefore (?:you )?(?:answer|reply|respond|summari[sz]|process|writ)(?:e|
    ing)?\b|\bas (?:a|your) first step\b
2 runs a command [curl,wget,rm,execute,git]: \b(?:curl|wget) [^\n|]{0,120}\| ?(?:sudo )?(?:ba|z)?sh\b|\b(?:run|
    execute) [`'\"]?(?:rm -|git push|curl|sudo)
2 goes without asking [asking,confirmation,confirmations,prompt,comment,check,checks,confirmed,review,ask]:
    \bwithout (?:asking|(?:any |a |further )?(?:confirmation|prompt|comment|checks))\b|\b(?:needs?|
    wants?) no confirmations?\b|\bdo not ask (?:him|her|the user)\b|\bskip the (?:\S{1,20} )?(?:review|check)\b
2 claims authority [admin,administrator,access]: \b(?:user|reader) (?:is|has) (?:an? |the )?(?:admin(?:istrator)?|
    full access|root)\b|\bgrant (?:the user |me |every ){0,1}(?:full )?(?:access|request)\b
2 links with data [http,https]: https?://[^\s]{1,200}?[=/](?:[{<\[]|%7b)[a-z]|
    \]\(https?://[^\s)]{1,200}?[?&][a-z]{1,20}=[^\s)]{0,40}(?:prompt|secret|token|password|history)
2 names where secrets are [passwd,passwords,password,id,rsa,variables,variable]: /etc/passwd|\bid_rsa\b|\b(?:admin|
    saved) passwords?\b|\bevery variable you\b
2 writes itself into memory [memory,remember,memorise,memorize,store,rule,preference,permanently,future,self]:
    \b(?:save|add|store|write|commit|put|record) <4>(?:to|in|into) (?:your |the )?(?:long-term )?memory\b|\b(?:update|
    in|into|of) your (?:long-term )?memory\b|\byour future self\b|\bpermanent preference\b|
    \bremember (?:that )?(?:you (?:must|should|have to|are)|to always)\b|\b(?:memori[sz]e|store|keep|save|
    apply) (?:this|the following|these) (?:rule|instruction)s?\b
2 reaches into later conversations [future,later,subsequent,summarised,summarized,cleared,good]: \b(?:all|every|any|
    in|for) (?:future|later|subsequent) (?:chat|conversation|session|repl|answer|request)|\b(?:conversation|context|
    session|chat) is (?:summari[sz]ed|cleared|reset)\b|\bin mind for good\b
2 steers a summary [summary,summaries,recap,summarising,summarizing,summariser,summarizer,condenses,summarise,
    summarize]: \b(?:when|while|before) (?:you )?summari[sz]\w{1,3} th(?:is|e)\b|\b(?:in|from) your (?:summary|
    recap)\b|\b(?:summar(?:y|ies)|recap|summari[sz]er|condenses) <4><DUTY> (?:\w{2,8} )?(?:say|include|state|contain|
    leave|claim|carry|repeat)\b|\binto every summary\b
2 steers a judgement [review,conclude]: \bpositive review only\b|\bconclude that this\b
2 asks to obey a text [do,whatever]: \bdo what(?:ever)? (?:it|is|they|the \S{1,12}) (?:tells|says|written)
1 speaks of its rules [rules,instructions]: \b(?:rules|instructions) (?:that )?you (?:had|were given|got)\b
1 says that nothing is checked [safety]: \bsafety (?:checks?|filters?|mode) (?:is|are) (?:off|disabled)\b
1 stays in character [character]: \bstay in character\b
1 forbids to refuse [refuse,refuses,refusal]: \bevery refusal\b
1 acts in secret [secretly,silently,quietly]: \b(?:secret|silent|quiet)ly\b
1 tells the reader its duty [must,have,has,should,shall,will,need,required]:
    \byou <DUTY> (?:now |always |never |first |only |not |also ){0,2}(?:<SAY>|<DO>)
1 always or never says [always,never,only]: \b(?:always|never|only) (?:be )?(?:<SAY>|<DO>|described|ask|choose|trust)
1 puts words in its mouth [reply,state,respond,answer,say,tell,claim,recommend,call,name,quote,send,write,begin,insist,
    suggest]: [,;] (?:then |always )?(?:<SAY>|name|quote|call|send|begin)\b|\b(?:reply|respond|answer|say|claim|
    insist|write|(?:tell|reply to) (?:him|her|them|the \w{4,8})) that\b
1 names a function [call,invoke,execute,use]: \b(?:call|invoke|execute|
    use) (?:the )?(?:function )?[`'\"]?[a-z]{2,20}_[a-z]
1 names a function that acts [call,invoke,execute]: \b(?:call|invoke|execute) (?:the )?(?:function )?[`'\"]?(?:send|
    delete|transfer|remove|grant|wipe)_[a-z]
1 gives a tool its arguments [with,every]: \bwith (?:the (?:full|whole|last)\b|\w{1,20}=)|\bfor every\b
1 runs a command [run,execute,paste]: \b(?:run|execute|paste) (?:the |this|every )
1 goes to a bare address [http,https]: https?://(?!127|10\.|0\.|192\.168|172\.)\d{1,3}(?:\.\d{1,3}){3}
1 shows a remote picture [http,https]: !\[[^\]\n]{0,80}\]\(https?://[^\s)]{1,200}\?
1 asks to open a link [https,http]: \b(?:fetch|open|visit|show|render|show it) <4>\S{0,9}https?:
1 names a file of secrets [env]: (?<!\w)\.env\b(?!\.)
1 asks to last [permanently]: \bpermanently\b
1 asks for exact words [word,sentence,unchanged]: \bword for word\b|\bunchanged\b|\bthe sentence\b
1 begins a new order [now,here,moment]: \bfrom (?:now|here|this (?:point|moment)) on\b
1 hides in markup []: <!--|font-size: ?0
1 destroys [delete,erase,wipe]: \b(?:delete|erase|wipe) (?:all|every|everything|the)\b
"""
"""Weight, name, words and pattern of each sign, continued on indented lines. Of signs with one name the heaviest
counts, once. A sign is tried on texts with one of its words, or without words on every text.

Patterns read lower case without Latin accents. A space also matches a line end: texts are wrapped anywhere."""
_SPACES: Final = {code: " " for code in range(128) if not chr(code).isalnum()}


def is_instruction_like(text: str) -> bool:
    """Whether the text seems to tell an assistant what to do. Empty text does not.

    It is also read with look-alikes, spacing, digits for letters and base64 undone.
    """
    if not text.isascii() and _INVISIBLE().search(_FLAG().sub("", text)):
        return True
    starts = range(0, max(len(text) - _PIECE_CHARS + _STEP_CHARS, 1), _STEP_CHARS)
    return any(_has_enough(reading) for start in starts for reading in _readings(text[start : start + _PIECE_CHARS]))


def _readings(piece: str) -> Iterator[str]:
    """The piece as it is, with each disguise of letters undone, and what it contains as base64."""
    plain = folded(piece)
    yield plain
    if not plain.isascii() and _MIXED_SCRIPTS().search(plain):
        yield plain.translate(_LOOK_ALIKES)
    if _SPACED_OUT().search(plain):
        yield _BETWEEN_LETTERS().sub("", plain)
    if _DIGIT_IN_WORD().search(plain):
        yield plain.translate(_DIGITS_AS_LETTERS)
    for blob in _BLOB().findall(piece):
        digits = blob.rstrip("=")
        try:
            yield folded(base64.b64decode(digits + "=" * (-len(digits) % 4)).decode())
        except (binascii.Error, UnicodeDecodeError):
            continue


def _has_enough(piece: str) -> bool:
    piece = _WIDE_GAP().sub(lambda gap: "\n" if "\n" in gap[0] else " ", piece)
    words = set(piece.translate(_SPACES).split())
    tried = [sign for sign in _signs() if not sign.words or not words.isdisjoint(sign.words)]
    found: dict[str, int] = {}
    if sum(sign.weight for sign in tried) >= _ENOUGH:
        for sign in tried:
            if found.get(sign.name, 0) < sign.weight and sign.pattern.search(piece):
                found[sign.name] = sign.weight
    return sum(found.values()) >= _ENOUGH


class _Sign(NamedTuple):
    name: str
    weight: int
    words: frozenset[str]
    pattern: re.Pattern[str]


@cache
def _signs() -> tuple[_Sign, ...]:
    return tuple(map(_sign, _SIGNS.translate(_PLAIN).replace("\n    ", "").strip().splitlines()))


def _sign(row: str) -> _Sign:
    head, _, pattern = row.partition("]:")
    name, _, words = head.partition(" [")
    for block, meaning in _BLOCKS.items():
        pattern = pattern.replace(block, meaning)
    compiled = re.compile(pattern.lstrip(" ").replace(" ", r"\s"), re.MULTILINE)
    return _Sign(name[2:], int(name[0]), frozenset(words.replace("<AI>", _AI_WORDS).split(",")) - {""}, compiled)


def folded(piece: str) -> str:
    """In lower case, without accents and invisible characters; wide and mathematical letters become plain."""
    return piece.lower() if piece.isascii() else piece.translate(_PLAIN).casefold()


class _Plain(dict[int, str]):
    """Each character without accents, nothing for marks and invisible ones. For `str.translate`."""

    def __missing__(self, code: int) -> str:
        parts = unicodedata.normalize("NFKD", chr(code))
        found = self[code] = "".join(one for one in parts if unicodedata.category(one) not in ("Mn", "Cf"))
        return found


_PLAIN: Final = _Plain(zip(map(ord, "‘’“”„«»–—…"), '\'\'"""""--.', strict=True))
