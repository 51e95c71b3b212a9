"""Signs one request for every manifest with a webhook, and for schemes that the documentation of other providers describes.

Written against docs/integrations.md and the providers' documentation, not against the Rust code.
Usage: sign.py > requests.json
"""
import base64, glob, hashlib, hmac, json, os
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

URL, NOW = "https://toolyard.test/hooks/1", 1_700_000_000
SEED = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
# How each provider writes its time, where it has one.
TIMES = {"box": "2023-11-14T14:13:20-08:00", "webflow": "1700000000123", "hubspot": "1700000000123", "zendesk-signed": "2023-11-14T22:13:20Z"}
DOCUMENTED = {
    "asana": {"signature": {"algorithm": "hmac-sha256", "header": "X-Hook-Signature", "signed": "{body}", "secret": "theirs"},
              "challenge": {"reply": {"header": "X-Hook-Secret"}, "secret": True}},
    "airtable": {"signature": {"algorithm": "hmac-sha256", "header": "X-Airtable-Content-MAC", "prefix": "hmac-sha256=", "signed": "{body}", "key": "base64"}},
    "discord": {"signature": {"algorithm": "ed25519", "header": "X-Signature-Ed25519", "signed": "{timestamp}{body}", "timestamp": "X-Signature-Timestamp", "secret": "theirs"}},
    "dropbox": {"signature": {"algorithm": "hmac-sha256", "header": "X-Dropbox-Signature", "signed": "{body}", "secret": "theirs"},
                "challenge": {"reply": {"query": "challenge"}}},
    "figma": {"signature": {"algorithm": "token", "pointer": "/passcode"}},
    "hubspot": {"signature": {"algorithm": "hmac-sha256", "header": "X-HubSpot-Signature-v3", "encoding": "base64", "signed": "{method}{url}{body}{timestamp}",
                              "timestamp": "X-HubSpot-Request-Timestamp", "secret": "theirs"}},
    "zendesk-signed": {"signature": {"algorithm": "hmac-sha256", "header": "X-Zendesk-Webhook-Signature", "encoding": "base64", "signed": "{timestamp}{body}",
                                     "timestamp": "X-Zendesk-Webhook-Signature-Timestamp", "secret": "theirs"}},
    "zoom": {"signature": {"algorithm": "hmac-sha256", "header": "x-zm-signature", "prefix": "v0=", "signed": "v0:{timestamp}:{body}", "timestamp": "x-zm-request-timestamp", "secret": "theirs"},
             "challenge": {"match": {"/event": "endpoint.url_validation"}, "reply": "/payload/plainToken", "body": {"plainToken": "{value}", "encryptedToken": "{hmac}"}}},
}


def put(body, pointer, value):
    node = body
    steps = pointer.split("/")[1:]
    for step in steps[:-1]:
        node = node.setdefault(step, {})
    node[steps[-1]] = value


def body_of(webhooks, event):
    body, headers = {"ok": True}, {}
    hook = (event or {}).get("webhook") or {}
    for name, value in [("event", hook.get("event")), ("id", "id-1")]:
        source = webhooks.get(name) or {}
        if value is not None and "header" in source:
            headers[source["header"]] = value
        if value is not None and "pointer" in source:
            put(body, source["pointer"], value)
    for pointer, value in (hook.get("match") or {}).items():
        put(body, pointer, value[0] if isinstance(value, list) else value)
    return body, headers


def key_of(signature):
    if signature["algorithm"] == "ed25519":
        return SEED.public_key().public_bytes_raw().hex(), None
    if signature.get("key") == "base64":
        raw = b"\x00a key of bytes"
        return "whsec_" + base64.b64encode(raw).decode(), raw
    return "hush", b"hush"


def sign(name, webhooks, event):
    signature = webhooks["signature"]
    body, headers = body_of(webhooks, event)
    secret, key = key_of(signature)
    algorithm, time = signature["algorithm"], TIMES.get(name, str(NOW))
    if "pointer" in signature:
        put(body, signature["pointer"], secret)
    raw = json.dumps(body, separators=(",", ":")).encode()
    if algorithm == "token" and "header" in signature:
        headers[signature["header"]] = signature.get("prefix", "") + secret
    elif algorithm == "basic":
        headers[signature["header"]] = "Basic " + base64.b64encode(f"toolyard:{secret}".encode()).decode()
    elif algorithm != "token":
        signed = b""
        rest = signature.get("signed", "{body}")
        values = {"body": raw, "timestamp": time.encode(), "id": b"id-1", "url": URL.encode(), "method": b"POST"}
        while rest:
            text, brace, rest = rest.partition("{")
            signed += text.encode()
            if brace:
                field, _, rest = rest.partition("}")
                signed += values[field]
        digest = SEED.sign(signed) if algorithm == "ed25519" else hmac.new(key, signed, {"hmac-sha256": hashlib.sha256, "hmac-sha1": hashlib.sha1}[algorithm]).digest()
        text = digest.hex() if signature.get("encoding", "hex") == "hex" else base64.b64encode(digest).decode()
        if "pairs" in signature:
            pairs = signature["pairs"]
            headers[signature["header"]] = f"{pairs['timestamp']}={time},{pairs['signature']}={text}"
        else:
            headers[signature["header"]] = signature.get("prefix", "") + text
        if "timestamp" in signature:
            headers[signature["timestamp"]] = time
    return {"event": event and event["key"], "headers": headers, "body": raw.decode()}


def vector(name, webhooks, events, shipped):
    """A shipped manifest is read by the test itself; the others come along."""
    own = {} if shipped else {"webhooks": webhooks}
    return {"name": name, "secret": key_of(webhooks["signature"])[0], **own, "requests": [sign(name, webhooks, event) for event in events or [None]]}


def manifests():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../integrations")
    for path in sorted(glob.glob(f"{folder}/*.yaml")):
        manifest = yaml.safe_load(open(path))
        if manifest.get("webhooks"):
            yield manifest


vectors = [vector(manifest["key"], manifest["webhooks"], [event for event in manifest["events"] if "webhook" in event], True)
           for manifest in manifests() if "signature" in manifest["webhooks"]]
vectors += [vector(name, webhooks, [], False) for name, webhooks in DOCUMENTED.items()]
print("[" + ",\n".join(json.dumps(vector, separators=(",", ":")) for vector in vectors) + "]")
