"""`kalito-mcp demo`: a real conversation through a real client, shown on a screen."""
