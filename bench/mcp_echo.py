#!/usr/bin/env python3
"""How long `tools/call echo` takes: directly, through Toolyard, and through three peers where they are installed.

    cargo build --release && (cd tests/npm && npm ci)
    cargo install mcp-gateway@2.0.0
    python3 -m venv /tmp/fastmcp && /tmp/fastmcp/bin/pip install fastmcp
    python3 -m venv /tmp/contextforge && /tmp/contextforge/bin/pip install mcp-contextforge-gateway
    bench/mcp_echo.py [--calls 2000] [--repeat 3] [--toolyard target/release/toolyard] [--database-url URL]
                      [--mcp-gateway BINARY] [--fastmcp VENV] [--contextforge VENV]

The upstream server is `@modelcontextprotocol/server-everything` over HTTP. All ways are called in turn in one run: one call at a time, then 16
at a time. Each figure is the median of the rounds, with the least and the most; the last line is JSON.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The newest revision that the upstream server speaks, so that every way asks it for the same work: since this one it begins each answer with an
# event of its own, which alone takes it a millisecond.
REVISION = "2025-11-25"
SERVER = ROOT / "tests/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
PROXY = """
import sys
from fastmcp.server import create_proxy
create_proxy(sys.argv[1], name="proxy").run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="ERROR")
"""


TOGETHER = 16
CONTEXTFORGE = {
    "ENVIRONMENT": "development", "LOG_LEVEL": "ERROR", "CACHE_TYPE": "memory", "SSRF_ALLOW_LOCALHOST": "true", "RATE_LIMITING_ENABLED": "false",
    "PLATFORM_ADMIN_EMAIL": "admin@example.com",
}


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_for(port, process, within=30):
    for _ in range(within * 20):
        if process.poll() is not None:
            sys.exit(f"{process.args[0]} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{process.args[0]} does not listen")


class Client:
    """One connection that is kept, and one session."""

    def __init__(self, name, port, tool, path="/mcp", key=None):
        self.name, self.path, self.tool = name, path, tool
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if key:
            self.headers["authorization"] = f"Bearer {key}"
        self.number = 0
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        _, headers = self.ask("initialize", params)
        self.headers["mcp-protocol-version"] = REVISION
        if headers.get("mcp-session-id"):
            self.headers["mcp-session-id"] = headers["mcp-session-id"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.times = []

    def send(self, message):
        self.connection.request("POST", self.path, json.dumps(message), self.headers)
        response = self.connection.getresponse()
        body = response.read()
        if response.status >= 300:
            sys.exit(f"{self.name}: {response.status} {body[:500]!r}")
        return body, response.headers

    def ask(self, method, params):
        self.number += 1
        body, headers = self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        if headers["content-type"].startswith("text/event-stream"):
            body = [line[5:] for line in body.decode().splitlines() if line.startswith("data:") and len(line) > 6][-1]
        return json.loads(body), headers

    def echo(self):
        started = time.perf_counter()
        answer, _ = self.ask("tools/call", {"name": self.tool, "arguments": {"message": "hello"}})
        self.times.append(time.perf_counter() - started)
        if "hello" not in json.dumps(answer.get("result", {}).get("content")):
            sys.exit(f"{self.name}: {answer}")


def toolyard(binary, database, upstream, folder, port, processes):
    environment = {**os.environ, **({"TOOLYARD_DATABASE_URL": database} if database else {}), "TOOLYARD_DATA_DIR": f"{folder}/data", "TOOLYARD_LISTEN": f"127.0.0.1:{port}",
                   "TOOLYARD_EGRESS_ALLOW": "127.0.0.1", "TOOLYARD_LOG": "warn"}
    processes.append(subprocess.Popen([binary, "serve"], cwd=folder, env=environment, stdout=subprocess.DEVNULL))
    wait_for(port, processes[-1])
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/ready")
    connection.getresponse().read()
    key = pathlib.Path(folder, "data/owner.key").read_text().strip()
    for path, body in [
        ("/tools/imports/mcp", {"import": {"key": "everything", "url": upstream}}),
        ("/tools/connections", {"connection": {"slug": "main", "provider_key": "mcp", "integration_key": "everything", "data": {}}}),
    ]:
        connection.request("POST", path, json.dumps(body), {"authorization": f"ApiKey {key}", "content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            sys.exit(f"{path}: {response.status} {answer[:500]!r}")
    return key


def mcp_gateway(binary, upstream, folder, port, processes, quiet):
    """Starts the gateway without its rate limit; the path of the upstream server behind it."""
    config = {"server": {"host": "127.0.0.1", "port": port}, "failsafe": {"rate_limit": {"enabled": False}},
              "backends": {"everything": {"http_url": upstream, "streamable_http": True}}}
    # JSON is YAML.
    pathlib.Path(folder, "mcp-gateway.yaml").write_text(json.dumps(config))
    command = [binary, "--config", f"{folder}/mcp-gateway.yaml", "--log-level", "error"]
    processes.append(subprocess.Popen(command, cwd=folder, **quiet))
    wait_for(port, processes[-1])
    return "/mcp/everything"


def contextforge(venv, upstream, folder, port, processes, quiet):
    """Starts the gateway, registers the upstream server, and makes a virtual server of its one tool; its path, and a token for it."""
    made = {name: secrets.token_urlsafe(40) for name in ["JWT_SECRET_KEY", "AUTH_ENCRYPTION_SECRET", "PLATFORM_ADMIN_PASSWORD"]}
    environment = {**os.environ, **CONTEXTFORGE, **made, "DATABASE_URL": f"sqlite:///{folder}/contextforge.db"}
    gateway = [venv / "bin/mcpgateway", "--host", "127.0.0.1", "--port", str(port)]
    processes.append(subprocess.Popen(gateway, cwd=folder, env=environment, **quiet))
    wait_for(port, processes[-1], within=120)
    token = [venv / "bin/python", "-m", "mcpgateway.utils.create_jwt_token", "-u", "admin@example.com", "-e", "600", "--admin"]
    token = subprocess.run(token, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout.split()[-1]
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(method, path, body=None):
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        connection.request(method, path, body and json.dumps(body), headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            sys.exit(f"contextforge: {path}: {response.status} {answer[:500]!r}")
        return json.loads(answer)

    ask("POST", "/v1/gateways", {"name": "everything", "url": upstream, "transport": "STREAMABLEHTTP"})
    echo = next(tool["id"] for tool in ask("GET", "/v1/tools") if tool["name"] == "everything-echo")
    server = ask("POST", "/v1/servers", {"server": {"name": "bench", "associated_tools": [echo]}})
    return f"/servers/{server['id']}/mcp/", token


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--calls", type=int, default=2000)
    arguments.add_argument("--toolyard", default=str(ROOT / "target/release/toolyard"))
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--database-url", help="an empty PostgreSQL database for Toolyard, in place of SQLite; it is not cleaned up")
    arguments.add_argument("--mcp-gateway", default=shutil.which("mcp-gateway"), help="the binary of mcp-gateway")
    arguments.add_argument("--fastmcp", type=pathlib.Path, help="a venv that has fastmcp")
    arguments.add_argument("--contextforge", type=pathlib.Path, help="a venv that has mcp-contextforge-gateway")
    options = arguments.parse_args()
    processes = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(options, folder, processes)
            stop(processes)
    finally:
        stop(processes)


def stop(processes):
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def measure(options, folder, processes):
    port = free_port()
    upstream = f"http://127.0.0.1:{port}/mcp"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes.append(subprocess.Popen(["node", SERVER, "streamableHttp"], env={**os.environ, "PORT": str(port)}, **quiet))
    wait_for(port, processes[-1])
    ways = [("direct", port, "echo")]
    port = free_port()
    key = toolyard(str(pathlib.Path(options.toolyard).resolve()), options.database_url, upstream, folder, port, processes)
    ways.append(("toolyard", port, "tools__mcp__everything__echo__main", "/mcp", key))
    if options.mcp_gateway:
        port = free_port()
        ways.append(("mcp-gateway", port, "echo", mcp_gateway(options.mcp_gateway, upstream, folder, port, processes, quiet)))
    if options.fastmcp:
        port = free_port()
        processes.append(subprocess.Popen([options.fastmcp / "bin/python", "-c", PROXY, upstream, str(port)]))
        wait_for(port, processes[-1])
        ways.append(("fastmcp proxy", port, "echo"))
    if options.contextforge:
        port = free_port()
        path, token = contextforge(options.contextforge, upstream, folder, port, processes, quiet)
        ways.append(("contextforge", port, "everything-echo", path, token))
    # Only now: a connection that waits for the others to start is closed by its server.
    clients = [Client(*way) for way in ways]
    figures = {client.name: {"p50_ms": [], "p99_ms": [], "added_p50_ms": [], "per_second": []} for client in clients}
    for number in range(options.repeat):
        one_at_a_time(clients, options.calls // options.repeat, warm_up=100 if number == 0 else 0)
        direct = statistics.median(clients[0].times)
        for client in clients:
            median, late = statistics.median(client.times), statistics.quantiles(client.times, n=100)[98]
            figures[client.name]["p50_ms"].append(median * 1e3)
            figures[client.name]["p99_ms"].append(late * 1e3)
            figures[client.name]["added_p50_ms"].append((median - direct) * 1e3)
        for way in ways:
            figures[way[0]]["per_second"].append(together(way, options.calls // options.repeat))
    print(f"{'way':<14} {'p50 ms':>8} {'p99 ms':>8} {'added p50 ms':>22} {f'calls/s, {TOGETHER} at a time':>26}")
    for name, figure in figures.items():
        spread = {key: (statistics.median(values), min(values), max(values)) for key, values in figure.items()}
        added, rate = spread["added_p50_ms"], spread["per_second"]
        print(f"{name:<14} {spread['p50_ms'][0]:>8.2f} {spread['p99_ms'][0]:>8.2f} {added[0]:>7.2f} ({added[1]:.2f} to {added[2]:.2f})"
              f" {rate[0]:>10.0f} ({rate[1]:.0f} to {rate[2]:.0f})")
    lines = {name: {key: round(statistics.median(values), 4) for key, values in figure.items()} for name, figure in figures.items()}
    database = "postgres" if options.database_url else "sqlite"
    print(json.dumps({"bench": "mcp_echo", "database": database, "repeat": options.repeat, "figures": lines}))


def one_at_a_time(clients, calls, warm_up):
    for _ in range(warm_up):
        for client in clients:
            client.echo()
    for client in clients:
        client.times.clear()
    for _ in range(calls):
        for client in clients:
            client.echo()


def together(way, calls):
    """Calls a second when so many clients are always calling."""
    clients = [Client(*way) for _ in range(TOGETHER)]
    each = max(calls // TOGETHER, 1)

    def several(client):
        for _ in range(each):
            client.echo()

    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(several, clients))
    return TOGETHER * each / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
