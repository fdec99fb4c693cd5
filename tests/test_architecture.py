"""Dependencies point one way, and every module says first what it is for. Read from the source, so that nothing need be run."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "gateway" / "mcpax"
MODULES = {
    ".".join(("mcpax", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path for path in PACKAGE.rglob("*.py")
}
TRANSPORTS_AND_WEB = ("mcp", "mcp_types", "starlette", "uvicorn", "serial", "serial_asyncio", "httpx", "httpcore", "anyio", "cobs", "cbor2")
PURE = (
    "mcpax.names",
    "mcpax.name_codec",
    "mcpax.capability",
    "mcpax.dns_names",
    "mcpax.nesting",
    "mcpax.errors",
    "mcpax.allowance",
    "mcpax.config",
    "mcpax.core.ownership",
    "mcpax.core.principal",
    "mcpax.core.results",
    "mcpax.link.messages",
    "mcpax.link.replay",
    "mcpax.link.tools",
    "mcpax.core.admission",
    "mcpax.core.budget",
    "mcpax.core.registration",
    "mcpax.core.registry",
    "mcpax.core.catalog",
    "mcpax.core.source",
    "mcpax.core.flow",
    "mcpax.core.presence",
    "mcpax.bridge.timing",
    "mcpax.bridge.counters",
    "mcpax.bridge.ports",
    "mcpax.bridge.toolset",
    "mcpax.bridge.frames",
    "mcpax.bridge.wire",
    "mcpax.bridge.maps",
    "mcpax.store.sqlite",
    "mcpax.store.etcd_wire",
    "mcpax.store.etcd_access",
    "mcpax.store.etcd_claims",
)
CORE_BUT_OWNERSHIP = tuple(module for module in MODULES if module.startswith("mcpax.core.") and module != "mcpax.core.ownership")
"""The core says what ownership is; a store that several share provides it."""
IO = ("asyncio", "socket", "threading", "subprocess", "selectors", "concurrent")


def below(module: str, *roots: str) -> bool:
    return any(module == root or module.startswith(root + ".") for root in roots)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it, as `package.module` and, for `from … import name`, with the name too."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import hides where it points"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    ("those", "forbidden"),
    [
        pytest.param(("mcpax.core",), TRANSPORTS_AND_WEB, id="core knows no transport, web framework or SDK"),
        pytest.param(
            ("mcpax.core",), ("mcpax.bridge", "mcpax.front", "mcpax.store", "mcpax.config", "mcpax.gateway"), id="core is the bottom"
        ),
        pytest.param(("mcpax.bridge",), ("mcpax.front", "mcpax.gateway", "mcpax.config", "mcpax.store"), id="a bridge knows no front"),
        pytest.param(("mcpax.bridge",), ("mcp", "mcp_types", "starlette", "uvicorn", "httpx"), id="a bridge knows no web"),
        pytest.param(("mcpax.front",), ("mcpax.bridge", "mcpax.gateway", "mcpax.config", "mcpax.store"), id="a front knows no bridge"),
        pytest.param(("mcpax.front",), ("serial", "serial_asyncio", "cobs", "cbor2"), id="a front knows no device"),
        pytest.param(("mcpax.store",), (*CORE_BUT_OWNERSHIP, "mcpax.bridge", "mcpax.front"), id="the store knows no sessions"),
        pytest.param(("mcpax.store.sqlite",), ("mcpax.core",), id="what one machine keeps knows no tree"),
        pytest.param(PURE, IO, id="pure modules do no I/O"),
        pytest.param(("mcpax.bridge.wire",), ("mcpax.core",), id="the wire format knows nothing above"),
        pytest.param(
            ("mcpax.names", "mcpax.name_codec", "mcpax.capability", "mcpax.errors", "mcpax.allowance"),
            ("mcpax.core", "mcpax.bridge", "mcpax.front", "mcpax.store", "mcpax.config"),
            id="small modules stand alone",
        ),
    ],
)
def test_dependencies_point_one_way(those: tuple[str, ...], forbidden: tuple[str, ...]) -> None:
    looked_at = [module for module in MODULES if below(module, *those)]
    assert looked_at, "nothing was looked at"
    wrong = {(module, name) for module in looked_at for name in imports(MODULES[module]) if below(name, *forbidden)}
    assert not wrong


def test_nothing_imports_the_command_line() -> None:
    wrong = {
        (m, n) for m, path in MODULES.items() if not below(m, "mcpax.cli", "mcpax.__main__") for n in imports(path) if below(n, "mcpax.cli")
    }
    assert not wrong


def test_no_import_goes_in_a_circle() -> None:
    graph = {module: {name for name in imports(path) if name in MODULES and name != module} for module, path in MODULES.items()}
    while leaves := {module for module, needs in graph.items() if not needs & graph.keys()}:
        graph = {module: needs for module, needs in graph.items() if module not in leaves}
    assert not graph


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_first_what_it_is_for(module: str) -> None:
    docstring = ast.get_docstring(ast.parse(MODULES[module].read_bytes()))
    assert docstring, "no docstring"
    first = docstring.partition("\n\n")[0]
    assert first.endswith((".", "?")), first
