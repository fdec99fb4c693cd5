"""Known keys as Markdown tables, for the pages in `docs` and the terminal. Adds no fact, and knows no key itself."""

from __future__ import annotations

from collections.abc import Iterable

from mcpax.documents.keys import Key, Kind, Table


def key_tables(tables: Iterable[Table]) -> str:
    return "\n".join(map(_table, tables))


def _table(table: Table) -> str:
    rows = [f"### `{table.name}`", "", table.help, "", "| key | kind | default | meaning |", "|---|---|---|---|"]
    rows += [f"| `{key.name}` | {_kind(key)} | {_default(key)} | {_meaning(key)} |" for key in table.keys]
    return "\n".join(rows) + "\n"


def _kind(key: Key) -> str:
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    if key.low is not None:
        return f"{key.kind}, {key.low} to {key.high}"
    if key.kind is Kind.TABLES:
        return f"{key.kind}, at most {key.high}"
    return str(key.kind)


def _default(key: Key) -> str:
    if key.required:
        return "**required**"
    if key.default is None:
        return ""
    return "empty" if key.default == "" else f"`{str(key.default).lower() if isinstance(key.default, bool) else key.default}`"


def _meaning(key: Key) -> str:
    return key.help + (f" Profile {key.profile} only." if key.profile else "")
