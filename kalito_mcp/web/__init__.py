"""What is served over HTTP besides MCP, and who may reach it."""
