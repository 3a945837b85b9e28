"""The forms of keys that services give out with a fixed beginning. Pure.

Each row is what a key begins with, and a pattern of the rest, with fewer characters than any key of its kind has. The
beginnings are from the public documentation of the services.
"""

from typing import Final

_ROWS: Final = r"""
AQ.Ab [\w-]{30,}
1//0 [\w-]{30,}
tgp_v1_ [\w-]{30,}
sk_ (?:prod_)?[a-f0-9]{40,}
csk- [a-z0-9]{30,}
lsv2_ (?:pt|sk)_[\w]{30,}
napi_ [a-z0-9]{30,}
pscale_ (?:tkn|pw|oauth|app|user)_[\w.-]{24,}
vercel_blob_rw_ \w{20,}
vcp_ [A-Za-z0-9]{24,}
vck_ [A-Za-z0-9]{24,}
FlyV1 \s{1,2}f[mo]\w{1,4}_[\w+/=,-]{20,}
fm1r_ [\w+/=,-]{20,}
fm2_ [\w+/=,-]{20,}
fo1_ [\w+/=,-]{20,}
dp. (?:pt|st|ct|sa|scim|audit|said)\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{24,}
ABSK [A-Za-z0-9+/]{60,}={0,2}
bedrock-api-key- [A-Za-z0-9+/]{40,}={0,2}
v1.0- [0-9a-f]{16,}-[0-9a-f]{30,}
cfut_ [\w-]{30,}
cfat_ [\w-]{30,}
cfk_ [\w-]{30,}
SK [0-9a-f]{32}(?![0-9a-f])
tskey- [a-z]{2,12}-[A-Za-z0-9-]{16,}
ops_eyJ [\w-]{40,}
phx_ [A-Za-z0-9]{30,}
phs_ [A-Za-z0-9]{30,}
dapi [0-9a-f]{32}(?:-\d)?(?![0-9a-f])
dose [0-9a-f]{32}(?![0-9a-f])
pat [A-Za-z0-9]{14}\.[0-9a-f]{40,}
pat. [\w-]{20,24}\.[0-9a-f]{20,}\.[\w-]{16,}
pat- [a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
pul- [0-9a-f]{40}
bk (?:ua|ct|aj|ar|gt)_[0-9a-f]{30,}
CCI (?:PAT|PRJ)_[\w-]{30,}
wandb_v1_ \w{30,}
pcsk_ \w{30,}
fc- [0-9a-f]{32}(?![0-9a-f])
pa- [\w-]{40,}
al- [\w-]{40,}
r8_ [A-Za-z0-9]{30,}
fw_ [A-Za-z0-9]{20,}
jina_ [\w-]{40,}
tvly- (?:dev-|prod-)?[A-Za-z0-9]{24,}
BSA [\w-]{27}(?![\w-])
apify_api_ [A-Za-z0-9]{30,}
sk-lf- [0-9a-f-]{36}
sb_secret_ [\w-]{20,}
re_ [A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}
PMAK- [0-9a-f]{24}-[0-9a-f]{34}
figd_ [\w-]{30,}
figo_ [\w-]{30,}
lin_oauth_ [\w-]{24,}
secret_ [A-Za-z0-9]{43}(?!\w)
ATATT3 [\w=-]{50,}
ATCTT3 [\w=-]{50,}
ATBB [A-Za-z0-9]{28,}
sntrys_ [\w+/=-]{40,}
sntryu_ [0-9a-f]{60,}
NR (?:AK|II|JS|RA)-[A-Za-z0-9-]{24,}
dt0 [cs]\d\d\.[A-Z0-9]{20,}\.[A-Z0-9]{60,}
hc (?:aik|amk|bik|xik|xlk|alk)_\w{24,}
sq0 (?:atp|csp|idp)-[\w-]{20,}
EAAA [\w-]{56,}
EAA [A-Za-z0-9]{90,}
AAAAAAAAAAAAAAAAAAAAA [\w%]{40,}
access- (?:sandbox|production|development)-[0-9a-f-]{36}
sk.eyJ [\w-]{40,}\.[\w-]{16,}
CFPAT- [\w-]{40,}
duffel_ (?:test|live)_[\w-]{40,}
EZ [AT]K[A-Za-z0-9]{50,}
FLWSECK [_A-Z]{0,5}-[\w-]{12,}
HRKU- [\w-]{36,}
nfp_ [A-Za-z0-9]{30,}
pnu_ [A-Za-z0-9]{30,}
rubygems_ [0-9a-f]{40,}
xkeysib- [0-9a-f]{40,}-\w{8,}
xsmtpsib- [0-9a-f]{40,}-\w{8,}
shippo_ (?:live|test)_[0-9a-f]{40}
sq (?:p|u|a)_[0-9a-f]{40}
sgp_ \w{36,}
sgd_ \w{36,}
tfp_ [\w.=-]{40,}
AQVN [\w-]{35,}
dckr_oat_ [\w-]{24,}
AKCp [A-Za-z0-9]{60,}
cmVmdGtu [A-Za-z0-9+/]{50,}={0,2}
oy2 [a-z0-9]{43}(?![a-z0-9])
cio [A-Za-z0-9]{32}(?!\w)
LTAI [A-Za-z0-9]{12,26}(?!\w)
AKID [A-Za-z0-9]{32}(?!\w)
api_org_ [A-Za-z0-9]{30,}
nvapi- [\w-]{50,}
tr_ (?:dev|prod|stg|preview)_[A-Za-z0-9]{16,}
signkey- (?:prod|test)-[0-9a-f]{40,}
secret- (?:test|live)-[\w=-]{24,}
dd [pow]_[A-Za-z0-9]{36}
aio_ [A-Za-z0-9]{28}(?!\w)
gl (?:ft|imt|agent|ffct|rtr|wt|sc)-[\w-]{20,}
GR1348941 [\w-]{20,}
AVNS_ [\w-]{16,}
mdb_sa_sk_ [\w-]{30,}
crsr_ [0-9a-f]{40,}
key_ [0-9a-f]{60,}
whop_ [\w-]{30,}
rnd_ [A-Za-z0-9]{28,}
rpa_ [A-Z0-9]{36,}
composio_ [\w-]{24,}
e2b_ [0-9a-f]{36,}
ctx7sk- [0-9a-f-]{30,}
xau_ [A-Za-z0-9]{30,}
st. [0-9a-f]{24}\.[0-9a-f]{30,}\.[0-9a-f]{30,}
hvr. [\w-]{24,}
"""
SERVICE_KEYS: Final = tuple(tuple(row.split(" ", 1)) for row in _ROWS.split("\n") if row)

KEYS_WITH_A_MARK: Final = (
    ("8Q~", r"(?<![\w~.-])[\w~.-]{3}8Q~[\w~.-]{28,}"),
    ("7Q~", r"(?<![\w~.-])[\w~.-]{3}7Q~[\w~.-]{28,}"),
    ("JQQJ99", r"(?<![A-Za-z0-9])[A-Za-z0-9]{20,80}JQQJ99[A-Za-z0-9]{10,}"),
    (".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}"),
    ("-us", r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}(?!\w)"),
)
"""The same of keys whose fixed characters are within them."""
