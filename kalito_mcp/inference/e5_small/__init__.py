"""multilingual-e5-small, run by numpy from the 4-bit file of an installed package."""
