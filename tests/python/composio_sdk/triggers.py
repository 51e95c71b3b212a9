"""Triggers: types, instances by user, and the webhook that their events come to, verified by the SDK."""

import json
import queue
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import composio_client
from composio.exceptions import ComposioSDKTimeoutError, TriggerTypeNotFound, WebhookSignatureVerificationError

CHANGED = "FAKE_THING_CHANGED"


class Inbox:
    """Where the webhook leads."""

    def __init__(self):
        inbox = self
        self.posts = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                inbox.posts.put((dict(self.headers.items()), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self):
        return self.posts.get(timeout=30)


def verify(composio, post, secret):
    headers, body = post
    return composio.triggers.verify_webhook(
        id=headers["webhook-id"], payload=body, secret=secret, signature=headers["webhook-signature"], timestamp=headers["webhook-timestamp"]
    )


def post(url, body, event):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json", "webhook-id": event}, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 202, answer.status


def types(composio):
    listed = composio.triggers.list(toolkit_slugs=["fake"])
    assert {kind.slug: kind.type for kind in listed.items} == {CHANGED: "webhook", "FAKE_THING_MADE": "poll"}, listed
    kind = composio.triggers.get_type(CHANGED)
    assert kind.toolkit.slug == "fake" and kind.config["required"] == ["box"], kind
    assert {CHANGED, "WEBHOOK_RECEIVED", "GITHUB_ISSUE_OPENED"} <= set(composio.triggers.list_enum())


def instances(yard, composio):
    yard.connect("alice", "sk-alice-12345")
    yard.connect("bob", "sk-bob-12345")
    made = composio.triggers.create(CHANGED, user_id="alice", trigger_config={"box": "a"})
    again = composio.triggers.create(CHANGED, user_id="alice", trigger_config={"box": "a"})
    other = composio.triggers.create(CHANGED, user_id="bob", trigger_config={"box": "a"})
    assert made.trigger_id == again.trigger_id != other.trigger_id, (made, again, other)
    listed = composio.triggers.list_active(trigger_ids=[made.trigger_id])
    row = listed.items[0]
    assert listed.total_items == 1 and row.trigger_name == CHANGED and row.user_id == "alice" and row.trigger_config == {"box": "a"}, row
    pinned = composio.triggers.create(CHANGED, connected_account_id=row.connected_account_id, trigger_config={"box": "a"})
    assert pinned.trigger_id == made.trigger_id
    composio.triggers.disable(made.trigger_id)
    assert composio.triggers.list_active(trigger_ids=[made.trigger_id]).items == []
    disabled = composio.triggers.list_active(trigger_ids=[made.trigger_id], show_disabled=True).items[0]
    assert disabled.disabled_at, disabled
    composio.triggers.enable(made.trigger_id)
    assert len(composio.triggers.list_active(trigger_names=[CHANGED]).items) == 2
    assert composio.triggers.delete(made.trigger_id).trigger_id == made.trigger_id
    try:
        composio.triggers.delete(made.trigger_id)
        raise AssertionError("what is gone cannot be deleted")
    except composio_client.NotFoundError as error:
        assert error.details["status"] == 404, error.details
    try:
        composio.triggers.create("FAKE_NOTHING", user_id="alice")
        raise AssertionError("an unknown type is an error")
    except TriggerTypeNotFound:
        pass
    for user, config, code in [("carol", {"box": "a"}, 1803), ("alice", {"box": 7}, None)]:
        try:
            composio.triggers.create(CHANGED, user_id=user, trigger_config=config)
            raise AssertionError("no account, or a bad configuration")
        except composio_client.BadRequestError as error:
            assert code is None or error.details["code"] == code, error.details


def events(composio):
    inbox = Inbox()
    hook = composio.triggers.set_webhook_subscription(webhook_url=inbox.url)
    assert hook["version"] == "V3" and hook["enabled_events"] == ["composio.trigger.message"], hook
    made = composio.triggers.create("WEBHOOK_RECEIVED", user_id="alice").trigger_id
    url = composio.triggers.list_active(trigger_ids=[made]).items[0].state["url"]
    post(url, {"title": "hello"}, "e-1")
    first = inbox.next()
    seen = verify(composio, first, hook["secret"])
    event = seen["payload"]
    assert seen["version"].value == "V3" and event["id"] == made and event["user_id"] == "alice", seen
    assert event["trigger_slug"] == "WEBHOOK_RECEIVED" and event["payload"] == {"title": "hello"}, event
    try:
        verify(composio, (first[0], first[1].replace("hello", "other")), hook["secret"])
        raise AssertionError("another body is not signed")
    except WebhookSignatureVerificationError:
        pass
    # While a secret is changed, both hold.
    rotated = composio.client.webhook_subscriptions.rotate_secret(hook["id"])
    post(url, {"title": "again"}, "e-2")
    second = inbox.next()
    for secret in [hook["secret"], rotated.secret]:
        assert verify(composio, second, secret)["payload"]["payload"] == {"title": "again"}
    for version, number in [("V2", 3), ("V1", 4)]:
        changed = composio.triggers.set_webhook_subscription(webhook_url=inbox.url, version=version)
        assert changed["id"] == hook["id"] and changed["version"] == version, changed
        post(url, {"n": number}, f"e-{number}")
        seen = verify(composio, inbox.next(), rotated.secret)
        assert seen["version"].value == version and seen["payload"]["trigger_slug"] == "WEBHOOK_RECEIVED", seen
        assert seen["payload"]["payload"] == {"n": number}, seen
    kinds = [kind.event_type for kind in composio.client.webhook_subscriptions.list_event_types().items]
    assert "composio.connected_account.expired" in kinds, kinds
    composio.client.webhook_subscriptions.delete(hook["id"])
    assert composio.client.webhook_subscriptions.list().items == []
    try:
        composio.triggers.subscribe(timeout=2)
        raise AssertionError("events over another company's socket are not served")
    except (composio_client.APIStatusError, ComposioSDKTimeoutError) as error:
        assert getattr(error, "status_code", 501) == 501, error
    return event["trigger_slug"]


def walk(yard):
    composio = yard.composio()
    types(composio)
    instances(yard, composio)
    return {"event": events(composio)}
