"""Writes kalito into the configuration of assistants (hosts), and takes it out again. One file of facts a host."""
