"""Language: words and terms, spelling, sentences, code blocks, and times in words."""
