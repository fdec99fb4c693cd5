"""How deep a program's stack has been, and how deep it would have been, had an interrupt come at the worst moment."""

from __future__ import annotations


class StackWatch:
    """Depths are bytes that are on the stack. `alignment` is what an interrupt rounds the depth up to before it adds its own."""

    def __init__(self, alignment: int = 1) -> None:
        self._alignment = alignment
        self._interrupted_at: int | None = None
        self.deepest = 0
        self._program = 0
        """While no interrupt was being handled."""
        self._interrupts = 0
        """What they have added to it."""

    @property
    def worst(self) -> int:
        """Had the deepest interrupt come when the program was deepest."""
        return self._aligned(self._program) + self._interrupts

    def note(self, depth: int) -> None:
        """How deep it is, or will be shortly. Must be told at the latest when an interrupt has ended."""
        if self._interrupted_at is not None and depth <= self._interrupted_at:
            self._interrupted_at = None  # all that the interrupt had put there is gone
        self.deepest = max(self.deepest, depth)
        if self._interrupted_at is None:
            self._program = max(self._program, depth)
        else:
            self._interrupts = max(self._interrupts, depth - self._aligned(self._interrupted_at))

    def interrupted(self, depth: int) -> None:
        """An interrupt is entered; so deep it was before."""
        if self._interrupted_at is None:
            self._interrupted_at = depth

    def _aligned(self, depth: int) -> int:
        return -(-depth // self._alignment) * self._alignment

    def forget(self) -> None:
        """Look for the deepest anew."""
        self.deepest = self._program = self._interrupts = 0
