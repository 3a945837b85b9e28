"""Access: tokens, and sign-in with a passphrase, by which a person gives a program access."""
