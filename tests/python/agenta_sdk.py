"""The SDK of Agenta, unmodified, against a running server: agenta_sdk.py PART.

AGENTA_HOST, AGENTA_API_URL and AGENTA_API_KEY lead there. PART is `tools` (the resolver, secrets, and the generated client for tools and
triggers) or `managers` (the generated client for workflows, environments and applications, and the managers). The last line of the output is
JSON that says what was seen; anything that is not as it must be is a failure.
"""

import asyncio
import json
import os
import sys

import agenta as ag
from agenta.client import AgentaApi
from agenta.client import types as t
from agenta.sdk.agents.platform import resolve_tools

URL, KEY = os.environ["AGENTA_API_URL"], os.environ["AGENTA_API_KEY"]
VERSION = tuple(int(part) for part in ag.__version__.split(".")[:2])
client = AgentaApi(base_url=URL, api_key=f"ApiKey {KEY}")

GATEWAY = {"type": "gateway", "provider": "composio", "integration": "github", "action": "CREATE_AN_ISSUE", "connection": "main"}
WHOLE = {
    "type": "gateway_connection",
    "connection": {"provider": "composio", "integration": "github", "slug": "main"},
    "policy": {"permissions": {"default": "allow_reads", "tools": {"CREATE_AN_ISSUE": "ask"}}},
}


def resolver():
    """Every kind of tool, as an agent's run resolves them."""
    configs = [
        GATEWAY,
        {**GATEWAY, "action": "NOT_THERE", "name": "gone"},
        {"type": "reference", "slug": "lookup"},
        {"type": "platform", "op": "discover_tools"},
        {"type": "client", "name": "pick"},
        {"type": "code", "name": "sum", "script": "print(1)", "secrets": ["crm_key"]},
    ]
    found = asyncio.run(resolve_tools(configs))
    specs = {spec.name: spec for spec in found.tool_specs}
    assert found.tool_callback.endpoint == f"{URL}/tools/call", found.tool_callback
    assert found.tool_callback.authorization == f"ApiKey {KEY}"
    assert any("NOT_THERE" in warning or "gone" in warning for warning in found.warnings), found.warnings
    assert specs["sum"].env == {"crm_key": "s3cr3t-of-the-crm"}, "a named secret reaches the tool"
    return {"tools": sorted(specs), "lookup": specs["lookup"].call_ref}


def whole_integration():
    """A config of newer versions: one integration with all that it can do."""
    if VERSION < (0, 120):
        return None
    found = asyncio.run(resolve_tools([WHOLE], permission_default="ask")) if takes_mode() else asyncio.run(resolve_tools([WHOLE]))
    policy = found.gateway_policy.integrations["github"]
    said = {key: tool.permission for key, tool in policy.tools.items()}
    assert [spec.call_ref for spec in found.tool_specs] == ["gateway.search", "gateway.run"]
    assert policy.connection == "main" and said["CREATE_AN_ISSUE"] == "ask", said
    return {"version": policy.toolkit_version, "tools": len(said), "allowed": sorted(key for key, word in said.items() if word == "allow")[:1]}


def takes_mode():
    import inspect

    return "permission_default" in inspect.signature(resolve_tools).parameters


def secrets():
    """The vault by the generated client: a value goes in, and comes out for a key that may read it."""
    given = {"kind": "custom_secret", "data": {"secret": {"format": "text", "content": "one"}}}
    made = client.secrets.create_secret(slug="from-the-sdk", header=t.Header(name="From the SDK"), secret=t.SecretDto(**given))
    assert made.slug == "from-the-sdk" and made.kind == "custom_secret", made
    listed = client.secrets.list_secrets()
    assert {secret.slug for secret in listed} == {"crm_key", "service_key", "from-the-sdk"}, listed
    assert not any(secret.data.secret.content for secret in listed), "a list shows no values"
    assert client.secrets.read_secret("from-the-sdk").data.secret.content == "one"
    client.secrets.delete_secret(made.id)
    return len(listed)


def tools_and_triggers():
    """The generated client for tools and triggers: every answer is of the shape that it knows."""
    tools, triggers = client.tools, client.triggers
    providers = {provider.key for provider in tools.list_tool_providers().providers}
    assert {"native", "composio"} <= providers, providers
    tools.fetch_tool_provider("composio")
    assert tools.list_tool_integrations("composio", search="github").count >= 1
    assert tools.fetch_tool_integration("composio", "github").integration.key == "github"
    actions = tools.list_tool_actions("composio", "github", limit=5)
    action = tools.fetch_tool_action("composio", "github", actions.actions[0].key).action
    connection = tools.query_tool_connections(integration_key="github").connections[0]
    assert tools.fetch_tool_connection(connection.id).connection.slug == "main"
    assert tools.discover_tool_capabilities(use_cases=["open an issue on github"]).capabilities
    called = tools.call_tool(data=t.ToolCallData(id="1", type="function", function={"name": "workflow.variant.lookup", "arguments": {"q": 1}}))
    assert called.call.status.code == "STATUS_CODE_OK" and json.loads(called.call.data.content) == {"q": 1}, called
    assert triggers.list_trigger_providers().count >= 1
    triggers.list_trigger_events("composio", "github", limit=5)
    assert triggers.discover_triggers(use_cases=["a star is added on github"]).capabilities is not None
    data = {"event_key": "tick", "schedule": "0 8 * * *", "references": {"workflow": {"slug": "lookup"}}}
    schedule = triggers.create_trigger_schedule(schedule=t.TriggerScheduleCreate(name="daily", data=data)).schedule
    assert triggers.stop_trigger_schedule(schedule.id).schedule.flags.is_active is False
    assert triggers.query_trigger_schedules().count == 1
    triggers.delete_trigger_schedule(schedule.id)
    assert triggers.list_trigger_deliveries().count == 0
    assert client.access.check_permissions(action="run_service", resource_type="service")["effect"] == "allow"
    return action.key


