"""The built-in embedder all-MiniLM-L6-v2: its tokenizer, its encoder and one BLAS thread, with numpy alone."""
