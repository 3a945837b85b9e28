"""The memory: the verbs of the tools, and parts for everything else. `Memory` is the face of it."""

from kalito_mcp.memory.memory import Memory as Memory
