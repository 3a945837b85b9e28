"""Secrets are removed, whatever surrounds them. What only looks like a secret stays."""

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.access.tokens import new_token
from kalito_mcp.domain.access import Permission
from kalito_mcp.safety.redaction import Redacted, cleaned, redact
from kalito_mcp.safety.secret_carriers import carried_secrets
from kalito_mcp.safety.secret_names import named_secrets
from kalito_mcp.safety.secret_shapes import is_card_number, shaped_secrets
from tests.campaign import first_of
from tests.safety.synthetic_secrets import ALNUM, BASE64, HEX, Maker, synthetic_secrets

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
CARD = "4111 1111" + " 1111 1111"
BEGIN, END = "-----BEGIN RSA PRIV" + "ATE KEY-----", "-----END RSA PRIV" + "ATE KEY-----"

# What secrets and what stands around them are made of, for texts that nobody would write.
WORDS = """password token secret api_key key PASSWORD is : = " ' ` \\n \\" ] [ <private> </private> <private [private]
    [redacted: hunter2! abc @ :// http user: 4111111111111111 eyJ . Bearer Authorization: sk- -- ( ) , ; & < > ** aws
    пароль 密码 İ $ / : = "password": token= secret: //a:b@c/"""
PIECES = [
    *WORDS.split(), " ", "\n", "for the ", "[redacted: password]", "[redacted: github token]", TOKEN, CARD, BEGIN, END,
    "A" * 17, "Ab3" * 9, "AK" + "IA" + "Q7" * 8, "xo" + "xb-1234567890-abcDEF", "password: hunter2!",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)

UNTOUCHED = (
    "",
    "See you at the lake on Saturday, bring the kids!",
    "the password is wrong",
    "I forgot my password again, can you reset it?",
    "Passwords must have at least 8 characters and one of !#$%.",
    "Password: required",
    "password: the one you chose last year",
    "The password is stored as a hash, never in clear.",
    "Is the password case-sensitive? The password was changed on 2026-01-05.",
    "Your token expires in 3600 seconds; the refresh token lasts 30 days.",
    "The secret is to rest the dough overnight.",
    "The key is under the mat. Key: practice every day.",
    "Secret: he never told her.",
    "a keyboard, a monkey, a turkey: three words with a key",
    "key: value",
    "primary key: 550e8400-e29b-41d4-a716-446655440000",
    "public key: MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA0d9f",
    "cache_key = a94a8fe5ccb19ba61c4c0873d391e987982fbbd3",
    "ssh key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJl3dIeudNqd0DPMRD6OIh65 ann@laptop",
    "token_count: 128000, max_tokens=4096, tokens: 17",
    "api_key = os.environ['API_KEY']",
    'key = os.environ["API_KEY"]',
    'token = os.getenv("GITHUB_TOKEN", "")',
    "password = getpass.getpass('Password: ')",
    "password = request.form.get('password')",
    "const token = await getAccessToken(user);",
    "password: str = Field(min_length=8)",
    "password: Mapped[str] = mapped_column(String(120))",
    "    password = db.Column(db.String(120), nullable=False)",
    "def login(user, password=None): return check(password=password)",
    'if (password === "") { throw new Error("Password missing"); }',
    'db_password=properties.get("MasterUserPassword")',
    "Can I pass in a name where it is running? Did the password work, or is it gone?",
    "type User = { name: string; password: string; token?: string };",
    '<input type="password" name="password" placeholder="Password">',
    '{"properties": {"password": {"type": "string"}}}',
    '"password": "your password here"',
    "api_key: <your-api-key>",
    "API_KEY=${API_KEY}",
    "API_KEY=xxxxxxxxxxxxxxxxxxxxxxxx",
    "PASSWORD=changeme",
    "token: {{ secrets.DEPLOY_TOKEN }}",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    'headers = {"Authorization": f"Bearer {token}"}',
    "The ring bearer crosses internationally recognised borders.",
    "DB_PASSWORD_FILE=/run/secrets/db_password",
    "postgres://user:password@localhost:5432/app",
    "postgres://app:${DB_PASSWORD}@db:5432/app",
    "redis://localhost:6379/0, http://127.0.0.1:8080/@ann, git@github.com:ann/app.git",
    "https://medium.com/@ann/how-to-sleep-better-3f2c9d7a1b44?source=friends_link&sk=home",
    "https://www.example.org/a/very/long/path/with-many-words/and/numbers/2026/11/21/index.html?page=12&sort=asc",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709 is the hash of nothing",
    "commit a0731216bb1f2c0ff3f27eaf2d0f3f1063ad3356 fixes it",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "ISBN 978-3-16-148410-0, 9783161484100",
    "EAN 4006381333931",
    "IBAN DE88 3704 0044 0532 0130 00, GB28 NWBK 6016 1331 9268 19",
    "GPIO pin 12 and pin 101010, PIN code 560001, error code 1234, the access code is wrong",
    "The recovery phrase is something that you should write down on paper and keep where nobody will look for it.",
    "Cookie: theme=dark; the cookies are baked, sig=1",
    "add the password SHA256 hash, use a password manager, the password to Netflix, a password of 10-12 characters",
    '{"auth": "required"}, curl https://example.org -o out.txt',
    "call +49 151 2345 6789 or 0044 20 7946 0958",
    "order 1234-5678-9012-3456, invoice 4111111111111112",
    "tweet 1589321456789012345, at 1700000000000 ms",
    "tracking 9400 1000 0000 0000 0000 00",
    "3.14159265358979323846 and 2.7182818284590452",
    "1,000,000,000,000,000",
    "2026-11-21T09:14:02.123456Z v3.51.2-rc.1+build.20261121",
    "sk-learn, scikit-learn and the task-force-of-the-mountain-rescue-service",
    "sk-my-very-long-branch-name-for-the-new-feature",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "the prefix of a GitHub token is ghp_, of a Stripe key sk_live_, of AWS AKIA",
    "pk_live_ keys are public",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "eyJub3QiOiJhIGp3dCJ9.eyJhIjoxfQ.c2ln",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYD\n-----END CERTIFICATE-----",
    "A key file starts with " + BEGIN + " and ends with " + END + ".",
    "private class Node<T> { private int privateKey; } // a < private b",
    "<privateer>, <private-key>, <not private>",
    "a stray </private> hides nothing",
    "compass: north; bypass=true; PASS: test_login_2 took 12 ms",
    "[redacted: github token] and [private]",
    "Passwort vergessen? Das Passwort ist falsch.",
    "мой пароль не подходит",
    "密码错误，请重试",
)

