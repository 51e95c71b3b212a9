"""The official Composio client against the stand-in: composio_witness.py ORIGIN KEY.

It connects an account, finds and runs tools, makes a trigger and hears it fire. One line of JSON says what it saw.
"""

import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

from composio import Composio
from composio.exceptions import ToolNotFoundError

ORIGIN, KEY = sys.argv[1:]
USER = "user-1"
received = []


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        received.append((dict(self.headers.items()), body))
        self.send_response(202)
        self.end_headers()

    def log_message(self, *_):
        pass


def post(url, body, content_type):
    request = urllib.request.Request(url, body.encode(), {"content-type": content_type})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def connect(composio):
    config = composio.auth_configs.create("github", {"type": "use_composio_managed_auth"})
    request = composio.connected_accounts.link(USER, config.id)
    assert composio.connected_accounts.get(request.id).status == "INITIATED"
    post(request.redirect_url, "answer=allow", "application/x-www-form-urlencoded")
    account = request.wait_for_connection(timeout=10)
    assert account.status == "ACTIVE", account
    return account.id


def run_tools(composio):
    tools = composio.tools.get(USER, toolkits=["github"], limit=100)
    by_name = {tool["function"]["name"]: tool["function"] for tool in tools}
    assert "owner" in by_name["GITHUB_CREATE_AN_ISSUE"]["parameters"]["required"], by_name

    found = composio.tools.get(USER, search="front page stories", limit=1)
    assert found[0]["function"]["name"] == "HACKERNEWS_GET_FRONTPAGE", found

    arguments = {"owner": "o", "repo": "r", "title": "A title"}
    done = composio.tools.execute("GITHUB_CREATE_AN_ISSUE", arguments, user_id=USER, version="20261020_00")
    assert done["successful"] and done["error"] is None and done["data"]["title"] == "A title", done

    wrong = composio.tools.execute("GITHUB_CREATE_AN_ISSUE", {"owner": "o"}, user_id=USER, version="20261020_00")
    assert not wrong["successful"] and "repo" in wrong["error"], wrong

    try:
        composio.tools.execute("GITHUB_NO_SUCH_TOOL", {}, user_id=USER, version="20261020_00")
    except ToolNotFoundError:
        pass
    else:
        raise AssertionError("a tool that does not exist ran")
    return sorted(by_name)


def hear_a_trigger(composio, account):
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/events"
    subscription = composio.webhooks.subscriptions.set(webhook_url=address)

    config = {"owner": "o", "repo": "r"}
    made = composio.triggers.create("GITHUB_COMMIT_EVENT", connected_account_id=account, trigger_config=config)
    active = composio.triggers.list_active(connected_account_ids=[account]).items
    assert [trigger.id for trigger in active] == [made.trigger_id], active

    return [verified(composio, subscription, made.trigger_id, version) for version in ("V3", "V2", "V1")]


def verified(composio, subscription, trigger, version):
    composio.webhooks.subscriptions.update(subscription["id"], version=version)
    answer = post(f"{ORIGIN}/fake/emit/{trigger}", json.dumps({"message": "A commit"}), "application/json")
    assert json.loads(answer) == {"statuses": [202]}, answer
    headers, body = received.pop()
    headers = {name.lower(): value for name, value in headers.items()}
    event = composio.triggers.verify_webhook(
        id=headers["webhook-id"],
        payload=body,
        secret=subscription["secret"],
        signature=headers["webhook-signature"],
        timestamp=headers["webhook-timestamp"],
    )
    assert event["payload"]["trigger_slug"] == "GITHUB_COMMIT_EVENT", event
    assert event["payload"]["payload"]["message"] == "A commit", event
    return str(getattr(event["version"], "value", event["version"]))


def main():
    composio = Composio(api_key=KEY, base_url=ORIGIN, allow_tracking=False)
    account = connect(composio)
    listed = composio.connected_accounts.list(user_ids=[USER], statuses=["ACTIVE"]).items
    assert [(item.id, item.toolkit.slug) for item in listed] == [(account, "github")], listed
    assert composio.toolkits.get("acme_crm").name == "Acme CRM"
    tools = run_tools(composio)
    versions = hear_a_trigger(composio, account)
    session = composio.create(user_id=USER)
    print(json.dumps({"account": account, "tools": tools, "webhooks": versions, "session": session.session_id}))


main()
