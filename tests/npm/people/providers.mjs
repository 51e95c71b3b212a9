// An identity provider that nobody here wrote, `oidc-provider` from npm, as people meet it: two pages of the provider's, then ours.

const control = async ({ issuer }, path) => (await fetch(`${issuer}/__test/${path}`, { method: "POST" })).json();

const says = (yard, sub, claims) => control(yard, `person?sub=${sub}&claims=${encodeURIComponent(JSON.stringify(claims))}`);

// Presses the provider's button, and does at the provider what it asks for: nothing, where it remembers.
async function throughProvider(yard, { page }, login) {
  await page.goto(`${yard.url}/sign-in`);
  await page.getByRole("link", { name: "Continue with The corp" }).click();
  await page.waitForURL((now) => now.pathname !== "/sign-in");
  while (page.url().startsWith(yard.issuer)) {
    const name = page.getByLabel("Login");
    const before = page.url();
    if (await name.count()) {
      await name.fill(login);
      await page.getByRole("button", { name: "Sign in" }).click();
    } else {
      await page.getByRole("button", { name: "Approve" }).click();
    }
    await page.waitForURL((now) => now.href !== before);
  }
}

async function signOut(yard, { page }) {
  await page.goto(`${yard.url}/account`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/\/sign-in/);
}

const roleOf = async ({ api }, email) => (await api("GET", "/people/members")).members.find((member) => member.email === email)?.role;

async function groups(yard, login, options) {
  const { assert } = yard;
  const email = `${login}@example.com`;
  await says(yard, login, { groups: ["eng"] });
  const ada = await yard.visitor(options);
  await ada.page.goto(`${yard.url}/sign-in`);
  await yard.look(ada, "the sign-in with a provider");
  await throughProvider(yard, ada, login);
  await ada.page.waitForURL(/\/app/);
  assert.equal(await roleOf(yard, email), "editor");

  // Out of here; the provider remembers, so the next time takes one press. Its keys are others by then, and so are the groups.
  await signOut(yard, ada);
  await ada.page.goto(`${yard.url}/app`);
  await ada.page.waitForURL(/\/sign-in/);
  await control(yard, "rotate-keys");
  await says(yard, login, { groups: ["ops"] });
  await throughProvider(yard, ada, login);
  await ada.page.waitForURL(/\/app/);
  assert.equal(await roleOf(yard, email), "viewer");

  // No group any more: nothing is left here.
  await signOut(yard, ada);
  await says(yard, login, { groups: [] });
  await throughProvider(yard, ada, login);
  assert.equal(await roleOf(yard, email), undefined);
}

export default {
  async "a person signs in, and groups decide at each time"(yard) {
    await groups(yard, "ada");
  },

  async "the same without scripts"(yard) {
    await groups(yard, "alan", { javaScriptEnabled: false });
  },

  async "whom no rule knows is told so"(yard) {
    const mallory = await yard.visitor();
    await throughProvider(yard, mallory, "mallory");
    yard.assert.match(await mallory.page.getByRole("alert").textContent(), /does not belong to any project/);
    await yard.look(mallory, "a refusal");
    const people = JSON.parse(await yard.run("person", "list", "--json"));
    yard.assert.ok(!people.some((person) => person.email === "mallory@example.com"), "and leaves nothing");
  },

  async "a disabled account gets no further, here or there"(yard) {
    const { assert } = yard;
    await says(yard, "grace", { groups: ["eng"] });
    const grace = await yard.visitor();
    await throughProvider(yard, grace, "grace");
    await grace.page.waitForURL(/\/app/);
    await yard.run("person", "disable", "grace@example.com", "--yes");
    await grace.page.goto(`${yard.url}/app`);
    await grace.page.waitForURL(/\/sign-in/);
    await throughProvider(yard, grace, "grace");
    assert.match(await grace.page.getByRole("alert").textContent(), /That did not work/);
    await yard.run("person", "enable", "grace@example.com");
    await throughProvider(yard, grace, "grace");
    await grace.page.waitForURL(/\/app/);

    await says(yard, "grace", { disabled: true });
    const elsewhere = await yard.visitor();
    await throughProvider(yard, elsewhere, "grace");
    assert.ok(elsewhere.page.url().startsWith(yard.url), elsewhere.page.url());
    await elsewhere.page.getByRole("alert").waitFor();
    await yard.look(elsewhere, "a sign-in that the provider declined");
  },

  async "who says no at the provider, or comes back twice, is not signed in"(yard) {
    const ivy = await yard.visitor();
    await says(yard, "ivy", { groups: ["eng"] });
    await ivy.page.goto(`${yard.url}/sign-in/with/corp`);
    await ivy.page.getByLabel("Login").fill("ivy");
    await ivy.page.getByRole("button", { name: "Sign in" }).click();
    await ivy.page.getByRole("button", { name: "Deny" }).click();
    yard.assert.match(await ivy.page.getByRole("alert").textContent(), /declined/);
    let back;
    ivy.page.on("request", (request) => (back = request.url().includes("/callback?") ? request.url() : back));
    await throughProvider(yard, ivy, "ivy");
    await ivy.page.waitForURL(/\/app/);
    await signOut(yard, ivy);
    await ivy.page.goto(back);
    yard.assert.match(await ivy.page.getByRole("alert").textContent(), /not started here/);
  },
};
