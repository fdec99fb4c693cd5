"""Words that messages of several parts share. Knows nothing of what they tell."""

from __future__ import annotations

HOW_TO_START = "mcpax serve --config …, or systemctl start mcpax-gateway where it is installed as a service"


def counted(number: int, noun: str) -> str:
    """`1 device`, `2 devices`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
