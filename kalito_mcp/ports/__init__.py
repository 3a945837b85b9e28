"""What the services need from the outside, as Protocols. One file a noun; no driver, no SQL, no HTTP."""