HOSTILE = (
    "key=", "token=", "secret=", "a1=key=", "AccessKey=", "token=1a", "key: a", "api_key = value\n", "pin 1",
    "curl -u ",
    "Cookie: a=", "seed phrase word ", "word ", "jdbc:oracle:thin:a/", "&lt;private",
    "-----BEGIN ", BEGIN, BEGIN + "\n" + "A" * 20 + "\n", "eyJhbGciOi", "eyJhbGciOi.", "gh" + "p_", "AK" + "IA", "sk-",
    "<private>", "< private ", "<private", "a.", "4", "4111 ", "Ab3+", "\\n", " ", "İ", "://a:", "[redacted: ",
    "password=", "password: '", "password for ", "пароль: ", "token ", "key: a", "secret: https://", "authorization: ",
    "Bearer ",
)  # fmt: skip


def test_no_secret_of_twenty_kinds_is_left_in_any_surroundings() -> None:
    made = list(synthetic_secrets(60))
    assert len(made) == 1_200
    assert [(kind, text) for kind, text, secret in made if secret in redact(text).text] == []


def test_a_secret_leaves_a_mark_and_its_surroundings() -> None:
    for kind, text, _ in synthetic_secrets(5):
        result = redact(f"Before it. {text}\nAfter it.")
        assert result.kinds, kind
        assert "[redacted: " in result.text
        assert result.text.startswith("Before it. ")
        assert result.text.endswith("\nAfter it.")


def test_a_token_of_ours_is_a_secret_wherever_it_is_pasted() -> None:
    for surroundings in ("please use {} for the demo", "key 0 is {}", "{}", '{{"x": "{}"}}'):
        token = new_token("ann", Permission.READ, now_ms=0).text
        result = redact(surroundings.format(token))
        assert result.text == surroundings.format("[redacted: kalito token]")


def test_a_text_without_secrets_is_the_same_object() -> None:
    for text in UNTOUCHED:
        assert redact(text) == Redacted(text, ())
        assert redact(text).text is text


