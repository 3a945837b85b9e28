"""A memory on another machine: what hosts call here is passed on to the home server, and waits if that is away."""
