"""Google's universal-sentence-encoder-multilingual 3, run by numpy from the files of an installed package."""
