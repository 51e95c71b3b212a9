// What the project says about calls.
const HOSTILE = `tools.native.fake.GET_A_THING.*(owner=<img src=x onerror=alert(1)> "it's")`;
const SHAPE = "tools.native.fake.SHAPE_A_THING.*";
const FORM = "tools.native.fake.FORM_A_THING.*";

// Begins with the same rules each time.
async function begin({ api }) {
  await api("PUT", "/tools/permissions", { permissions: { rules: [{ pattern: SHAPE, permission: "ask" }, { pattern: HOSTILE, permission: "deny" }] } });
}

async function rules({ api }) {
  const { permissions } = await api("GET", "/tools/permissions");
  return permissions.rules.map((rule) => [rule.pattern, rule.permission]);
}

export const prepare = begin;

export const screens = () => ({ rules: "/permissions", "of a call": "/permissions?ref=tools.native.fake.GET_A_THING.main" });

export const walks = {
  async "add, move and remove a rule"(page, context) {
    const { app, assert } = context;
    await begin(context);
    await page.goto(`${app}/permissions`);
    await page.getByLabel("Pattern of a new rule").fill(FORM);
    await page.getByLabel("Permission of a new rule").selectOption("deny");
    await page.getByRole("button", { name: "Add rule" }).click();
    await page.getByRole("status").waitFor();
    assert.deepEqual(await rules(context), [[SHAPE, "ask"], [HOSTILE, "deny"], [FORM, "deny"]]);
    await page.getByRole("button", { name: "Move rule 2 up" }).click();
    await page.getByRole("textbox", { name: "Pattern of rule 1" }).and(page.locator(`[value="${FORM}"]`)).waitFor();
    assert.deepEqual(await rules(context), [[SHAPE, "ask"], [FORM, "deny"], [HOSTILE, "deny"]]);
    await page.getByRole("row").filter({ has: page.getByLabel("Pattern of rule 1") }).getByText("Remove", { exact: true }).click();
    await page.getByRole("button", { name: "Remove rule 1" }).click();
    await page.getByRole("textbox", { name: "Pattern of rule 2" }).waitFor({ state: "detached" });
    assert.deepEqual(await rules(context), [[SHAPE, "ask"], [HOSTILE, "deny"]]);
  },

  async "a pattern that fits nothing shows the nearest"(page, context) {
    const { app, assert } = context;
    await begin(context);
    await page.goto(`${app}/permissions`);
    await page.getByLabel("Pattern of rule 0").fill("tools.native.fake.SHAPE_A_THNG.*");
    await page.getByRole("button", { name: "Save" }).click();
    assert.match(await page.getByRole("alert").textContent(), /SHAPE_A_THING/);
    assert.equal(await page.getByLabel("Pattern of rule 0").inputValue(), "tools.native.fake.SHAPE_A_THNG.*");
    assert.match(await page.locator("#error-0").textContent(), /SHAPE_A_THING/);
    assert.equal((await rules(context))[0][0], SHAPE);
  },

  async "nothing is saved over what somebody else wrote"(page, context) {
    const { app, api, assert } = context;
    await begin(context);
    await page.goto(`${app}/permissions`);
    await api("PUT", "/tools/permissions", { permissions: { rules: [{ pattern: FORM, permission: "ask" }] } });
    await page.getByLabel("Permission of rule 0").selectOption("deny");
    await page.getByRole("button", { name: "Save" }).click();
    assert.match(await page.getByRole("alert").textContent(), /Nothing was saved/);
    assert.deepEqual(await rules(context), [[FORM, "ask"]]);
    assert.match(await page.getByRole("region", { name: "What holds now" }).textContent(), /FORM_A_THING/);
  },

  async "explain a call"(page, context) {
    const { app, assert } = context;
    await begin(context);
    await page.goto(`${app}/permissions`);
    const explain = page.getByRole("region", { name: "What would happen to this call" });
    await explain.getByLabel("Ref").fill("tools.native.fake.SHAPE_A_THING.main");
    await explain.getByLabel("Arguments as JSON").fill('{"id": 1, "text": "x"}');
    await explain.getByRole("button", { name: "Explain" }).click();
    assert.match(await explain.getByRole("region", { name: "Rules that fit" }).textContent(), /SHAPE_A_THING\.\*\s*ask/);
    await explain.getByLabel("Ref").fill("tools.native.fake.SHAPE_A_THNG.main");
    await explain.getByRole("button", { name: "Explain" }).click();
    assert.match(await explain.getByRole("alert").textContent(), /SHAPE_A_TH/);
  },

  async "hostile text is shown and not run"(page, context) {
    await begin(context);
    await page.goto(`${context.app}/permissions`);
    context.assert.equal(await page.locator("main img").count(), 0);
    context.assert.equal(await page.getByLabel("Pattern of rule 1").inputValue(), HOSTILE);
  },
};
