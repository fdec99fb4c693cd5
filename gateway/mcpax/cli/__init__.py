"""The mcpax command: one module per subcommand."""
