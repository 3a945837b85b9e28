"""Language models and token counters: adapters of `ports.chat` and `ports.tokens`. Only `wiring` imports them."""