def workflows_and_environments():
    """The generated client for workflows, environments and applications."""
    flows = client.workflows
    flow = flows.create_workflow(workflow=t.WorkflowCreate(slug="flow", name="Flow", tags={"a": "b"})).workflow
    variant = flows.create_workflow_variant(workflow_variant=t.WorkflowVariantCreate(workflow_id=flow.id, slug="flow-main")).workflow_variant
    flows.create_workflow_revision(workflow_revision=t.WorkflowRevisionCreate(workflow_id=flow.id, workflow_variant_id=variant.id, slug="flow-0"))
    commit = t.WorkflowRevisionCommit(workflow_id=flow.id, workflow_variant_id=variant.id, slug="flow-1", data={"parameters": {"greeting": "hi"}})
    revision = flows.commit_workflow_revision(workflow_revision=commit).workflow_revision
    assert (revision.slug, revision.version) == ("flow-1", "1"), revision
    assert flows.edit_workflow_variant(variant.id, workflow_variant=t.WorkflowVariantEdit(id=variant.id, name="Main")).workflow_variant.name == "Main"
    assert flows.query_workflows(workflow_slugs=["flow"], limit=1).count == 1
    assert flows.query_workflows(tags='{"a": "other"}').count == 0
    resolved = flows.resolve_workflow_revision(workflow_revision_ref=t.Reference(id=revision.id))
    assert resolved.resolution_info.references_used == [] and resolved.workflow_revision.data.parameters == {"greeting": "hi"}
    log = flows.log_workflow_revisions(workflow_revisions=t.WorkflowRevisionsLog(workflow_variant_id=variant.id))
    assert log.count == 2, log
    environments = client.environments
    place = environments.create_simple_environment(environment=t.SimpleEnvironmentCreate(slug="canary", name="Canary")).environment
    flows.deploy_workflow_revision(workflow_revision_ref=t.Reference(id=revision.id), environment_ref=t.Reference(slug="canary"))
    deployed = flows.retrieve_workflow_revision(workflow_ref=t.Reference(slug="flow"), environment_ref=t.Reference(slug="canary"))
    assert deployed.workflow_revision.id == revision.id
    assert environments.fetch_simple_environment(place.id).environment.slug == "canary"
    applications = client.applications
    made = applications.create_simple_application(application=t.SimpleApplicationCreate(slug="app-by-client", name="App")).application
    assert applications.fetch_simple_application(made.id).application.slug == "app-by-client"
    flows.archive_workflow(flow.id)
    return log.count


def managers():
    """The managers: create, commit, deploy, fetch by environment, delete."""
    ag.init(host=os.environ["AGENTA_HOST"], api_key=KEY)
    app = ag.AppManager.create(app_slug="my-app")
    assert app.app_slug == "my-app" and app.app_id, app
    parameters = {"temperature": 0.5}
    made = ag.VariantManager.create(app_slug="my-app", variant_slug="careful", parameters=parameters)
    assert made.variant_slug == "careful", made
    again = ag.VariantManager.commit(app_slug="my-app", variant_slug="careful", parameters={"temperature": 0.1})
    assert again.variant_version == made.variant_version + 1, (made, again)
    ag.DeploymentManager.deploy(app_slug="my-app", variant_slug="careful", environment_slug="production")
    fetched = ag.ConfigManager.get_from_registry(app_slug="my-app", environment_slug="production")
    assert fetched["temperature"] == 0.1, fetched
    older = ag.ConfigManager.get_from_registry(app_slug="my-app", variant_slug="careful", variant_version=made.variant_version)
    assert older["temperature"] == 0.5, older
    assert [variant.variant_slug for variant in ag.VariantManager.list(app_slug="my-app")].count("careful") == 1
    history = ag.VariantManager.history(app_slug="my-app", variant_slug="careful")
    assert len(history) >= 2, history
    ag.VariantManager.delete(app_slug="my-app", variant_slug="careful")
    assert "my-app" in [found.app_slug for found in ag.AppManager.list()]
    ag.AppManager.delete(app_id=app.app_id)
    assert "my-app" not in [found.app_slug for found in ag.AppManager.list()]
    return len(history)


PARTS = {
    "tools": [resolver, whole_integration, secrets, tools_and_triggers],
    "managers": [workflows_and_environments, managers],
}

seen = {part.__name__: part() for part in PARTS[sys.argv[1]]}
print(json.dumps({"version": ag.__version__, **seen}))