def shaped(make: Maker) -> list[tuple[str, str]]:
    """Texts with a secret that has a shape or a cue of its own, and the secret."""
    key32 = base64.b64encode(make.chance.randbytes(32)).decode()
    key64 = base64.b64encode(make.chance.randbytes(64)).decode()
    login = base64.b64encode(f"ann:{make.some(ALNUM, 12)}".encode()).decode()
    words = " ".join(
        make.chance.sample(
            "abandon ability able about absent absorb abstract absurd abuse access accident account".split(), 12
        )
    )
    pem = base64.b64encode(b"-----BEGIN RSA PRIV" + b"ATE KEY-----" + make.chance.randbytes(60)).decode()
    seed, hexed, mixed = (
        make.some("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 8) + "234567" + make.some("QWERTY", 4),
        make.some(HEX, 32),
        make.some(ALNUM, 6) + "7!x",
    )
    bot = f"M{make.some(ALNUM, 23)}.{make.some(ALNUM, 6)}.{make.some(ALNUM, 27)}"
    forms = [
        (pem, "tls.key: {}"), (key64, "    client-key-data: {}"), (key64, "our storage account uses {}"),
        (make.some(ALNUM, 43) + "%3D", "https://a.blob.core.windows.net/b?se=2026&sig={}"),
        (login, '{{"auths": {{"ghcr.io": {{"auth": "{}"}}}}}}'), (mixed, "curl -s -u ann:{} https://api.example.org"),
        (mixed, "jdbc:oracle:thin:scott/{}@db:1521/x"), (key32, "we encrypt the backups with AES: {}"),
        (hexed, "twilio auth token {}"), ("key-" + hexed, "mailgun {}"), (bot, "the bot runs with {}"),
        (make.some(ALNUM, 26), "Cookie: lang=english; sessionid={}"), (seed, "my TOTP seed {}"),
        (words, "my seed phrase is {}"), ("DE89 3704 0044 0532 0130 00", "IBAN {}, thanks"), ("311", "the cvv is {}."),
        ("4711", "PIN: {}"), ("4711", "my pin for the card is {}"), ("27182", "the door code is {}"),
        (mixed, "&lt;private&gt;{}&lt;/private&gt;"), (mixed, "I changed my wifi password to {}"),
        (mixed, "log in with bob and password {}"), (mixed, "mein Passwort lautet {}"), (mixed, 'the passphrase "{}"'),
        (mixed, "the pwd {}"), (mixed, "password {}: that is it"), ("aHVudGVyYWJj", "  password: {}"),
    ]  # fmt: skip
    return [(form.format(secret), secret) for secret, form in forms]


def test_what_has_a_shape_or_a_cue_of_its_own_is_taken_out() -> None:
    for seed in range(8):
        assert [text for text, secret in shaped(Maker(seed)) if secret in redact(text).text] == []


def test_kinds_are_listed_in_the_order_of_the_text() -> None:
    result = redact(f"{CARD}, then <private>{TOKEN}</private>, then {TOKEN}.")
    assert result.text == "[redacted: payment card], then [private], then [redacted: github token]."
    assert result.kinds == ("payment_card", "private", "github_token")


def test_what_is_marked_as_private_is_taken_out_whole() -> None:
    for text, kept in (
        ("<private>all of it</private>", "[private]"),
        ("a <PRIVATE>b</Private> c", "a [private] c"),
        ('a <private reason="x" >b</private > c', "a [private] c"),
        ("a < private >b< / private > c", "a [private] c"),
        ("a <private>b <private>c</private> d</private> e", "a [private] e"),
        ("a <private>b</private> c <private>d</private>", "a [private] c [private]"),
        ("a <private>b\n\nc", "a [private]"),
        ("a <private", "a [private]"),
        ("a <private>b <private>c</private> d", "a [private]"),
        ("```\nx = 1\n<private>\ny = 2\n</private>\n```", "```\nx = 1\n[private]\n```"),
        ("<private/>b", "[private]"),
        ("a <private></private> b", "a [private] b"),
    ):
        assert redact(text).text == kept


def test_only_the_secret_goes() -> None:
    for text, kept in (
        ("postgres://app:s3cr%74!@db:5432/x?a=b@c", "postgres://app:[redacted: password]@db:5432/x?a=b@c"),
        ("https://ann:pa55@host/@scope/pkg", "https://ann:[redacted: password]@host/@scope/pkg"),
        ("amqp://app:pa/ss@w0rd@host:5672", "amqp://app:[redacted: password]@host:5672"),
        ("Server=db;Password=Pa55w0rd!;Encrypt=true", "Server=db;Password=[redacted: password];Encrypt=true"),
        ("?user=ann&password=Pa55w0rd&next=/", "?user=ann&password=[redacted: password]&next=/"),
        ('{"password": "swordfish", "a": 1}', '{"password": "[redacted: password]", "a": 1}'),
        ("Password: swordfish. Thanks!", "Password: [redacted: password]. Thanks!"),
        ("DB_PASS=swordfish\nPORT=1", "DB_PASS=[redacted: password]\nPORT=1"),
        ("api_key=abc123de, then", "api_key=[redacted: secret], then"),
        ("Authorization: Bearer abc123", "Authorization: Bearer [redacted: authorization]"),
        (f"{CARD} 12/27 123", "[redacted: payment card] 12/27 123"),
        (f"{CARD} 123", "[redacted: payment card] 123"),
        (f"first\\n{TOKEN}\\nthird", "first\\n[redacted: github token]\\nthird"),
        (
            "password: hunter2\u00a0and パスワード：abc123\u3000です",
            "password: [redacted: password]\u00a0and パスワード：[redacted: password]\u3000です",
        ),
        ("İİ İ password: hunter2 İ", "İİ İ password: [redacted: password] İ"),
    ):
        assert redact(text).text == kept


@given(st.integers(2, 30), st.integers(1, 2_000), st.sampled_from(["\n", "\r\n", "\\n", "\n> ", '\\n" +\n"']))
def test_an_unfinished_private_key_goes_up_to_where_it_was_cut(lines: int, length: int, line_end: str) -> None:
    maker = Maker(lines)
    block = line_end.join([BEGIN, *(maker.some(BASE64, 64) for _ in range(lines))])
    cut = block[: len(BEGIN) + len(line_end) + 64 + length]
    kept = redact(f"My key:\n{cut}\n\nWhat now?").text
    left = kept.removeprefix("My key:\n[redacted: private key]").removesuffix("\n\nWhat now?")
    assert set(left) <= set(line_end)


@given(TEXTS | st.text())
def test_redacting_again_changes_nothing(text: str) -> None:
    for written in (text, f"password: {text}"):
        once = redact(written)
        assert redact(once.text) == Redacted(once.text, ())


@given(TEXTS)
def test_the_quick_look_overlooks_nothing_that_the_closer_one_finds(text: str) -> None:
    found = [*shaped_secrets(text), *named_secrets(text), *carried_secrets(text)]
    assert bool(found) <= bool(redact(text).kinds)
    assert all(0 <= one.start < one.end <= len(text) for one in found)


@given(st.sampled_from(["4", "51", "2720", "6011", "3589", "62"]), st.randoms(use_true_random=False))
def test_a_card_has_a_check_digit_and_nothing_else_is_one(prefix: str, chance: random.Random) -> None:
    body = prefix + "".join(chance.choices("0123456789", k=15 - len(prefix)))
    numbers = [f"{body}{last}" for last in range(10)]
    cards = [number for number in numbers if is_card_number(number)]
    assert len(cards) == 1
    for number in numbers:
        for sign in ("", " ", "-"):
            written = sign.join(number[start : start + 4] for start in range(0, 16, 4))
            assert (redact(f"paid with {written}.").kinds == ("payment_card",)) == (number in cards)


@pytest.mark.parametrize("unit", first_of(HOSTILE, 2), ids=lambda unit: unit[:12].strip() or "space")
def test_a_long_hostile_text_is_read_to_its_end(unit: str) -> None:
    text = unit * (100_000 // len(unit)) + f"\n\n{TOKEN}"
    assert TOKEN not in redact(text).text


def test_an_invalid_header_of_a_web_token_does_no_harm() -> None:
    for header in ('{"a":' + "[" * 100_000, '{"typ":"x"}', '{"\\u12'):
        text = base64.urlsafe_b64encode(header.encode()).decode().rstrip("=") + ".e30.c2ln"
        assert redact(text).text is text


def test_secrets_in_json_values_go_and_all_else_stays() -> None:
    value = {"note": f"use {TOKEN}", "parts": [{"password": "swordfish"}, 7, None, True, "plain"], "key": "value"}
    kept = {
        "note": "use [redacted: github token]",
        "parts": [{"password": "[redacted: secret]"}, 7, None, True, "plain"],
    }
    assert cleaned(value)[0] == kept | {"key": "value"}


def test_a_field_is_judged_by_its_name() -> None:
    value = {
        "apiKey": "abc123de",
        "token": "msg_45",
        "tags": ["key"],
        "mot de passe": "soleil9",
        "token_count": "abc123de",
    }
    kept = cleaned(value)[0]
    assert [name for name in value if kept[name] != value[name]] == ["apiKey", "mot de passe"]
