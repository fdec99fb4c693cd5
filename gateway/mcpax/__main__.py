"""`python -m mcpax` is the command `mcpax`."""

from mcpax.cli.main import main

main(prog_name="mcpax")
