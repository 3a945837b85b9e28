"""Synthetic secrets of twenty kinds, as people and programs write them. Seeded: the same ones every time.

No secret is written here in full. Each is assembled on request, so that no scanner reports this file. The text around
it is chosen separately: sentences in several languages, code, logs, JSON, shell, environment files.
"""

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from typing import Final

LETTERS: Final = string.ascii_letters
ALNUM: Final = LETTERS + string.digits
URL_SAFE: Final = ALNUM + "-_"
BASE64: Final = ALNUM + "+/"
HEX: Final = "0123456789abcdef"
SYMBOLS: Final = "!#$%^&*?+="

ANYWHERE: Final = (
    "{}",
    "here it is: {}",
    "Use {} for now, I'll rotate it tomorrow.",
    "I think ({}) is the right one?",
    "I pasted “{}” into the form and it said 403",
    "my colleague sent me `{}`, is that enough?",
    "Der Schlüssel ist {}, bitte nicht weitergeben!",
    "la clave nueva es {} y caduca en mayo",
    "Voilà : {}. Merci de la garder pour toi.",
    "ключ такой: {} (никому не показывай)",
    "キーは{}です。",
    "密钥是：{}，不要外传",
    "המפתח הוא {} תודה",
    "第一行\n{}\n第三行",
    '{{"id": 7, "value": "{}", "ok": true}}',
    '"{{\\"credential\\": \\"{}\\"}}"',
    "VALUE={}",
    "export CRED='{}'\nnpm run build",
    'const client = new Client({{ auth: "{}" }});',
    "client = Client('{}', timeout=30)",
    '```python\nc = connect(cred="{}")\n```',
    "  credential:\n    raw: {}\n  region: eu-west-1",
    "curl -H 'X-Auth: {}' https://api.example.org/v1/items?page=2",
    "2026-11-21T09:14:02Z INFO worker-3 using {} for upstream",
    "[debug] headers: x-cred={};x-id=77",
    "a,b,{},d\n1,2,3,4",
    "| name | value |\n|---|---|\n| main | {} |",
    "<value>{}</value>",
    "- [ ] remove {} from the repo!!",
    "line one\\nvalue {}\\nline three",
    "{}\n\nthat one stopped working, and I do not know why",
    "why does it say invalid?\n\n    {}",
)
NAMED: Final = (
    "{name}={value}",
    "{name} = {value}",
    "{name}: {value}",
    "{name}='{value}'",
    '{name} = "{value}"',
    '{{"region": "eu", "{name}": "{value}", "retries": 3}}',
    '"{{\\"{name}\\": \\"{value}\\"}}"',
    "export {name}={value}\nexport EDITOR=vim",
    "# settings\n{name}={value}\nDEBUG=false",
    "services:\n  web:\n    environment:\n      {name}: {value}\n",
    "os.environ['{name}'] = '{value}'",
    "docker run -e {name}={value} -p 80:80 app:latest",
    'let {name} = "{value}";',
    "<{name}>{value}</{name}>",
    "**{name}**: `{value}`",
    "I set {name} to the new one, {name}={value}, and restarted.",
    "12:01:44 WARN loaded {name}={value}, 3 workers",
)
SAID_PASSWORD: Final = (
    "password: {}",
    "Password: {}\nUsername: ann",
    "user ann, password: {}",
    "my password is {}",
    "My old password was {} but I changed it",
    "The wifi password is {}, write it down.",
    "the password for the NAS in the cellar is {}",
    "Password for ann@example.org: {}",
    "Passwort: {}",
    "Das Passwort ist {} und gilt bis Freitag",
    "contraseña: {}",
    "la contraseña es {}",
    "mot de passe : {}",
    "le mot de passe est {}",
    "Senha: {}",
    "пароль: {}",
    "пароль от почты: {}",
    "密码：{}",
    "密码: {}",
    "パスワード：{}",
    "비밀번호: {}",
    "hasło: {}",
    'the password is "{}"',
    "login: ann / pw: {}",
    "**Password:** {}",
    "- password: `{}`",
    "psql --password {} -U ann",
    "--db-password={} --verbose",
    "https://shop.example.org/login?user=ann&password={}&next=home",
    "Server=db;User Id=sa;Password={};Encrypt=true",
    "DB_PASSWORD={}",
    'password = "{}"',
    '{{"user": "ann", "password": "{}"}}',
    "mysql:\n  user: root\n  password: {}\n  port: 3306",
    "login(user='ann', password='{}')",
    "Password:\n{}",
)
PASSWORD_NAMES: Final = (
    "PASSWORD",
    "password",
    "DB_PASSWORD",
    "dbPassword",
    "POSTGRES_PASSWORD",
    "userPassword",
    "passwd",
)
KEY_NAMES: Final = (
    "API_KEY", "api_key", "apiKey", "x-api-key", "SECRET_KEY", "client_secret", "clientSecret", "ACCESS_TOKEN",
    "access_token", "auth_token", "refreshToken", "DATADOG_API_KEY", "WEBHOOK_SECRET", "secret", "token", "MAPS_TOKEN",
)  # fmt: skip

