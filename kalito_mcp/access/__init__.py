"""Who may connect: tokens."""
