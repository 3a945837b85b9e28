"""The shapes of texts that tell an assistant what to do, in languages other than English. Pure.

Only the most common ones, in German, French, Spanish, Italian, Portuguese, Russian, Chinese and Japanese.
"""

from typing import Final

from kalito_mcp.safety.instruction_signs import UP_TO_2, UP_TO_4, UP_TO_8, sign

OTHER_LANGUAGES: Final = (
    sign(
        "sets earlier instructions aside",
        3,
        "ignoriere ignorier ignorieren vergiss missachte befolge ignore ignorez oublie oubliez neglige ignora olvida "
        "olvide descarta dimentica trascura ignora esqueca desconsidere игнорируй игнорируйте забудь забудьте "
        "отбрось следуй следуйте",
        rf"\b(?:ignorier\w{{0,3}}|vergiss|missachte|befolge (?:nicht|keine)) {UP_TO_4}"
        r"(?:anweisung|instruktion|vorgabe|befehl|regel|richtlinie|systemprompt)\w{0,3}\b",
        r"\bvergiss alles,? was (?:dir|du|vorher|bisher|ich)\b",
        rf"\b(?:ignore[sz]?|oublie[sz]?|neglige[sz]?) {UP_TO_2}(?:instructions|consignes|regles|directives|ordres) "
        r"(?:precedente?s|ci-dessus|anterieure?s|initiales|recues|du systeme)",
        rf"\b(?:ignor[ae]|olvid[ae]|descarta) {UP_TO_4}(?:instrucciones|reglas|indicaciones|ordenes|directrices) "
        r"(?:\w+ )?(?:anteriores|previas|iniciales|de arriba|del sistema)",
        rf"\b(?:ignora|dimentica|trascura) {UP_TO_4}(?:istruzioni|regole|indicazioni|direttive) "
        r"(?:precedenti|di sopra|ricevute|iniziali|del sistema)",
        rf"\b(?:ignor[ae]|esqueca|desconsidere) {UP_TO_4}(?:instrucoes|regras|ordens|diretrizes) "
        r"(?:anteriores|acima|previas|iniciais|do sistema)",
        rf"\b(?:игнорируй|забудь|отбрось|не следуй)\w{{0,2}} {UP_TO_4}(?:инструкци|указани|правил|команд)\w{{0,3}}",
    ),
    sign(
        "hides from the user",
        3,
        "sag sage verrate erzahle benutzer nutzer utilisateur usuario utente all'utente l'utilisateur пользователю",
        r"\b(?:sage?|verrate?|erzahle?) (?:es )?(?:de[mnr] )?(?:be)?nutzer\w? (?:\w+ )?(?:nichts|nicht|davon)\b",
        r"\bne (?:le )?(?:dis|dites|mentionne[sz]?|revele[sz]?|parle[sz]?) (?:\w+ ){0,3}a l'utilisateur",
        r"\bno (?:se )?(?:lo |le )?(?:digas?|menciones?|cuentes?|reveles?) (?:\w+ ){0,3}al usuario",
        r"\bnon (?:lo )?(?:dire|menzionare|rivelare|dirlo) (?:\w+ ){0,3}all'utente",
        r"\bnao (?:o )?(?:conte|diga|mencione|revele) (?:\w+ ){0,3}ao usuario",
        r"\bне (?:говори|сообщай|рассказывай|упоминай)\w{0,2} (?:\w+ ){0,2}пользовател",
    ),
    sign(
        "waits for the user's words",
        3,
        "nutzer benutzer kunde utilisateur l'utilisateur usuario utente l'utente пользователь",
        rf"\b(?:wenn|sobald|falls) (?:de[rn]|ein) (?:benutzer|nutzer|kunde) {UP_TO_8}"
        r"(?:fragt|sagt|will|schreibt|erwahnt),? (?:dann )?(?:antworte|sag|rufe?|sende|empfiehl|behaupte)",
        r"\b(?:quand|lorsque|si) l'utilisateur (?:demande|dit|ecrit|parle|veut)\b",
        r"\b(?:cuando|si|quando|se) (?:el |o |l')(?:usuario|utente) (?:pregunt|di[cgz]|pid|pergunt|chied|menci)",
        r"\b(?:когда|если) пользователь (?:спро|спра|скаж|попро|упомян)",
    ),
    sign(
        "orders from now on",
        3,
        "jetzt sofort nun maintenant desormais ahora d'ora ora agora теперь отныне момента",
        r"\b(?:ab (?:jetzt|sofort)|von nun an) (?:antwortest du|bist du|sollst du|musst du|antworte|empfiehl)",
        r"\ba partir de maintenant,? (?:tu (?:es|dois|reponds)|vous (?:etes|devez)|reponds)",
        r"\btu es (?:maintenant|desormais)\b",
        r"\ba partir de ahora,? (?:debes|tienes que|eres|responde)|\bahora eres un",
        r"\bd'ora in poi,? (?:rispondi|sei|devi|dovrai)|\bora sei un",
        r"\ba partir de agora,? (?:voce|responda|deve)",
        r"\b(?:теперь|отныне|с этого момента) ты (?:помощник|должен|отвеча|бот|модель|ассистент)",
    ),
    sign(
        "lifts all limits",
        2,
        "restriction restrictions limite filtre filtros restricciones reglas limites filtri restrizioni regole regras "
        "restricoes ограничений правил цензуры einschrankungen regeln filter",
        r"\bohne (?:jede )?(?:einschrankung|regel|filter)|\bsans (?:aucune? )?(?:restriction|limite|filtre|regle)",
        r"\bsin (?:ningun )?(?:filtro|restriccion|regla|limite)|\bsenza (?:filtri|restrizioni|regole|limiti)",
        r"\bsem (?:regras|restricoes|filtros|limites)\b|\bбез (?:ограничений|правил|цензуры)\b",
    ),
    sign(
        "asks for the prompt",
        3,
        "prompt systeme sistema systemprompt passwort пароль contrasena senha password",
        r"\b(?:affiche|montre|revele|repete) (?:\w+ ){0,2}(?:prompt|instructions) (?:du )?systeme",
        r"\b(?:muestra|revela|repite|imprime|mostra|revele|mostre) (?:\w+ ){0,2}(?:mensaje|prompt|instrucciones) "
        r"d[eo]l? sistema",
        r"\b(?:zeige?|gib|verrate) (?:\w+ ){0,2}(?:systemprompt|passwort)",
        r"\b(?:отправь|перешли|покажи|выведи) (?:\w+ ){0,2}(?:пароль|системн)",
        r"\b(?:envi[ae]|mand[ae]) (?:\w+ ){0,4}(?:senha|contrasena)",
    ),
)

