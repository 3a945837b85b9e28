"""Protocols of everything that the services need from outside. One file for each noun; no driver, no SQL, no HTTP."""
