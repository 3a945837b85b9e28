"""Frozen values and pure rules that every floor shares. Imports nothing but `kalito_mcp.errors`."""
