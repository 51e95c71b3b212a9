// Members and their roles, and the clients that people let in: what an owner changes there, and what it does to those whom it is about.
import { Person } from "../person.mjs";

const PASSWORD = "correct horse battery";
const HOSTILE = `<img src=x onerror=alert(1)> "it's"`;
const CALLBACK = "http://127.0.0.1:61234/callback";
const VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

// Somebody new who belongs to the project, signed in in a browser of their own.
async function join({ api, browser }, role) {
  const email = `member${Math.random().toString(36).slice(2)}@example.com`;
  const { link } = await api("POST", "/people/invitations", { invitation: { role, email } });
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(link);
  await page.getByLabel("Name").fill(HOSTILE);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Join" }).click();
  await page.waitForURL(/\/app/);
  return { email, page, leave: () => context.close() };
}

// A client that the owner of the key let in; what its token is answered with.
async function letIn({ url, key }, name) {
  const about = { client_name: name, redirect_uris: [CALLBACK], token_endpoint_auth_method: "none" };
  const made = await fetch(`${url}/oauth/register`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(about) });
  const { client_id } = await made.json();
  const query = new URLSearchParams({ client_id, redirect_uri: CALLBACK, response_type: "code", code_challenge: CHALLENGE, code_challenge_method: "S256", scope: "view_tools run_tools" });
  const back = new URL(await new Person(url, key).allow(`${url}/oauth/authorize?${query}`));
  const body = new URLSearchParams({ grant_type: "authorization_code", client_id, code: back.searchParams.get("code"), code_verifier: VERIFIER });
  const { access_token } = await (await fetch(`${url}/oauth/token`, { method: "POST", body })).json();
  return async () => (await fetch(`${url}/tools/calls`, { headers: { authorization: `Bearer ${access_token}` } })).status;
}

export async function prepare(context) {
  // An owner too, so that another one can be removed.
  for (const role of ["editor", "owner"]) await (await join(context, role)).leave();
  await letIn(context, HOSTILE);
}

export const screens = () => ({ members: "/settings/members", grants: "/settings/grants", "all grants": "/settings/grants?show=all" });

export const walks = {
  async "another role counts at once, and so does being removed"(page, context) {
    const { app, api, assert } = context;
    const ann = await join(context, "viewer");
    const role = async () => (await api("GET", "/people/members?limit=100")).members.find((member) => member.email === ann.email)?.role;
    await ann.page.goto(`${app}/settings/keys`);
    assert.equal(await ann.page.getByRole("button", { name: "Make the key" }).count(), 0, "a viewer makes no keys");

    await page.goto(`${app}/settings/members`);
    await page.getByLabel(`Change role of ${ann.email}`).click();
    const row = page.getByRole("row").filter({ hasText: ann.email }).filter({ hasText: "Change role" });
    await row.getByLabel("Role", { exact: true }).selectOption("owner");
    await row.getByRole("button", { name: "Change the role" }).click();
    await page.getByRole("status").waitFor();
    assert.equal(await role(), "owner");
    await ann.page.goto(`${app}/settings/keys`);
    await ann.page.getByRole("button", { name: "Make the key" }).waitFor();

    await page.getByLabel(`Remove ${ann.email}`).click();
    await row.getByRole("button", { name: "Remove the member" }).click();
    await page.getByRole("status").waitFor();
    assert.equal(await role(), undefined);
    assert.equal((await ann.page.goto(`${app}/settings/keys`)).status(), 404);
    await ann.leave();
  },

  async "the last owner stays one"(page, context) {
    const { app, api, assert } = context;
    for (const { id, role } of (await api("GET", "/people/members?limit=100")).members) if (role === "owner") await api("DELETE", `/people/members/${id}`).catch(() => {});
    const bob = await join(context, "owner");
    const owners = (await api("GET", "/people/members?limit=100")).members.filter((member) => member.role === "owner");
    for (const { id, email } of owners) if (email !== bob.email) await api("DELETE", `/people/members/${id}`);
    await page.goto(`${app}/settings/members`);
    await page.getByLabel(`Remove ${bob.email}`).click();
    await page.getByRole("row").filter({ hasText: bob.email }).filter({ hasText: "Change role" }).getByRole("button", { name: "Remove the member" }).click();
    assert.match(await page.getByRole("alert").textContent(), /only owner|last owner|keeps? an owner/i);
    await bob.leave();
  },

  async "a client is turned away, and stays on the list of all"(page, context) {
    const { app, assert } = context;
    const name = `walk ${Math.random()}`;
    const answered = await letIn(context, name);
    assert.equal(await answered(), 200);
    await page.goto(`${app}/settings/grants`);
    const card = page.getByRole("article").filter({ hasText: name });
    await card.getByText("2 permissions").click();
    assert.match(await card.textContent(), /view_tools.*run_tools/);
    await page.getByLabel(`Revoke ${name}`).click();
    await card.getByRole("button", { name: "Revoke the grant" }).click();
    await page.getByRole("status").waitFor();
    assert.equal(await answered(), 401);
    assert.equal(await card.count(), 0);
    await page.getByRole("link", { name: "All", exact: true }).click();
    await card.getByText("revoked").waitFor();
    assert.equal(await page.locator("main img").count(), 0, "what a client calls itself stays text");
  },
};
