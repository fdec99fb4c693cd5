"""Bridges: constrained boards become subservers. Everything a board says is untrusted."""
