#!/usr/bin/env python3
"""How long `tools/call echo` takes: directly, through Toolyard, and through FastMCP's proxy where it is installed.

    cargo build --release && (cd tests/npm && npm ci)
    pip install fastmcp
    bench/mcp_echo.py [--calls 2000] [--toolyard target/release/toolyard] [--python PYTHON-WITH-FASTMCP]

The upstream server is `@modelcontextprotocol/server-everything` over HTTP. All ways are called in turn in one run, one call at a time.
"""

import argparse
import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERVER = ROOT / "tests/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
PROXY = """
import sys
from fastmcp.server import create_proxy
create_proxy(sys.argv[1], name="proxy").run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="ERROR")
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_for(port, process):
    for _ in range(600):
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
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        _, headers = self.ask("initialize", params)
        self.headers["mcp-protocol-version"] = "2025-06-18"
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


def toolyard(binary, upstream, folder, port, processes):
    environment = {**os.environ, "TOOLYARD_DATA_DIR": f"{folder}/data", "TOOLYARD_LISTEN": f"127.0.0.1:{port}",
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


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--calls", type=int, default=2000)
    arguments.add_argument("--toolyard", default=str(ROOT / "target/release/toolyard"))
    arguments.add_argument("--python", default=sys.executable, help="a Python that has fastmcp")
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
    clients = [Client("direct", port, "echo")]
    port = free_port()
    key = toolyard(str(pathlib.Path(options.toolyard).resolve()), upstream, folder, port, processes)
    clients.append(Client("toolyard", port, "tools__mcp__everything__echo__main", key=key))
    if subprocess.run([options.python, "-c", "import fastmcp"], **quiet).returncode == 0:
        port = free_port()
        processes.append(subprocess.Popen([options.python, "-c", PROXY, upstream, str(port)]))
        wait_for(port, processes[-1])
        clients.append(Client("fastmcp proxy", port, "echo"))
    for round in range(options.calls + 100):
        for client in clients:
            client.echo()
            if round < 100:
                client.times.clear()
    direct = statistics.median(clients[0].times)
    print(f"{'way':<14} {'p50 ms':>8} {'p99 ms':>8} {'added p50 ms':>13}")
    for client in clients:
        median, late = statistics.median(client.times), statistics.quantiles(client.times, n=100)[98]
        print(f"{client.name:<14} {median * 1e3:>8.2f} {late * 1e3:>8.2f} {(median - direct) * 1e3:>13.2f}")


if __name__ == "__main__":
    main()
