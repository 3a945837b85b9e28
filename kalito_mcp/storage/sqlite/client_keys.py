"""Statements on client keys."""

from typing import Final

_OF_SESSION: Final = """
    session_key = (SELECT key FROM sessions WHERE owner = :owner AND id = :session) AND type = :type
"""
_OF_AGENT: Final = """
    agent_key = (SELECT key FROM agents WHERE owner = :owner AND id = :agent) AND session_key IS NULL AND type = :type
"""
SELECT_KEYS_OF_SESSION: Final = f"""
SELECT key FROM records WHERE {_OF_SESSION} AND client_key IN (SELECT value FROM json_each(:client_keys))
"""
SELECT_KEYS_OF_AGENT: Final = f"""
SELECT key FROM records WHERE {_OF_AGENT} AND client_key IN (SELECT value FROM json_each(:client_keys))
"""
# ";" follows ":".
SELECT_CLIENT_KEYS_OF_SESSION: Final = f"""
SELECT client_key FROM records WHERE {_OF_SESSION} AND client_key >= :first AND client_key < :after
"""
SELECT_CLIENT_KEYS_OF_AGENT: Final = f"""
SELECT client_key FROM records WHERE {_OF_AGENT} AND client_key >= :first AND client_key < :after
"""
