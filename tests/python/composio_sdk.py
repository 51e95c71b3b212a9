"""Composio's Python SDK, unmodified, against Toolyard: composio_sdk.py PART URL KEY FAKE_URL.

Each part is a module of `composio_sdk` with a function `walk(yard)`. One line of JSON says what it saw.
"""

import importlib
import json
import sys
import urllib.request
from dataclasses import dataclass

from composio import Composio


@dataclass
class Yard:
    url: str
    key: str
    fake: str

    def composio(self, **options):
        return Composio(api_key=self.key, base_url=self.url, allow_tracking=False, **options)

    def native(self, method, path, body=None):
        """A request to Toolyard's own API."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"ApiKey {self.key}", "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def key_used(self):
        """The key that the fake service was shown last; results do not repeat it, because it is a secret."""
        with urllib.request.urlopen(self.fake + "/seen", timeout=30) as answer:
            return json.loads(answer.read())["headers"]["x-api-key"]

    def connect(self, user, key, alias=None):
        """An account of the fake service, by Toolyard's own API; the id of the connection."""
        data = {"auth_scheme": "api_key", "credentials": {"base": self.fake, "api_key": key}}
        connection = {"provider_key": "native", "integration_key": "fake", "end_user": user, "alias": alias, "data": data}
        if user is None:
            connection = {"provider_key": "native", "integration_key": "fake", "slug": "main", "data": data}
        return self.native("POST", "/tools/connections", {"connection": connection})["connection"]["id"]


def main():
    part, url, key, fake = sys.argv[1:]
    seen = importlib.import_module(f"composio_sdk.{part}").walk(Yard(url, key, fake))
    print(json.dumps(seen or {}))


if __name__ == "__main__":
    main()
