"""Statements on client keys."""

from typing import Final

_OF_SESSION: Final = """
    owner_key = :owner AND session_key = (SELECT key FROM sessions WHERE owner_key = :owner AND id = :session)
    AND type = :type
"""
_OF_AGENT: Final = """
    owner_key = :owner AND agent_key = (SELECT key FROM agents WHERE owner_key = :owner AND id = :agent)
    AND session_key IS NULL AND type = :type
"""
SELECT_KEYS_OF_SESSION: Final = f"SELECT key FROM records WHERE {_OF_SESSION} AND client_key = ANY(:client_keys)"
SELECT_KEYS_OF_AGENT: Final = f"SELECT key FROM records WHERE {_OF_AGENT} AND client_key = ANY(:client_keys)"
# ";" follows ":".
SELECT_CLIENT_KEYS_OF_SESSION: Final = f"""
SELECT client_key FROM records WHERE {_OF_SESSION} AND client_key >= :first AND client_key < :after
"""
SELECT_CLIENT_KEYS_OF_AGENT: Final = f"""
SELECT client_key FROM records WHERE {_OF_AGENT} AND client_key >= :first AND client_key < :after
"""
