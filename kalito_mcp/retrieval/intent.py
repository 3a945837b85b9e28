"""The intent of a query besides its subject: where the work was left, what was said earlier, what the assistant said.
Recognised by explicit words; with a model, `intent_head` also reads the query's vector. Pure.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kalito_mcp.text.phrases import Phrases

MODEL: Final = "meaning:use-multilingual-3:"
"""The prefix of the fingerprint of the embedder whose vectors `intent_head` reads."""

SURE: Final = 0.9
"""How likely a query has to ask where the work was left so that nothing else is searched for."""

_LEFT_OFF: Final[Mapping[str, str]] = {
    "en": "leave off, left off, where were we, where was i, where did we stop, where we stopped, what's next, "
    "should i do next, the last thing we did, still open",
    "de": "wo waren wir, wo war ich, stehen geblieben, wo wir aufgehört haben, wo haben wir aufgehört, noch offen",
    "fr": "où en étais-je, où en étions-nous, où on en était, où nous sommes-nous arrêtés, qu'est-ce qui reste",
    "es": "dónde lo dejé, dónde lo dejamos, dónde nos quedamos, en qué quedamos, qué queda pendiente",
    "it": "dove eravamo, dove ero rimasto, dove eravamo rimasti, cosa resta da fare",
    "pt": "onde parei, onde paramos, onde ficámos, onde ficamos, o que falta fazer",
    "nl": "waar was ik gebleven, waar waren we gebleven, waar waren we, wat staat er nog open",
    "sv": "var slutade jag, var slutade vi, var var vi, vad är kvar",
    "pl": "na czym skończyłem, na czym skończyliśmy, gdzie skończyliśmy, co zostało do zrobienia",
    "tr": "nerede kaldım, nerede kaldık, nerede kalmıştık, sırada ne var",
    "ru": "на чем я остановился, на чем мы остановились, где мы остановились, что осталось",
    "ar": "أين توقفت, أين توقفنا, أين وصلنا, ماذا بقي",
    "hi": "कहाँ रुके थे, कहाँ तक पहुँचे, कहाँ छोड़ा था, क्या बाकी है",
    "zh": "上次做到哪, 上次说到哪, 我们做到哪, 停在哪里, 还有什么没做",
    "ja": "どこまでやった, どこまで進んだ, 前回の続き, 残っている作業",
    "ko": "어디까지 했, 어디서 멈췄, 남은 일",
}
_EARLIER: Final[Mapping[str, str]] = {
    "en": "did i say, did i tell, did i mention, did i ask, did we decide, did we agree, did we discuss, did we say, "
    "did we settle, last time, remind me, do you remember, we decided, we agreed, we discussed, we settled on, "
    "i told you, i mentioned, we talked about, our last conversation, our previous conversations",
    "de": "habe ich gesagt, habe ich erwähnt, haben wir entschieden, haben wir besprochen, haben wir beschlossen, "
    "haben wir ausgemacht, letztes mal, erinnerst du dich, erinner mich",
    "fr": "ai-je dit, j'ai dit, avons-nous décidé, on a décidé, on a dit, la dernière fois, rappelle-moi",
    "es": "dije, decidimos, hablamos, acordamos, la última vez, recuérdame, te acuerdas, recuerdas",
    "it": "ho detto, abbiamo deciso, abbiamo detto, l'ultima volta, ricordami, ti ricordi",
    "pt": "eu disse, decidimos, combinamos, falamos, da última vez, lembra-me, lembras-te, lembras",
    "nl": "heb ik gezegd, hebben we besloten, hebben we afgesproken, vorige keer, herinner me, weet je nog",
    "sv": "sa jag, bestämde vi, sa vi, förra gången, påminn mig, minns du",
    "pl": "mówiłem, mówiłam, ustaliliśmy, rozmawialiśmy, ostatnim razem, przypomnij, pamiętasz",
    "tr": "demiştim, söylemiştim, karar vermiştik, konuşmuştuk, geçen sefer, hatırlıyor musun, hatırlat",
    "ru": "я говорил, я говорила, мы решили, договорились, обсуждали, в прошлый раз, напомни, помнишь",
    "ar": "المرة الماضية, اتفقنا, قررنا, ذكرني, هل تتذكر",
    "hi": "पिछली बार, मैंने कहा, हमने तय, याद है, याद दिलाओ",
    "zh": "上次, 还记得, 提醒我, 我说过, 我们决定",
    "ja": "前回, 覚えて, 決めました, 決めた, 言った, 話した",
    "ko": "지난번, 기억나, 정했, 말했",
}
_ASSISTANT: Final[Mapping[str, str]] = {
    "en": "did you say, did you tell, did you suggest, did you recommend, did you advise, did you explain, "
    "did you propose, did you find, did you mean, you said, you told, you suggested, you recommended, "
    "you advised, you explained, you mentioned, you proposed, you found, you gave, you wrote, you warned, "
    "according to you, your advice, your suggestion, your recommendation, your proposal, your explanation",
    "de": "hast du gesagt, hast du mir, hattest du, du hattest, du sagtest, du hast gesagt, laut dir, "
    "dein rat, dein vorschlag, deine empfehlung",
    "fr": "as-tu dit, m'as-tu, tu m'as, tu m'avais, tu as dit, tu as proposé, selon toi, ton conseil",
    "es": "dijiste, recomendaste, sugeriste, aconsejaste, propusiste, explicaste, según tú, tu consejo",
    "it": "hai detto, hai consigliato, hai suggerito, hai proposto, hai spiegato, hai trovato, secondo te",
    "pt": "você disse, você me disse, você recomendou, você sugeriu, disseste, recomendaste, sugeriste, explicaste",
    "nl": "heb je gezegd, heb je aangeraden, je hebt, had je, zei je, je zei, jouw advies",
    "sv": "sa du, föreslog du, rekommenderade du, hittade du, du sa, du föreslog, ditt förslag",
    "pl": "mówiłeś, mówiłaś, powiedziałeś, poleciłeś, doradziłeś, zaproponowałeś, wyjaśniłeś, znalazłeś",
    "tr": "demiştin, söylemiştin, önermiştin, önerdin, tavsiye ettin, tavsiye etmiştin, bulmuştun",
    "ru": "ты говорил, ты сказал, ты советовал, ты посоветовал, ты предложил, ты объяснил, ты нашел",
    "ar": "هل قلت لي, قلت لي, اقترحت, نصحتني, نصيحتك",
    "hi": "तुमने कहा, आपने कहा, तुमने बताया, आपने बताया, आपने सुझाया, तुमने सुझाया",
    "zh": "你说过, 你上次, 你之前, 你建议, 你推荐, 你给我",
    "ja": "言ってくれた, 勧めてくれた, 提案してくれた, 教えてくれた, 説明してくれた",
    "ko": "네가 말한, 추천해 준, 추천해줬, 알려줬, 제안했",
}
_BY_WORDS: Final = (Phrases(_LEFT_OFF), Phrases(_EARLIER), Phrases(_ASSISTANT))
_MOST_CHARS: Final = 120
"""A longer text names a subject, so it does not ask by its words alone where the work was left."""


class Intent(NamedTuple):
    """The intent of a query: where the last work ended or what is open, and how likely that is (`left_off`, 0 to 1; 0
    below its bar); something that was said `earlier`; what the `assistant` said."""

    left_off: float = 0.0
    earlier: bool = False
    assistant: bool = False


def intent_by_words(text: str) -> Intent:
    """The intent of the text, by explicit words."""
    left_off, earlier, assistant = (phrases.are_in(text) for phrases in _BY_WORDS)
    return Intent(float(left_off and len(text) <= _MOST_CHARS), earlier, assistant)
