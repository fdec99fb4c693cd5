"""`mcpax stdio`, as a client starts it."""

from __future__ import annotations

from click.testing import CliRunner
from mcp import Client, StdioServerParameters

from mcpax.cli.main import main
from tests.cli.program import MCPAX
from tests.cli.test_client import unused_url


async def test_a_client_on_stdio_gets_through(gateway_url: str) -> None:
    for names, tool in (("auto", "edge__env-sensor__read_climate"), ("dotted", "edge.env-sensor.read_climate")):
        arguments = ["stdio", "--names", names, "--url", gateway_url]
        async with Client(StdioServerParameters(command=str(MCPAX), args=arguments)) as client:
            assert tool in [each.name for each in (await client.list_tools()).tools]
            result = await client.call_tool(tool, {})
            assert result.structured_content is not None
            assert set(result.structured_content) == {"temperature", "humidity"}


def test_no_gateway_is_told_on_stderr_only(run: CliRunner) -> None:
    url = unused_url()
    result = run.invoke(main, ["stdio", "--url", url])
    assert result.exit_code == 1
    assert f"No gateway answers at {url}/mcp" in result.stderr
    assert result.stdout == ""
