// Runs the conformance suite of the Model Context Protocol against the fixtures at URL, in every revision that it tests:
// node mcp-conformance.mjs URL. What does not apply is listed, with the reason, in mcp-not-applicable.yaml.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

// The suite imports `globSync`, which Node.js has from 22 on, for a command that is not used here.
const fs = `export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];`;
const hooks = `export const resolve = (name, context, next) => name === "fs" && context.parentURL?.includes("/conformance/dist/")
  ? { url: ${JSON.stringify("data:text/javascript," + encodeURIComponent(fs))}, shortCircuit: true } : next(name, context);`;
const register = `import { register } from "node:module"; register(${JSON.stringify("data:text/javascript," + encodeURIComponent(hooks))});`;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const suite = here("node_modules/@modelcontextprotocol/conformance/dist/index.js");
const runs = [
  ["--requirements", "2026-07-28"],
  ["--requirements", "2025-11-25"],
  ["--suite", "all", "--spec-version", "2025-06-18"],
  ["--suite", "all", "--spec-version", "2025-03-26"],
];
let failed = false;
for (const which of runs) {
  const options = ["server", "--url", process.argv[2], ...which, "--expected-failures", here("mcp-not-applicable.yaml")];
  const args = ["--import", "data:text/javascript," + encodeURIComponent(register), suite, ...options];
  const run = spawnSync(process.execPath, args, { encoding: "utf8" });
  console.log(which.join(" "), run.stdout.slice(run.stdout.indexOf("=== SUMMARY")), run.stderr);
  failed ||= run.status !== 0;
}
process.exit(failed ? 1 : 0);
