// Walks through the pages where people sign in and let clients in, in a real browser.
//   node people.mjs SECTION JSON
// Each file in `people/` is a section: a list of walks, done one after the other with one browser and one server. JSON says where the server is:
// `url`, `key`, `operator_key`, `link` of the first owner, `issuer` of the provider `corp`, and how to run our `program` and `python`.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { openBrowser, watch } from "./browser.mjs";

const [section, facts] = process.argv.slice(2);
const yard = JSON.parse(facts);
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 390, height: 800 };
const browser = await openBrowser();
const counts = { walks: 0, looks: 0 };
const failures = [];

// Somebody in front of a browser of their own. Every page that they see is held against what a page must not do.
async function visitor(options = {}) {
  const context = await browser.newContext({ viewport: WIDE, colorScheme: "light", ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  return { page, context, problems: watch(page), scripts: options.javaScriptEnabled !== false };
}

// A page as it is seen: by axe in light and its colours again in dark, and on a phone without a bar to scroll sideways.
async function look({ page, scripts }, title) {
  assert.equal(await page.locator("h1").count(), 1, `${title}: one heading`);
  if (!scripts) return;
  counts.looks += 1;
  const violations = async (options) => {
    const found = await page.evaluate((options) => globalThis.axe.run(options), options);
    return found.violations.map((rule) => `${rule.id}: ${rule.help}\n${rule.nodes.map((node) => `  ${node.html}\n  ${node.failureSummary}`).join("\n")}`).join("\n");
  };
  await page.evaluate(AXE);
  assert.equal(await violations({}), "", title);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await violations({ runOnly: ["color-contrast"] }), "", `${title}, in dark`);
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(NARROW);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(overflow <= 0, `${title}: ${overflow} pixels too wide for a phone`);
  await page.setViewportSize(WIDE);
}

async function api(method, path, body) {
  const headers = { authorization: `ApiKey ${yard.key}`, ...(body && { "content-type": "application/json" }) };
  const reply = await fetch(yard.url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

// A command of ours, beside the running server.
async function run(...args) {
  const env = { PATH: process.env.PATH, TOOLYARD_DATA_DIR: `${yard.dir}/data`, TOOLYARD_URL: yard.url, TOOLYARD_PUBLIC_URL: yard.url };
  return (await promisify(execFile)(yard.program, args, { cwd: yard.dir, env })).stdout.trim();
}

// Where clients are sent back to: a page that only says so.
const callback = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>Back</title><h1>Back</h1>"));
await new Promise((ready) => callback.listen(0, "127.0.0.1", ready));
const here = { ...yard, assert, api, run, look, callback: `http://127.0.0.1:${callback.address().port}/callback` };

const { default: walks } = await import(`./people/${section}.mjs`);
for (const [title, walk] of Object.entries(walks)) {
  const visitors = [];
  const open = async (options) => {
    visitors.push(await visitor(options));
    return visitors.at(-1);
  };
  const began = Date.now();
  try {
    await walk({ ...here, visitor: open });
    for (const { problems } of visitors) assert.deepEqual(problems, []);
    counts.walks += 1;
  } catch (error) {
    failures.push(`FAILED ${title} at ${visitors.map(({ page }) => page.url()).join(", ")}\n${error.stack}\n`);
  }
  console.error(`${title}: ${Date.now() - began} ms`);
  for (const { context } of visitors) await context.close();
}
await browser.close();
callback.close();
callback.closeAllConnections();
for (const failure of failures) console.error(failure);
console.log(JSON.stringify({ ...counts, failures: failures.length }));
process.exit(failures.length ? 1 : 0);