Secret = tuple[str, str]
"""A text, and the part of it that must not remain."""


class Maker:
    """Makes secrets with its own random source."""

    def __init__(self, seed: int = 4) -> None:
        self.chance = random.Random(seed)

    def some(self, letters: str, low: int, high: int | None = None) -> str:
        return "".join(self.chance.choices(letters, k=self.chance.randint(low, high or low)))

    def one(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def aws_id(self) -> Secret:
        return whole(self.one("AK", "AS") + "IA" + self.some(string.ascii_uppercase + "234567", 16))

    def aws_secret(self) -> Secret:
        value = self.some(BASE64, 40)
        form = self.one(
            "aws_secret_access_key = {}", "AWS_SECRET_ACCESS_KEY={}", "Secret access key: {}",
            "the secret access key for the account is {}", "aws configure set aws_secret_access_key {}",
            'new BasicAWSCredentials("AK" + "IA", "{}")', '"SecretAccessKey": "{}",', "aws id ends in Q7, secret: {}",
        )  # fmt: skip
        return form.format(value), value

    def github(self) -> Secret:
        fine = "github" + "_pat_" + self.some(ALNUM, 22) + "_" + self.some(ALNUM, 59)
        return whole(self.one("gh" + self.one(*"pousr") + "_" + self.some(ALNUM, 36), fine))

    def gitlab(self) -> Secret:
        return whole("gl" + self.one("pat", "dt", "rt", "ptt") + "-" + self.some(URL_SAFE, 20, 27))

    def openai(self) -> Secret:
        new = self.some(URL_SAFE, 58, 74) + "T3Blbk" + "FJ" + self.some(URL_SAFE, 58, 74)
        old = self.some(ALNUM, 20) + "T3Blbk" + "FJ" + self.some(ALNUM, 20)
        return whole("sk" + "-" + self.one("proj-" + new, "svcacct-" + new, old, "or-v1-" + self.some(HEX, 64)))

    def anthropic(self) -> Secret:
        return whole("sk" + "-ant-" + self.one("api03-", "admin01-") + self.some(URL_SAFE, 93) + "AA")

    def slack(self) -> Secret:
        numbers = self.some(string.digits, 11, 13) + "-" + self.some(string.digits, 11, 13)
        return whole("xo" + "x" + self.one("b", "p", "a") + f"-{numbers}-" + self.some(ALNUM, 24, 32))

    def slack_webhook(self) -> Secret:
        path = f"T{self.some(string.ascii_uppercase, 8, 10)}/B{self.some(ALNUM, 8, 10).upper()}/{self.some(ALNUM, 24)}"
        return f"https://hooks.sl{'ack'}.com/services/{path}", path

    def stripe(self) -> Secret:
        return whole(self.one("s", "r") + "k_" + self.one("live", "test") + "_" + self.some(ALNUM, 24, 99))

    def google(self) -> Secret:
        return whole("AI" + "za" + "Sy" + self.some(URL_SAFE, 33))

    def npm(self) -> Secret:
        return whole("np" + "m_" + self.some(ALNUM, 36))

    def pypi(self) -> Secret:
        return whole("py" + "pi-AgEIcHlwaS5vcmc" + self.some(URL_SAFE, 100, 180))

    def jwt(self) -> Secret:
        header = {"alg": self.one("HS256", "RS256", "none"), "typ": "JWT"}
        body = {"sub": self.some(string.digits, 10), "iat": self.chance.randint(10**9, 2 * 10**9)}
        parts = [encoded(header), encoded(body), self.some(URL_SAFE, 43, 86)]
        return whole(".".join(parts))

    def private_key(self) -> Secret:
        label = self.one("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ")
        rest = self.some(BASE64, 3, 63)
        lines = [self.some(BASE64, 64) for _ in range(self.chance.randint(2, 25))] + [rest + "=" * (-len(rest) % 4 % 3)]
        begin, end = (f"-----{word} {label}PRIV" + "ATE KEY-----" for word in ("BEGIN", "END"))
        if label == "RSA " and self.chance.random() < 0.5:
            begin += f"\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{self.some(HEX, 32).upper()}\n"
        block = self.one("\n", "\n", "\r\n", "\\n", "\n    ").join([begin, *lines, end])
        cut = self.chance.random()
        if cut < 0.25:
            # Cut off in the midst: the message ended, or the person marked too little.
            block = block[: self.chance.randint(len(begin) + 80, len(block) - len(end) - 1)]
        return block, lines[0]

    def age(self) -> Secret:
        return whole("AGE-SECRET" + "-KEY-1" + self.some("023456789ACDEFGHJKLMNPQRSTUVWXYZ", 58))

    def connection(self) -> Secret:
        password = self.some(ALNUM + "-_.~!$*#", 8, 24)
        scheme = self.one("postgres", "postgresql+asyncpg", "mysql", "mongodb+srv", "redis", "amqp", "https", "smtp")
        host = self.one("db.internal:5432", "localhost", "10.0.0.7:6379", "cluster0.ab1cd.example.net", "[::1]:5432")
        user = self.one("app", "ann.lee", "root", "svc_worker", "" if scheme == "redis" else "admin")
        return f"{scheme}://{user}:{password}@{host}/main?ssl=true", password

    def card(self) -> Secret:
        prefix, length = self.chance.choice(
            [("4", 16), ("51", 16), ("2223", 16), ("37", 15), ("6011", 16), ("3530", 16)]
        )
        digits = prefix + self.some(string.digits, length - 1 - len(prefix))
        odd = [sum(divmod(2 * int(digit), 10)) for digit in digits[::-1][::2]]
        digits += str(-(sum(odd) + sum(map(int, digits[::-1][1::2]))) % 10)
        sizes = (4, 6, 5) if length == 15 else (4, 4, 4, 4)
        groups = [digits[sum(sizes[:place]) : sum(sizes[: place + 1])] for place in range(len(sizes))]
        number = self.one("", " ", "-").join(groups)
        form = self.one("{}", "my card is {}", "{} 09/28 123", "{}, exp 09/28, cvv 311", "Visa:{}", "card_number={}",
                        "Kartennummer {}!", "卡号：{}", '"pan": "{}"')  # fmt: skip
        return form.format(number), number

    def password(self) -> Secret:
        word = self.one("Sommer", "dragon", "Blue", "correcthorse", "Ann", "пароль", "kot", "Qwerty")
        value = self.one(
            word + self.some(string.digits, 2, 4) + self.some(SYMBOLS, 0, 2).rstrip("?"),
            self.some(ALNUM, 8, 14) + self.one(*"!#$%*") + self.some(ALNUM, 2, 6),
            word[:2] + self.one(*"@$!") + word[2:] + self.some(string.digits, 2),
            self.some(string.digits, 1) + self.some(LETTERS, 9, 16) + self.some(string.digits, 1),
        )
        if self.chance.random() < 0.3:
            return self.chance.choice(NAMED).format(name=self.one(*PASSWORD_NAMES), value=value), value
        return self.chance.choice(SAID_PASSWORD).format(value), value

    def named_key(self) -> Secret:
        value = self.one(
            self.some(HEX, 32), self.some(HEX, 40, 64), self.some(ALNUM, 24, 48), self.some(URL_SAFE, 24, 64),
            base64.b64encode(self.chance.randbytes(32)).decode(),
            "-".join(self.some(HEX, size) for size in (8, 4, 4, 4, 12)),
        )  # fmt: skip
        return self.chance.choice(NAMED).format(name=self.one(*KEY_NAMES), value=value), value

    def authorization(self) -> Secret:
        value = self.one(self.some(ALNUM, 20, 60), self.some(URL_SAFE + ".", 30, 90) + "a", self.some(HEX, 32))
        form = self.one(
            "Authorization: Bearer {}", "authorization: bearer {}\naccept: */*", "'Authorization': 'Bearer {}'",
            'curl -H "Authorization: Bearer {}" https://api.example.org/me', '{{"Authorization": "Bearer {}"}}',
            "Authorization: token {}", "Authorization: Basic {}", "Proxy-Authorization: Basic {}",
            'req.Header.Set("Authorization", "Bearer {}")', "> Authorization: Bearer {}\n< HTTP/1.1 200 OK",
        )  # fmt: skip
        return form.format(value), value


def whole(value: str) -> Secret:
    """A secret that is the whole text."""
    return value, value


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


# Whether what surrounds it is chosen here, or is a part of it already.
KINDS: Final[tuple[tuple[Callable[[Maker], Secret], bool], ...]] = (
    (Maker.aws_id, True),
    (Maker.aws_secret, False),
    (Maker.github, True),
    (Maker.gitlab, True),
    (Maker.openai, True),
    (Maker.anthropic, True),
    (Maker.slack, True),
    (Maker.slack_webhook, True),
    (Maker.stripe, True),
    (Maker.google, True),
    (Maker.npm, True),
    (Maker.pypi, True),
    (Maker.jwt, True),
    (Maker.private_key, True),
    (Maker.age, True),
    (Maker.connection, True),
    (Maker.card, False),
    (Maker.password, False),
    (Maker.named_key, False),
    (Maker.authorization, False),
)


def synthetic_secrets(each: int, seed: int = 4) -> Iterator[tuple[str, str, str]]:
    """`each` secrets of each kind: the kind, a text, and the part of the text that must not remain."""
    maker = Maker(seed)
    for make, is_bare in KINDS:
        for _ in range(each):
            text, secret = make(maker)
            yield make.__name__, maker.chance.choice(ANYWHERE).format(text) if is_bare else text, secret
