// Runs the conformance suite of the Model Context Protocol against the fixtures at URL, in every revision that it tests:
// node mcp-conformance.mjs URL. What does not apply is listed, with the reason, in mcp-not-applicable.yaml.
import { spawnSync } from "node:child_process";
import { here, suite } from "./conformance-suite.mjs";

const runs = [
  ["--requirements", "2026-07-28"],
  ["--requirements", "2025-11-25"],
  ["--suite", "all", "--spec-version", "2025-06-18"],
  ["--suite", "all", "--spec-version", "2025-03-26"],
];
let failed = false;
for (const which of runs) {
  const args = suite("server", "--url", process.argv[2], ...which, "--expected-failures", here("mcp-not-applicable.yaml"));
  const run = spawnSync(process.execPath, args, { encoding: "utf8" });
  console.log(which.join(" "), run.stdout.slice(run.stdout.indexOf("=== SUMMARY")), run.stderr);
  failed ||= run.status !== 0;
}
process.exit(failed ? 1 : 0);