UNSPACED: Final = (
    sign(
        "sets earlier instructions aside",
        3,
        "",
        r"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要遵守|不要遵守|绕过).{0,10}(?:之前|以前|上面|以上|先前|前面|所有|全部|系统|系統)"
        r".{0,8}(?:指令|指示|规则|規則|命令|提示|要求|设定|对话)",
        r"(?:以前|これまで|上記|前|すべて|全て|今まで|システム).{0,10}(?:指示|命令|ルール|規則|プロンプト|設定).{0,6}"
        r"(?:無視|忘れ|破棄|従わな)",
    ),
    sign(
        "hides from the user",
        3,
        "",
        r"(?:不要|别|勿|不得|不能)(?:告诉|告訴|让|向|通知).{0,4}(?:用户|用戶|使用者|客户)",
        r"ユーザー?(?:に|へ).{0,10}(?:言わ|伝え|知らせ|教え|話さ)(?:ず|な)",
    ),
    sign(
        "orders from now on",
        2,
        "",
        r"你现在是|你現在是|从现在(?:开始|起)|你不再是",
        r"(?:あなた|君)は(?:今|これ)から|今から(?:あなた|君)は",
    ),
    sign("lifts all limits", 2, "", r"(?:没有|沒有|不受)(?:任何)?(?:限制|规则|規則|约束)", r"制限(?:の|が)な[いく]"),
    sign(
        "asks for the prompt",
        3,
        "",
        r"(?:输出|輸出|显示|透露|打印|告诉我|泄露).{0,8}(?:系统提示|提示词|密码|密钥)",
        r"(?:パスワード|システムプロンプト|秘密鍵)を?.{0,4}(?:表示|出力|送信|教え)",
    ),
)
