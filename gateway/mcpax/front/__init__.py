"""The side that faces MCP clients and operators: HTTP, stdio, the admin API. Depends on `core`; `core` does not know it."""
