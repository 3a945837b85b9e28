"""Backends of `ports.store`, one package each. Only `wiring` imports them."""
