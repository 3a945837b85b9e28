"""Whether a text refers to what was said earlier ("what did I say", "the one we discussed"), and whether it asks for
what the assistant said ("what did you suggest"). Pure."""

import re
from typing import Final

from kalito_mcp.text.lazy_pattern import lazy

_SAY: Final = (
    "say|tell|mention|talk|speak|discuss|ask|decide|agree|recommend|suggest|advise|plan|choose|pick|bring up|note|"
    "share|explain|describe|report|cover|go over|work on|settle on|end up"
)
_SAID: Final = (
    "said|told|mentioned|talked|spoke|discussed|asked|decided|agreed|recommended|suggested|advised|planned|chose|picked|"
    "brought up|noted|shared|explained|described|reported|covered|went over|worked on|settled on|ended up"
)
_BY_LANGUAGE: Final = {
    "English": (
        rf"\b(?:did|have|had) (?:i|we|you)\b(?:[ ,][\w'-]+){{0,3}}? (?:{_SAY}|{_SAID}|spoken|chosen)\b",
        rf"\b(?:i|we|you)(?:'ve|'d| have| had)?(?: \w+)?? (?:{_SAID})\b",
        r"\b(?:our|my|all|past|previous|earlier|last|these|those) (?:\w+ )?(?:conversation|discussion|chat|session)s?"
        r"\b",
        r"\b(?:do|can|you) (?:\w+ )?(?:remember|recall)\b|\bremind me\b|\blast time\b",
    ),
    "German": (
        r"\b(?:habe ich|haben wir|hast du|haben sie|hatte ich|hatten wir)\b.* (?:gesagt|erzählt|erwähnt|besprochen"
        r"|gesprochen|entschieden|vorgeschlagen|empfohlen|genannt|geplant)\b",
        r"\bletztes mal\b|\berinner",
    ),
    "French": (
        r"\b(?:ai-je|avons-nous|as-tu|avez-vous|j'ai|on a|tu m'as|tu as)\b.* (?:dit|mentionné|parlé|décidé|discuté"
        r"|raconté|proposé|conseillé|recommandé|prévu)\b",
        r"\bla dernière fois\b|\brappelle",
    ),
    "Spanish": (
        r"\b(?:dije|conté|mencioné|dijiste|hablamos|decidimos|acordamos|recomendaste|sugeriste)\b",
        r"\bla última vez\b|\brecuérdame\b|\bte acuerdas\b|\brecuerdas\b",
    ),
    "Italian": (
        r"\b(?:ho|abbiamo|hai) (?:detto|parlato|deciso|discusso|menzionato|consigliato|suggerito)\b",
        r"\bl'ultima volta\b|\bricord(?:i|ami)\b",
    ),
    "Portuguese": (
        r"\b(?:eu disse|você disse|disseste|mencionei|falamos|decidimos|combinamos)\b",
        r"\bda última vez\b|\blembras?\b",
    ),
    "Dutch": (
        r"\b(?:heb ik|hebben we|heb je)\b.* (?:gezegd|verteld|genoemd|besproken|besloten|aangeraden)\b",
        r"\bvorige keer\b|\bherinner",
    ),
    "Polish": (
        r"\b(?:mówił[ae]?m|wspominał[ae]?m|rozmawialiśmy|ustaliliśmy)\b",
        r"\bostatnim razem\b|\bprzypomnij\b|\bpamiętasz\b",
    ),
    "Russian": (
        r"\b(?:говорила?|рассказывала?|упоминала?|обсуждали|решили|договорились|советовала?)\b",
        r"\bв прошлый раз\b|\bнапомни|\bпомнишь\b",
    ),
    "Chinese": (r"[我你][们們]?(?:说过|說過|提到|提过|提過|讨论过|討論過|建议过)|上次|[还還]记得|還記得|提醒我",),
    "Japanese": (r"言った|言いました|話した|話しました|決めた|決めました|前回|覚えて",),
}
_OF_YOU_BY_LANGUAGE: Final = {
    "English": (
        r"\b(?:did|have|had) you\b",
        rf"\byou(?:'ve|'d| have| had)?(?: \w+)?? (?:{_SAID}|found|gave|wrote|warned)\b",
        r"\baccording to you\b|\byour (?:\w+ )?(?:advice|suggestion|recommendation|proposal|explanation)s?\b",
    ),
    "German": (
        r"\b(?:hast|hattest) du\b|\bdu (?:hast|hattest|sagtest)\b|\blaut dir\b",
        r"\bhaben sie mir\b.* (?:gesagt|erklärt|vorgeschlagen|empfohlen|geraten)\b",
        r"\bdeine[mnr]? (?:rat|vorschlag|empfehlung|erklärung)\b|\bdein (?:rat|vorschlag)\b",
    ),
    "French": (
        r"\b(?:as-tu|avez-vous|tu m'as|tu m'avais|vous m'avez)\b|\bselon toi\b",
        r"\btu as .*\b(?:dit|proposé|conseillé|recommandé|trouvé)\b|\b(?:ton|tes) (?:conseil|explication)s?\b",
    ),
    "Spanish": (r"\b(?:dijiste|recomendaste|sugeriste|aconsejaste|propusiste|explicaste|encontraste)\b|\bsegún tú\b",),
    "Italian": (r"\bhai (?:detto|consigliato|suggerito|proposto|spiegato|trovato)\b|\bsecondo te\b",),
    "Portuguese": (
        r"\bvocê (?:me )?(?:disse|recomendou|sugeriu|aconselhou|explicou|encontrou)\b",
        r"\b(?:disseste|recomendaste|sugeriste|aconselhaste|explicaste)\b",
    ),
    "Dutch": (
        r"\b(?:heb|had) je\b.* (?:gezegd|verteld|aangeraden|voorgesteld|uitgelegd|gevonden)\b|\bzei je\b|\bje zei\b",
    ),
    "Polish": (r"\b(?:mówił|powiedział|polecił|doradził|radził|zaproponował|wyjaśnił|znalazł)[ae]ś\b",),
    "Russian": (r"\b(?:ты|вы) (?:мне )?(?:сказал|говорил|советовал|посоветовал|предложил|объяснил|наш[её]л)[аи]?\b",),
    "Swedish": (r"\b(?:sa|föreslog|rekommenderade|hittade) du\b|\bdu (?:sa|föreslog|rekommenderade|hittade)\b",),
    "Turkish": (r"\b(?:demiştin|söylemiştin|önermiştin|önerdin|tavsiye ettin|tavsiye etmiştin|bulmuştun)\b",),
    "Chinese": (r"[你您](?:当时|當時|上次|之前)?(?:给我|給我|跟我)?(?:说|說|提到|建议|建議|推荐|推薦|解释|解釋)",),
    "Japanese": (r"(?:勧めて|教えて|提案して|言って|説明して|薦めて)(?:くれ(?:た|ました)|いた|いました)",),
}
_REFERS: Final = lazy("|".join(one for patterns in _BY_LANGUAGE.values() for one in patterns), re.IGNORECASE)

_OF_YOU: Final = lazy("|".join(one for patterns in _OF_YOU_BY_LANGUAGE.values() for one in patterns), re.IGNORECASE)


def refers_to_the_past(text: str) -> bool:
    """Whether it names what was said before, in one of the languages of the table."""
    return _REFERS().search(text) is not None


def asks_what_you_said(text: str) -> bool:
    """Whether it asks its reader, an assistant, for what that one said, advised or found, in one of these languages."""
    return _OF_YOU().search(text) is not None
