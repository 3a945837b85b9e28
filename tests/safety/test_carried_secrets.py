"""A key is found by its form in whatever carries it, and any secret by what carries it. What is written alike stays."""

import pytest

from kalito_mcp.safety.redaction import redact
from tests.safety.synthetic_secrets import ALNUM, BASE64, HEX, URL_SAFE, Maker

LOWER = "abcdefghijklmnopqrstuvwxyz0123456789"
# `a`, `h`, `l`, `u` and `b` with a number stand for that many letters and digits, hexadecimal digits, and so on.
LETTERS = {"a": ALNUM, "h": HEX, "l": LOWER, "u": URL_SAFE, "b": BASE64, "C": ALNUM.upper()}
FORMS = """AQ.Ab8|u40 1//0|u60 tgp_v1_|u43 sk_|h48 csk-|l48 lsv2_pt_|h32|_|h10 lsv2_sk_|h32|_|h10 napi_|l64
    pscale_tkn_|u43 vercel_blob_rw_|a16|_|a30 vcp_|a30 vck_|a32 fm2_|b90 FlyV1~fm2_|b90 dp.st.|a43 dp.st.prd.|a43
    dp.pt.|a43 ABSK|b96 a3|8Q~|a34 a52|JQQJ99|a26 v1.0-|h24|-|h146 SK|h32 tskey-auth-|a17|-|a32 tskey-api-|a12|-|a32
    ops_eyJ|u200 phx_|a43 dapi|h32 dapi|h32|-2 pat|a14|.|h64 pat-na1-|h8|-|h4|-|h4|-|h4|-|h12 pul-|h40 a14|.atlasv1.|u67
    bkua_|h40 CCIPAT_|a22|_|h40 wandb_v1_|a60 pcsk_|a6|_|a63 fc-|h32 pa-|u43 r8_|a37 fw_|a24 jina_|h32|u27 tvly-dev-|a32
    BSA|u27 apify_api_|a36 sk-lf-|h8|-|h4|-|h4|-|h4|-|h12 sb_secret_|u22|_|a8 re_|a8|_|a24 PMAK-|h24|-|h34 figd_|u40
    lin_oauth_|h64 secret_|a43 ATATT3|u180 ATBB|a32 sntrys_|b120 sntryu_|h64 NRAK-|C27 dt0c01.|C24|.|C64 hcaik_|l32
    sq0atp-|u22 EAAA|u60 EAA|a120 AAAAAAAAAAAAAAAAAAAAA|a60 access-production-|h8|-|h4|-|h4|-|h4|-|h12 CFPAT-|u43
    duffel_live_|u43 EZAK|a54 HRKU-|u60 nfp_|a40 pnu_|a36 rubygems_|h48 xkeysib-|h64|-|a16 shippo_live_|h40 sqp_|h40
    sgp_|h40 tfp_|u59 AQVN|u38 dckr_oat_|u32 AKCp|a69 oy2|l43 cio|a32 LTAI|a20 AKID|a32 nvapi-|u64 tr_prod_|a24
    signkey-prod-|h64 ddp_|a36 aio_|a28 glft-|u22 GR1348941|u20 AVNS_|u19 mdb_sa_sk_|u40 crsr_|h64 rnd_|a30 rpa_|C40
    e2b_|h40 ctx7sk-|h36 xau_|a34 st.|h24|.|h32|.|h32 hvr.|u60 h32|-us21""".split()
CARRIERS = (
    "can you try with {} and see whether it answers?",
    "curl -H 'X-Whatever: {}' https://api.example.org/v1/me",
    "https://api.example.org/v1/me?x={}&page=2",
    "SERVICE_API_KEY={}\nEDITOR=vim",
    '{{"region": "eu", "service_api_key": "{}"}}',
    "env:\n  - SERVICE_API_KEY: {}\n  - SERVICE_TOKEN: {}\n",
)


