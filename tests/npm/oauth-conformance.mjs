// Runs the authorization scenarios of the protocol's conformance suite against the authorization server at URL: node oauth-conformance.mjs URL KEY.
// A person lets the suite's client in, as it asks for on its standard output. Every scenario that the suite has for authorization servers must run.
import { spawn, spawnSync } from "node:child_process";
import { suite } from "./conformance-suite.mjs";
import { Person } from "./person.mjs";

const [url, key] = process.argv.slice(2);
const port = 20000 + (process.pid % 20000);
const about = { client_name: "conformance", redirect_uris: [`http://127.0.0.1/callback`], token_endpoint_auth_method: "none" };
const registered = await fetch(`${url}/oauth/register`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(about) });
const { client_id } = await registered.json();
const person = new Person(url, key);
const run = spawn(process.execPath, suite("authorization", "--url", url, "--client-id", client_id, "--resource", `${url}/mcp`, "--port", `${port}`));
let said = "";
let asked = false;
run.stderr.pipe(process.stderr);
run.stdout.on("data", async (data) => {
  said += data;
  process.stdout.write(data);
  const address = said.match(/^(http\S+\/oauth\/authorize\?\S+)$/m)?.[1];
  if (address && !asked) {
    asked = true;
    await fetch(await person.allow(address));
  }
});
run.on("exit", (code) => {
  const listed = spawnSync(process.execPath, suite("list", "--authorization"), { encoding: "utf8" }).stdout;
  const scenarios = [...listed.matchAll(/^ +- (\S+)/gm)].map(([, name]) => name);
  const left = scenarios.filter((name) => !said.includes(name));
  console.log(`scenarios: ${scenarios.join(", ")}; not run: ${left.join(", ") || "none"}`);
  process.exit(asked && scenarios.length && !left.length ? code : 1);
});
