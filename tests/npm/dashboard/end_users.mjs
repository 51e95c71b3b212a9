// The people whom the project's agents serve.
const HOSTILE = '<img src=x onerror=alert(1)> "quoted"';

const unique = () => `walk-${Math.random().toString(36).slice(2)}`;

async function known({ api, fake }, name) {
  const data = { auth_scheme: "api_key", credentials: { base: fake, api_key: "sk-fake-123456" } };
  const connection = { provider_key: "native", integration_key: "fake", end_user: name, alias: "work", data };
  await api("POST", "/tools/connections", { connection });
  const call = { id: "1", function: { name: "tools.native.fake.GET_A_THING.auto", arguments: { owner: "o", path: "p" } } };
  await api("POST", "/tools/call", { end_user: name, data: call });
  return (await api("POST", "/sessions", { session: { end_user: name, apps: ["fake"] } })).session;
}

export async function prepare(context) {
  const name = `${HOSTILE} ${unique()}`;
  await known(context, name);
  return { name };
}

export const screens = ({ name }) => ({
  list: "/users",
  "nobody found": "/users?q=nobody-has-this-name",
  one: `/users/${encodeURIComponent(name)}`,
  "before they are forgotten": `/users/${encodeURIComponent(name)}/forget`,
});

export const walks = {
  async "find somebody, end their session and forget them"(page, context) {
    const name = `${unique()} ${HOSTILE}`;
    const session = await known(context, name);
    await page.goto(`${context.app}/users`);
    await page.getByRole("searchbox", { name: "Name" }).fill(name.split(" ")[0]);
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByRole("link", { name }).click();
    await page.getByRole("heading", { name, level: 1 }).waitFor();
    const main = await page.locator("main").textContent();
    context.assert.match(main, /work[^]*fake[^]*works[^]*open[^]*GET_A_THING/);
    await page.getByRole("button", { name: `End session ${session.id}` }).click();
    await page.getByRole("status").filter({ hasText: "ended" }).waitFor();
    const listed = await context.api("GET", `/sessions?end_user=${encodeURIComponent(name)}`);
    context.assert.equal(listed.sessions[0].is_open, false);
    await page.getByRole("link", { name: "Forget" }).click();
    await page.getByRole("button", { name: `Forget ${name}` }).click();
    await page.getByRole("status").filter({ hasText: "forgotten" }).waitFor();
    const left = await context.api("GET", `/end-users?name=${encodeURIComponent(name.split(" ")[0])}`);
    context.assert.equal(left.count, 0);
  },
};
