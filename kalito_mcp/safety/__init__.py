"""Keeps secrets out of the memory, and instructions and markers in remembered text from being obeyed."""
