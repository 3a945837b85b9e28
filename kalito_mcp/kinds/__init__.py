"""What kind of sentence it is, whether it is worth keeping, and whose it is."""
