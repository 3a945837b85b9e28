"""Conversations that are recorded automatically, from the events of hosts' hooks."""
