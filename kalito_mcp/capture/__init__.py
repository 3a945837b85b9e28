"""What the hooks of hosts tell: conversations that are recorded without being asked for."""
