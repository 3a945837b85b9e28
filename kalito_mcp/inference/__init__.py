"""Language models, embedders and token counters: adapters of `ports`. Only `wiring` imports them."""
