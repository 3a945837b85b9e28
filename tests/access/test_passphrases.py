"""How a passphrase is stored."""

import sqlite3
from contextlib import closing
from hashlib import scrypt
from pathlib import Path

import pytest

from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database

pytestmark = pytest.mark.anyio
WORDS = "five quiet otters at dawn"


@pytest.mark.usefixtures("full_cost")
async def test_a_passphrase_is_stored_as_what_scrypt_makes_of_it_at_the_full_cost(tmp_path: Path) -> None:
    database = lay_empty_database(tmp_path / "memory.db")
    async with open_memory(database) as memory:
        await memory.access.sign_in.passphrases.set("local", WORDS)
    with closing(sqlite3.connect(database)) as connection:
        [[salt, kept, n, r, p]] = connection.execute("SELECT salt, hash, n, r, p FROM passphrases")
    assert (n, r, p, len(salt)) == (32_768, 8, 3, 16)
    assert kept == scrypt(WORDS.encode(), salt=salt, n=n, r=r, p=p, maxmem=1 << 28, dklen=32)
    assert WORDS.encode() not in database.read_bytes()
