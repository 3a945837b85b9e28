"""Who may connect: tokens, and signing in with a passphrase, by which a person lets a program in."""
