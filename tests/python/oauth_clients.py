"""Clients that nobody here wrote, from the address alone: oauth_clients.py URL KEY [CALLBACK].

authlib goes through every way to tokens; the official MCP client signs in, calls, refreshes and is turned away once it is revoked. One line of
JSON per client says what it saw. With CALLBACK a person is in front of a browser: a line says which address to `open`, and the address that they
were sent back to is read from standard input.
"""

import asyncio
import html
import json
import re
import sys
import time
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import httpx2
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import OAuth2Client
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

URL, KEY = sys.argv[1:3]
IS_ASKED = len(sys.argv) > 3
CALLBACK = sys.argv[3] if IS_ASKED else "http://127.0.0.1:61234/callback"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
# The usual five seconds are short for a machine on which everything else is tested as well.
PATIENCE = 60
browser = httpx.Client(timeout=PATIENCE)


def hidden(page):
    return {name: html.unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)}


def allow(address):
    """What a person does who says yes: the address that leads away from the server, or the last page."""
    if IS_ASKED:
        print(json.dumps({"open": address}), flush=True)
        return sys.stdin.readline().strip()
    page = browser.get(address)
    for _ in range(10):
        if page.is_redirect:
            address = urljoin(address, page.headers["location"])
            if not address.startswith(URL):
                return address
            page = browser.get(address)
        elif 'name="key"' in page.text:
            address = f"{URL}/sign-in"
            page = browser.post(address, data={**hidden(page.text), "key": KEY})
        elif 'value="allow"' in page.text:
            ticked = dict.fromkeys(re.findall(r'name="(allow_\w+)"', page.text), "on")
            address = urljoin(address, re.search(r'action="([^"]+)"', page.text)[1])
            page = browser.post(address, data={**hidden(page.text), **ticked, "decision": "allow"})
        else:
            page.raise_for_status()
            return page.text
    raise RuntimeError("no end of pages")


def library():
    found = browser.get(f"{URL}/.well-known/oauth-authorization-server").json()
    about = {"client_name": "authlib", "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "client_secret_post"}
    made = browser.post(found["registration_endpoint"], json=about).json()
    with OAuth2Client(
        made["client_id"],
        made["client_secret"],
        token_endpoint_auth_method="client_secret_post",
        revocation_endpoint_auth_method="client_secret_post",
        scope="view_tools run_tools",
        redirect_uri=CALLBACK,
        code_challenge_method="S256",
        token_endpoint=found["token_endpoint"],
        timeout=PATIENCE,
    ) as client:
        verifier = generate_token(48)
        address, state = client.create_authorization_url(found["authorization_endpoint"], code_verifier=verifier)
        first = dict(client.fetch_token(authorization_response=allow(address), state=state, code_verifier=verifier))
        called = client.get(f"{URL}/tools/calls").status_code
        client.token["expires_at"] = int(time.time()) - 1
        renewed = client.get(f"{URL}/tools/calls").status_code
        second = dict(client.token)
        seen = client.introspect_token(found["introspection_endpoint"], token=second["access_token"]).json()
        client.revoke_token(found["revocation_endpoint"], token=second["refresh_token"])
        after = client.introspect_token(found["introspection_endpoint"], token=second["access_token"]).json()
        asked = {"client_id": made["client_id"], "client_secret": made["client_secret"], "scope": "view_tools"}
        device = browser.post(found["device_authorization_endpoint"], data=asked).json()
        allow(device["verification_uri_complete"])
        given = client.fetch_token(grant_type=DEVICE, device_code=device["device_code"])
        used = client.get(f"{URL}/tools/calls").status_code
    print(
        json.dumps(
            {
                "name": "authlib",
                "called": called,
                "renewed": renewed,
                "rotated": first["refresh_token"] != second["refresh_token"],
                "active": seen["active"],
                "after": after["active"],
                "device": given["scope"],
                "used": used,
            }
        )
    )


class Memory:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def mcp():
    memory, asked = Memory(), []

    async def redirect(address):
        asked.append(allow(address))

    async def answer():
        fields = parse_qs(urlsplit(asked[-1]).query)
        return AuthorizationCodeResult(code=fields["code"][0], state=fields["state"][0], iss=fields["iss"][0])

    about = OAuthClientMetadata(client_name="MCP", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")

    async def call():
        auth = OAuthClientProvider(f"{URL}/mcp", about, memory, redirect, answer)
        async with httpx2.AsyncClient(auth=auth, timeout=PATIENCE) as http:
            async with Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client:
                result = await client.call_tool("tools__native__fake__GET_A_THING__main", {"owner": "o", "path": "p"})
                return not result.is_error

    called = await call()
    again = await call()
    tokens, times = memory.tokens, len(asked)
    headers = {"Authorization": f"ApiKey {KEY}"}
    grant = browser.get(f"{URL}/grants?active=true", headers=headers).json()["grants"][0]
    browser.delete(f"{URL}/grants/{grant['id']}", headers=headers)
    anew = await call()
    seen = {"name": "mcp", "called": called and again, "scope": tokens.scope, "times": times, "asked_anew": anew and len(asked) == times + 1}
    print(json.dumps(seen))


library()
asyncio.run(mcp())
