// Pictures of the dashboard for its documentation, over a small shop that is made up here.
//   node pictures.mjs URL KEY DIR
// The server must be new and let its calls reach this machine (`--egress-allow 127.0.0.1`); the shop's own API is a stand-in that runs here.
import { createServer } from "node:http";
import { mkdirSync } from "node:fs";
import { openBrowser } from "./browser.mjs";

const [url, key, dir] = process.argv.slice(2);
const project = `${url}/app/default`;

async function api(method, path, body, statuses = []) {
  const headers = { authorization: `ApiKey ${key}`, ...(body && { "content-type": "application/json" }) };
  const reply = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await reply.text();
  if (!reply.ok && !statuses.includes(reply.status)) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

// The shop: orders that can be read and cancelled, and customers who can be written to.
const shop = createServer((request, response) => {
  const answer = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  const [, kind, id] = request.url.split("?")[0].split("/");
  if (kind === "me") return answer(200, { id: 7, login: "Northwind shop" });
  if (id === "missing") return answer(404, { error: `there is no order ${id}` });
  setTimeout(() => answer(200, { id, status: "paid", total: 48.5, customer: "Ada" }), 5 + (Number(id?.slice(1)) % 9) * 12);
});
await new Promise((done) => shop.listen(0, "127.0.0.1", done));
const order = { name: "order_id", in: "path", required: true, description: "Such as A1001.", schema: { type: "string" } };
const result = { 200: { description: "The order", content: { "application/json": { schema: { type: "object" } } } } };
const document = {
  openapi: "3.1.0",
  info: { title: "Northwind Orders", version: "1" },
  servers: [{ url: `http://127.0.0.1:${shop.address().port}` }],
  components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "X-Key" } } },
  security: [{ key: [] }],
  paths: {
    "/orders/{order_id}": {
      get: { operationId: "get_order", summary: "Read an order", description: "Its state, its total and its customer.", parameters: [order], responses: result },
      delete: { operationId: "cancel_order", summary: "Cancel an order", parameters: [order, { name: "reason", in: "query", description: "What the customer is told.", schema: { type: "string" } }], responses: result },
    },
    "/messages/{order_id}": {
      post: { operationId: "message_customer", summary: "Write to the customer of an order", parameters: [order], requestBody: { content: { "application/json": { schema: { type: "object", properties: { text: { type: "string", description: "What to write." } }, required: ["text"] } } } }, responses: result },
    },
  },
};
await api("POST", "/tools/imports/openapi", { import: { key: "orders", document } });
const connect = (slug, name) => api("POST", "/tools/connections", { connection: { slug, name, provider_key: "openapi", integration_key: "orders", data: { auth_scheme: "api_key", credentials: { api_key: "made-up-key-123" } } } });
await connect("main", "Shop");
const old = await connect("archive", "Old shop");
await api("POST", `/tools/connections/${old.connection.id}/revoke`, {});
const ref = (action) => `tools.openapi.orders.${action}.main`;
const call = (action, args) => api("POST", "/tools/call", { data: { id: "t1", type: "function", function: { name: ref(action), arguments: args } } }, [404, 424, 502]);
for (let number = 1; number <= 60; number += 1) await call("get_order", { order_id: number % 12 ? `A${1000 + number}` : "missing" });
for (const number of [1, 2, 3]) await call("message_customer", { order_id: `A100${number}`, text: "Your parcel is on its way." });

const steps = [
  { name: "order", call: ref("get_order"), arguments: { order_id: "{{ inputs.order_id }}" } },
  { name: "tell", call: ref("message_customer"), when: "steps.order.ok", arguments: { order_id: "{{ inputs.order_id }}", text: "We have your order." } },
];
const inputs = { type: "object", properties: { order_id: { type: "string", description: "Such as A1001." } }, required: ["order_id"] };
const made = await api("POST", "/simple/workflows", { workflow: { slug: "greet-customer", name: "Greet a customer", data: { kind: "steps", schemas: { inputs }, steps, result: { told: "{{ steps.tell.ok }}" } } } });
for (const id of ["A1004", "A1005", "missing"]) await api("POST", "/workflows/invoke", { references: { workflow: { slug: "greet-customer" } }, data: { inputs: { order_id: id } } }, [400, 404, 424]);
const hook = await api("POST", "/triggers/subscriptions/", { subscription: { name: "New order", data: { event_key: "WEBHOOK_RECEIVED", references: { workflow: { slug: "greet-customer" } }, inputs_fields: { order_id: "$.event.attributes.order_id" } } } });
const secret = hook.subscription.secret;
for (const id of ["A1006", "A1007", "A1008", "missing"]) {
  const { url: address } = hook.subscription;
  await fetch(address, { method: "POST", headers: { "content-type": "application/json", ...(secret && { authorization: `Bearer ${secret}` }) }, body: JSON.stringify({ order_id: id }) });
}
await api("POST", "/agents", { name: "Support", agent_type: "custom", description: "Answers customers.", tool_ids: ["orders"] });
await api("PUT", "/tools/permissions", { permissions: { rules: [{ pattern: "tools.openapi.orders.cancel_order.*", permission: "ask" }] } });
for (const [id, reason] of [["A1011", "It arrived broken."], ["A1019", "The customer changed their mind and asks for the whole amount."]]) await call("cancel_order", { order_id: id, reason });
const [approval] = (await api("GET", "/tools/approvals?status=pending")).approvals;
await new Promise((done) => setTimeout(done, 3000));

const browser = await openBrowser();
const context = await browser.newContext({ viewport: { width: 1200, height: 760 } });
const page = await context.newPage();
await page.goto(`${url}/`);
await page.getByText("With a key").click();
await page.getByLabel("Key").fill(key);
await page.locator("details").getByRole("button", { name: "Sign in" }).click();
await page.waitForURL(/\/app(\/|$)/);
mkdirSync(dir, { recursive: true });
async function picture(name, path, { dark = false, phone = false } = {}) {
  await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
  await page.setViewportSize(phone ? { width: 390, height: 760 } : { width: 1200, height: 760 });
  await page.goto(project + path);
  await page.screenshot({ path: `${dir}/${name}.png` });
}
await picture("home", "");
await picture("approval", `/approvals/${approval.id}`);
await picture("calls", "/calls");
await picture("try", `/try?provider=openapi&integration=orders&action=get_order`);
await picture("workflow", `/workflows/${made.workflow.id}/edit`, { dark: true });
await picture("deliveries", "/deliveries");
await picture("phone", "/connections", { phone: true });
await browser.close();
shop.close();
