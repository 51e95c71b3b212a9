// Calls that wait for a person.
const HOSTILE = "<img src=x onerror=alert(1)>";

// Makes the project ask, and a call that waits.
export async function waiting({ api, key, url }, title) {
  await api("PUT", "/tools/permissions", { permissions: { rules: [{ pattern: "tools.native.fake.MAKE_A_THING.*", permission: "ask" }] } });
  const body = { data: { id: "t1", type: "function", function: { name: "tools.native.fake.MAKE_A_THING.main", arguments: { title } } } };
  const reply = await fetch(`${url}/tools/call`, {
    method: "POST",
    headers: { authorization: `ApiKey ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (reply.status !== 202) throw new Error(`${reply.status} ${await reply.text()}`);
  const { approvals } = await api("GET", "/tools/approvals?status=pending");
  return approvals.find((approval) => approval.arguments.title === title);
}

export async function prepare(context) {
  return { approval: await waiting(context, `${HOSTILE} ${"long ".repeat(100)}`) };
}

export const screens = ({ approval }) => ({ list: "/approvals", "one that waits": `/approvals/${approval.id}`, denied: "/approvals?status=denied", notices: "/approvals/notices" });

export const walks = {
  async "approve one with a note"(page, context) {
    const approval = await waiting(context, `approve ${Math.random()}`);
    await page.goto(`${context.app}/approvals`);
    await page.goto(`${context.app}/approvals/${approval.id}`);
    await page.getByLabel("Note").fill("go ahead");
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("status").waitFor();
    const { approval: decided } = await context.api("GET", `/tools/approvals/${approval.id}`);
    context.assert.deepEqual([decided.status, decided.note], ["approved", "go ahead"]);
  },

  async "deny one with the keyboard alone"(page, context) {
    const approval = await waiting(context, `deny ${Math.random()}`);
    await page.goto(`${context.app}/approvals/${approval.id}`);
    const note = page.getByLabel("Note");
    await note.focus();
    await page.keyboard.type("not today");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("status").waitFor();
    const { approval: decided } = await context.api("GET", `/tools/approvals/${approval.id}`);
    context.assert.equal(decided.status, "denied");
  },

  async "decide from the list"(page, context) {
    const title = `from the list ${Math.random()}`;
    const approval = await waiting(context, title);
    await page.goto(`${context.app}/approvals`);
    const card = page.getByRole("article").filter({ hasText: title });
    await card.getByLabel("Note").fill("not this one");
    await card.getByRole("button", { name: "Deny" }).click();
    await page.getByRole("status").waitFor();
    context.assert.equal(await card.count(), 0);
    const { approval: decided } = await context.api("GET", `/tools/approvals/${approval.id}`);
    context.assert.deepEqual([decided.status, decided.note], ["denied", "not this one"]);
  },

  async "add, test and remove a notice"(page, { app, api, fake, assert }) {
    const url = `${fake}/notice?${Math.random()}`;
    const added = async () => (await api("GET", "/tools/approvals/notices")).notices.find((notice) => notice.url === url);
    await page.goto(`${app}/approvals/notices`);
    await page.getByLabel("Address").fill(url);
    await page.getByRole("button", { name: "Add webhook" }).click();
    const secret = await page.getByRole("status").locator(".copyable code").textContent();
    assert.ok(await added());
    await page.getByRole("button", { name: `Test ${url}` }).click();
    await page.getByRole("article").filter({ hasText: url }).getByText("told last").waitFor();
    assert.ok((await added()).last_at);
    assert.ok(!(await page.content()).includes(secret), "it is shown once");
    await page.getByRole("article").filter({ hasText: url }).getByText("Remove", { exact: true }).first().click();
    await page.getByRole("button", { name: `Remove ${url}` }).click();
    await page.getByRole("button", { name: `Test ${url}` }).waitFor({ state: "detached" });
    assert.equal(await added(), undefined);
  },

  async "hostile text is shown and not run"(page, { app, approval, assert }) {
    await page.goto(`${app}/approvals/${approval.id}`);
    assert.equal(await page.locator("main img").count(), 0);
    assert.ok((await page.locator("main").textContent()).includes("<img src=x onerror=alert(1)>"));
  },
};
