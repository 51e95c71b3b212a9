"""The official Python client against a server: mcp_clients.py URL KEY PROGRAM.

Once in the newest revision and once with `initialize`, each over HTTP, and over stdio by way of PROGRAM. One line of JSON per client says what it saw.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

URL, KEY, PROGRAM = sys.argv[1:]


async def use(name, mode, server):
    asked = 0

    async def answer(context, params):
        nonlocal asked
        asked += 1
        return ElicitResult(action="accept", content={})

    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        tools, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break

        async def call(action, arguments):
            return await client.call_tool(f"tools__native__fake__{action}__main", arguments)

        read = await call("GET_A_THING", {"owner": "o", "path": "p"})
        wrong = await call("GET_A_THING", {})
        made = await call("MAKE_A_THING", {"title": name})
        print(
            json.dumps(
                {
                    "name": name,
                    "version": client.protocol_version,
                    "tools": sum("__fake__" in tool.name for tool in tools),
                    "read": read.structured_content,
                    "wrong": wrong.is_error,
                    "made": made.structured_content,
                    "asked": asked,
                }
            )
        )


async def main():
    stdio = StdioServerParameters(command=PROGRAM, args=["mcp", "--url", URL], env={**os.environ, "TOOLYARD_KEY": KEY})
    for mode in ["auto", "legacy"]:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http:
            await use(f"{mode}-http", mode, streamable_http_client(f"{URL}/mcp", http_client=http))
        await use(f"{mode}-stdio", mode, stdio)


asyncio.run(main())