def key(form: str, make: Maker) -> str:
    """A key of this form: its parts are fixed, or a letter and a number."""
    drawn = [
        make.some(LETTERS[part[0]], int(part[1:])) if part[0] in LETTERS and part[1:].isdigit() else part
        for part in form.split("|")
    ]
    return "".join(drawn).replace("FlyV1~", "FlyV1 ")


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_key_of_a_service_is_found_in_every_carrier(carrier: str) -> None:
    make = Maker(7)
    left = []
    for form in FORMS:
        secret = key(form, make)
        if secret[-8:] in redact(carrier.format(secret, secret)).text:
            left.append(form)
    assert left == []


CONNECTIONS = """https://{h32}@o4507.ingest.sentry.io/45071
https://{a40}@git.example.org/ann/app.git
db.example.org:5432:shop:ann:{w}
*:*:*:ann:{w}
ann:$apr1$Xk2u8QhT${a22}
ann:$2y$05${a53}
root:$6$f3Ks9dQa${a80}:19700:0:99999:7:::
{{SSHA}}{b32}==
mysql -h db -u root -p{w} shop
mysqldump --all-databases -uroot -p'{w}' > all.sql
sshpass -p {w} ssh ann@host
sshpass -p'{w}' scp a b:
docker login -u ann -p {w} ghcr.io
podman login --username ann --password {w} quay.io
az login --service-principal -u x -p {w} --tenant y
redis-cli -h cache -a {w} ping
mongosh -u ann -p {w} shop
ldapsearch -x -D cn=admin -w {w} -b dc=x
sqlcmd -S db -U sa -P {w} -Q "select 1"
http -a ann:{w} https://api.example.org
curl -u ann:{w} https://api.example.org
curl -x proxy:8080 -U ann:{w} https://api.example.org
unzip -P {w} archive.zip
7z x -p{w} archive.7z
openssl rsa -in key.pem -passin pass:{w}
smbclient //nas/share -U ann%{w}
xfreerdp /v:host /u:ann /p:{w}
sqlplus scott/{w}@db:1521/x
echo {w} | docker login --password-stdin
echo "{w}" | sudo -S reboot
machine api.example.org login ann password {w}
PGPASSWORD={w} psql -h db
MYSQL_PWD={w} mysqldump shop > a.sql
Driver=ODBC Driver 18;Server=db;Uid=sa;Pwd={w};
jdbc:postgresql://db/shop?user=ann&password={w}
jdbc:sqlserver://db;user=sa;password={w};encrypt=true
postgres://ann:{w}@db:5432/shop
mongodb+srv://ann:{w}@cluster0.example.net
redis://:{w}@cache:6379/0
amqp://ann:{w}@queue:5672
smtps://ann%40example.org:{w}@mail.example.org:465
DefaultEndpointsProtocol=https;AccountName=x;AccountKey={b86}==;EndpointSuffix=y
Endpoint=sb://x.example.net/;SharedAccessKeyName=root;SharedAccessKey={b43}=
https://api.example.org/v1?signature={h64}
https://api.example.org/hook?code={a32}
https://files.example.org/a.pdf?X-Amz-Signature={h64}
curl -H "X-Shop-Key: {h40}" https://api.example.org""".splitlines()


def test_a_secret_is_found_by_what_carries_it_however_plain_it_is() -> None:
    left = []
    for number, form in enumerate(CONNECTIONS):
        make = Maker(number)
        for word in ("swordfish", "Tr0ub4dor&3"):
            some = {f"{name}{size}": make.some(letters, size) for name, letters in LETTERS.items() for size in
                    (22, 32, 40, 43, 53, 64, 80, 86)}  # fmt: skip
            text = form.format(**some, w=word)
            secret = next((value for name, value in some.items() if f"{{{name}}}" in form), word)
            if secret in redact(text).text or secret in redact(f"I ran this:\n{text}\nand it worked").text:
                left.append(text)
    assert left == []


