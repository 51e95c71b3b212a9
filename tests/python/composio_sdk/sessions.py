"""Sessions of the tool router: made, changed and ended; search, meta tools, accounts, the fence, the MCP address, a provider."""

import asyncio

import composio_client
import httpx2
from composio import exceptions
from composio_langchain import LangchainProvider
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

GET, MAKE = "FAKE_GET_A_THING", "FAKE_MAKE_A_THING"
THING = {"owner": "o", "path": "p"}
META = ["COMPOSIO_SEARCH_TOOLS", "COMPOSIO_GET_TOOL_SCHEMAS", "COMPOSIO_MULTI_EXECUTE_TOOL", "COMPOSIO_MANAGE_CONNECTIONS"]


def refused(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind} was expected")


def names(tools):
    return [tool["function"]["name"] for tool in tools]


def connects(yard, composio):
    session = composio.create(user_id="carol", toolkits=["FAKE"])
    assert names(session.tools()) == META, names(session.tools())
    state = next(item for item in session.toolkits().items if item.slug == "fake")
    assert not state.connection.is_active and not state.is_no_auth, state
    error = refused(composio_client.BadRequestError, lambda: session.execute(GET, arguments=THING))
    assert error.details["code"] == 1803, error.details
    request = session.authorize("fake", callback_url=f"{yard.url}/health")
    assert request.redirect_url.startswith(yard.url) and request.id.startswith("ca_"), request
    yard.connect("carol", "sk-carol-123456")
    done = session.execute(GET, arguments=THING)
    assert done.result_type == "completed" and yard.key_used() == "sk-carol-123456", done
    state = next(item for item in session.toolkits(is_connected=True).items)
    assert state.slug == "fake" and state.connection.is_active and state.connection.auth_config.mode == "API_KEY", state
    return session


def uses(session):
    found = session.search(query="read a fake thing")
    assert found.success and found.results[0].primary_tool_slugs[0] == GET, found
    assert found.tool_schemas[GET].input_schema["type"] == "object" and found.tool_schemas[GET].has_full_schema, found
    assert found.toolkit_connection_statuses[0].has_active_connection, found
    several = session.execute_meta(
        "COMPOSIO_MULTI_EXECUTE_TOOL", arguments={"tools": [{"tool_slug": GET, "arguments": THING}, {"tool_slug": GET, "arguments": {}}]}
    )
    assert several.result_type == "failed" and several.error, several
    assert [one["response"]["successful"] for one in several.data["results"]] == [True, False], several
    managed = session.execute_meta("COMPOSIO_MANAGE_CONNECTIONS", arguments={"toolkits": ["fake"]})
    assert managed.data["results"]["fake"]["status"] == "active", managed
    wrong = session.execute(GET, arguments={})
    assert wrong.result_type == "failed" and "owner" in wrong.error, wrong
    bench = session.execute_meta("COMPOSIO_REMOTE_WORKBENCH", arguments={"code_to_execute": "1"})
    assert bench.result_type == "failed" and "workbench" in bench.error, bench


def fences(yard, composio):
    yard.connect("bob", "sk-bob-123456")
    session = composio.create(user_id="bob", toolkits={"enable": ["fake"]}, tools={"fake": [GET]}, preload={"tools": [GET]})
    assert names(session.tools()) == [*META, GET]
    refused(composio_client.PermissionDeniedError, lambda: session.execute(MAKE, arguments={"title": "x"}))
    refused(composio_client.PermissionDeniedError, lambda: session.authorize("github"))
    refused(composio_client.BadRequestError, lambda: composio.create(user_id="bob", toolkits=["no-such-toolkit"]))
    stolen = composio.connected_accounts.list(user_ids=["carol"]).items[0].id
    error = refused(composio_client.BadRequestError, lambda: session.execute(GET, arguments=THING, account=stolen))
    assert error.details["code"] == 1803, error.details
    refused(composio_client.BadRequestError, lambda: composio.create(user_id="bob", connected_accounts={"fake": stolen}))
    first = session.config_version
    config = session.update(tags={"enable": ["readOnlyHint"]}, expected_config_version=first)
    assert session.config_version == first + 1 and config.tags.enabled == ["readOnlyHint"] and config.toolkits.enabled == ["fake"], config
    refused(exceptions.SessionConfigConflictError, lambda: session.update(tags=None, expected_config_version=first))
    again = composio.use(session.session_id)
    assert again.config_version == session.config_version and again.config.user_id == "bob", again.config
    assert again.update(tags=None, tools=None).tags is None
    assert again.execute(MAKE, arguments={"title": "x"}).result_type == "completed"
    return session


def direct(composio):
    session = composio.create(user_id="bob", toolkits=["fake"], session_preset="direct_tools")
    listed = names(session.tools())
    assert GET in listed and not [name for name in listed if name.startswith("COMPOSIO_")], listed


def with_langchain(yard):
    composio = yard.composio(provider=LangchainProvider())
    tools = composio.create(user_id="carol", toolkits=["fake"], preload={"tools": [GET]}).tools()
    tool = next(tool for tool in tools if tool.name == GET)
    done = tool.invoke(THING)
    assert done["successful"] and yard.key_used() == "sk-carol-123456", done


async def speaks(yard, composio):
    session = composio.create(user_id="carol", toolkits=["fake"], preload={"tools": [GET]}, mcp=True)
    assert session.mcp.url.startswith(yard.url) and session.mcp.headers["x-api-key"] == yard.key, session.mcp
    async with httpx2.AsyncClient(headers=session.mcp.headers) as http:
        async with Client(streamable_http_client(session.mcp.url, http_client=http)) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            assert listed == [*META, GET], listed
            done = await client.call_tool(GET, THING)
            assert not done.is_error and yard.key_used() == "sk-carol-123456", done
            found = await client.call_tool("COMPOSIO_SEARCH_TOOLS", {"queries": [{"use_case": "read a fake thing"}]})
            assert found.structured_content["results"][0]["primary_tool_slugs"][0] == GET, found
    return len(listed)


def walk(yard):
    composio = yard.composio()
    session = connects(yard, composio)
    uses(session)
    fenced = fences(yard, composio)
    direct(composio)
    with_langchain(yard)
    listed = asyncio.run(speaks(yard, composio))
    assert fenced.delete()["deleted"]
    refused(composio_client.NotFoundError, lambda: composio.use(fenced.session_id))
    return {"listed": listed}
