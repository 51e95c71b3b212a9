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

export const screens = ({ approval }) => ({ list: "/approvals", "one that waits": `/approvals/${approval.id}`, denied: "/approvals?status=denied" });

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

  async "hostile text is shown and not run"(page, { app, approval, assert }) {
    await page.goto(`${app}/approvals/${approval.id}`);
    assert.equal(await page.locator("main img").count(), 0);
    assert.ok((await page.locator("main").textContent()).includes("<img src=x onerror=alert(1)>"));
  },
};
