"""What one may ask of the memory, once for every face: MCP's tools, REST, and a page. `table` lists it.

A verb has the model of what is sent, with the words that explain each field, a function, and the permission that it
needs. A face adds where the arguments come from, and in which form it shows the result.
"""
