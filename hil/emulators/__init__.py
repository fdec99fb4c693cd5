"""Emulated boards: each one process that carries a pseudo terminal and takes its orders, line by line, on standard input."""
