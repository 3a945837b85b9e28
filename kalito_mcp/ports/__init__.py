"""What the services need from the outside, as Protocols. One file for each noun; no driver, no SQL, no HTTP."""
