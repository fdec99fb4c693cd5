"""One module per wire; each provides `mcpax.bridge.transport.Transport`."""
