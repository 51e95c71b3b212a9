"""Toolkits and tools: list, search, describe, run by user, several accounts, typed errors, providers."""

from types import SimpleNamespace

import composio_client
from composio.exceptions import ToolNotFoundError
from composio_anthropic import AnthropicProvider
from composio_langchain import LangchainProvider

GET, MAKE = "FAKE_GET_A_THING", "FAKE_MAKE_A_THING"
THING = {"owner": "o", "path": "p"}


def run(composio, slug, arguments, **options):
    return composio.tools.execute(slug, arguments, dangerously_skip_version_check=True, **options)


def key_of(yard, done):
    assert done["successful"] and done["error"] is None, done
    return yard.key_used()


def browse(composio):
    toolkit = composio.toolkits.get("fake")
    assert toolkit.slug == "fake" and toolkit.meta.tools_count > 3, toolkit
    assert {detail.mode for detail in toolkit.auth_config_details} >= {"API_KEY", "BASIC", "BEARER_TOKEN"}, toolkit
    listed = composio.toolkits.list(limit=5)
    assert len(listed.items) == 5 and listed.next_cursor, listed
    rest = composio.toolkits.list(limit=1000, cursor=listed.next_cursor)
    slugs = [item.slug for item in listed.items + rest.items]
    assert len(slugs) == len(set(slugs)) == listed.total_items and "googlecalendar" in slugs, slugs
    assert {item.slug for item in composio.toolkits.get_many(["fake", "GITHUB"])} == {"fake", "github"}
    assert len(composio.toolkits.list_categories()) > 3
    fields = composio.toolkits.get_connected_account_initiation_fields("fake", "API_KEY", required_only=True)
    assert {field.name for field in fields} == {"base", "api_key"}, fields
    fields = composio.toolkits.get_auth_config_creation_fields("github", "OAUTH2")
    assert {field.name for field in fields} == {"client_id", "client_secret"}, fields
    try:
        composio.toolkits.get("no-such-toolkit")
        raise AssertionError("an unknown toolkit is an error")
    except composio_client.NotFoundError as error:
        assert error.details["slug"] == "Toolkit_ToolkitNotFound" and error.details["status"] == 404, error.details
    return len(slugs)


def find(composio):
    tools = composio.tools.get("alice", toolkits=["FAKE"], limit=100)
    names = {tool["function"]["name"]: tool["function"] for tool in tools}
    assert {"owner", "path"} <= set(names[GET]["parameters"]["required"]), names
    found = composio.tools.get("alice", search="read a fake thing", limit=3)
    assert found[0]["function"]["name"] == GET and len(found) <= 3, found
    named = composio.tools.get_raw_composio_tools(tools=[MAKE, "FAKE_NOTHING", GET])
    assert [tool.slug for tool in named] == [MAKE, GET], named
    tool = composio.tools.get_raw_composio_tool_by_slug(GET)
    assert "readOnlyHint" in tool.tags and tool.version == tool.available_versions[0] and tool.toolkit.slug == "fake", tool
    try:
        composio.tools.get_raw_composio_tool_by_slug("FAKE_NOTHING")
        raise AssertionError("an unknown tool is an error")
    except ToolNotFoundError:
        pass
    return tool.version


def execute(yard, composio, version):
    yard.connect(None, "sk-project-1")
    yard.connect("bob", "sk-bob-12345")
    yard.connect("alice", "sk-alice-old", "old")
    yard.connect("alice", "sk-alice-new", "new")
    assert key_of(yard, run(composio, GET, THING)) == "sk-project-1"
    assert key_of(yard, run(composio, GET, THING, user_id="default")) == "sk-project-1"
    assert key_of(yard, run(composio, GET, THING, user_id="bob")) == "sk-bob-12345"
    assert key_of(yard, run(composio, GET, THING, user_id="alice")) == "sk-alice-new"
    assert key_of(yard, composio.tools.execute(GET, THING, user_id="alice", version=version)) == "sk-alice-new"
    try:
        composio.tools.execute(GET, THING, user_id="alice", version="19990101_00")
        raise AssertionError("another version is an error")
    except composio_client.NotFoundError as error:
        assert error.details["code"] == 2401, error.details
    wrong = run(composio, GET, {"owner": "o"}, user_id="alice")
    assert not wrong["successful"] and "path" in wrong["error"], wrong
    try:
        run(composio, GET, THING, user_id="carol")
        raise AssertionError("whoever has no account is told so")
    except composio_client.BadRequestError as error:
        assert error.details["code"] == 1803 and "carol" in error.details["message"], error.details
    return wrong["error"]


def providers(yard):
    composio = yard.composio(provider=LangchainProvider())
    tool = composio.tools.get("bob", tools=[GET])[0]
    assert key_of(yard, tool.invoke(THING)) == "sk-bob-12345"
    composio = yard.composio(provider=AnthropicProvider())
    tool = composio.tools.get("alice", tools=[GET])[0]
    assert tool["name"] == GET and tool["input_schema"]["type"] == "object", tool
    call = SimpleNamespace(type="tool_use", id="1", name=GET, input=THING)
    assert key_of(yard, composio.provider.execute_tool_call("alice", call)) == "sk-alice-new"
    composio = yard.composio()
    function = SimpleNamespace(name=GET, arguments='{"owner": "o", "path": "p"}')
    call = SimpleNamespace(type="function", id="1", function=function)
    assert key_of(yard, composio.provider.execute_tool_call("bob", call)) == "sk-bob-12345"


def walk(yard):
    composio = yard.composio()
    toolkits = browse(composio)
    version = find(composio)
    error = execute(yard, composio, version)
    providers(yard)
    try:
        type(yard)(yard.url, "nonsense", yard.fake).composio().toolkits.list()
        raise AssertionError("a wrong key is an error")
    except composio_client.AuthenticationError as refused:
        assert refused.status_code == 401 and refused.details["status"] == 401, refused
    return {"toolkits": toolkits, "version": version, "error": error}