HARMLESS = """commit a0731216bb1f2c0ff3f27eaf2d0f3f1063ad3356
git show 9fceb02d0ae598e95dc970b74767f19372d61af8:src/main.py
https://github.com/ann/app/commit/9fceb02d0ae598e95dc970b74767f19372d61af8?diff=split
https://example.org/compare?from=9fceb02d0ae598e95dc970b74767f19372d61af8&to=main
550e8400-e29b-41d4-a716-446655440000
https://example.org/orders?id=550e8400-e29b-41d4-a716-446655440000
curl -H "X-Request-Id: 550e8400-e29b-41d4-a716-446655440000" https://example.org
curl -H 'If-None-Match: 9e107d9d372bb6826bd81d3542a419d6' https://example.org
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
md5 9e107d9d372bb6826bd81d3542a419d6  disk.iso
"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
doi:10.1038/s41586-020-2649-2
https://doi.org/10.1145/3442188.3445922
arXiv:2605.08442v3
v3.51.2-rc.1+build.20261121
torch==2.4.1+cu124 ; python_version >= "3.11"
color: #1a2b3c; background: #ff8800cc
payments-api-7d9f8b6c5d-x2k4q is in CrashLoopBackOff
ip-10-0-12-34.eu-west-1.compute.internal
arn:aws:iam::123456789012:role/deploy-prod
https://medium.com/@ann/how-to-sleep-better-3f2c9d7a1b44?source=friends_link
https://shop.example.org/p/red-running-shoes-size-42-for-women?utm_source=newsletter&utm_campaign=black-friday-2026
https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=recommended-for-you
https://example.org/search?q=how+to+reset+a+forgotten+laptop&page=2&sort=price_ascending
https://maps.example.org/?center=59.913868,10.752245&zoom=12
https://example.org/a?timestamp=2026-11-21T09:14:02Z&tz=Europe/Oslo
https://example.org/report?file_name=quarterly_report_2026_final_version_3.pdf
https://example.org/error?error_code=invalid_configuration_value&lang=en
call +49 151 2345 6789 or 0044 20 7946 0958
ISBN 978-3-16-148410-0, 9783161484100
trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7
req-01HV8Z3K4M5N6P7Q8R9S0T1V2W took 12 ms
2026-11-21T09:14:02.123456Z worker-3 accepted job 1589321456789012345
host web-1:8080 answered in 12:30:45
10.0.0.7:5432 refused the connection at 09:14:02
localhost:8080:8080/tcp, 0.0.0.0:443->443/tcp
/usr/local/lib/python3.11/site-packages/numpy/core/multiarray.py
C:\\Users\\ann\\AppData\\Local\\Programs\\Python\\Python311
SK is the code of Slovakia; SK8 to school
pa-ra-graph, fc-barcelona, re_read the spec, fw_update is done, st. petersburg
dapi is not an API; pat. pending; pul-ley; oy2 and cio are no words
the pat-na1-region of the map
docker run -p 8080:80 -p 443:443 nginx
docker login ghcr.io, then push
ssh -p 2222 ann@example.org
mkdir -p build/output && cp -p a b
mysql -u root -p shop
mysqldump -u root -p --all-databases
psql -p 5432 -U ann shop
zip -r archive.zip folder; unzip archive.zip
redis-cli -h cache ping
curl -H "Content-Type: application/vnd.api+json" https://example.org
curl -H "Accept-Language: en-GB,en;q=0.9" https://example.org
curl -H "Authorization: Bearer $TOKEN" https://example.org
echo hello | sudo tee /etc/motd
PASS=1 FAIL=0 make test
BYPASS=true make build
the token_type is bearer, the grant_type=authorization_code
machine learning, login page, password reset: three topics
export PATH=/usr/local/bin:/opt/homebrew/bin:$PATH
the http client retries with -a flag: see the docs
$1 is the first argument, $5 buys a coffee
npm install @babel/plugin-transform-runtime@7.24.3
api_key = settings.services.payments.api_key
token: config.providers.github.defaultToken
- API_TOKEN: env.services.tracker.token""".splitlines()


def test_what_is_written_like_a_secret_and_is_none_stays() -> None:
    assert len(HARMLESS) >= 60
    assert [(one, redact(one).text) for one in HARMLESS if redact(one).kinds] == []
