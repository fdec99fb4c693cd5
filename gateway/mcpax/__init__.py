"""mcpax: microcontrollers as MCP tools."""

__version__ = "0.1.0"
