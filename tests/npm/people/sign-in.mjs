// Owners, members and passwords: from the link that the first start prints to an app that shows codes.
import { createHmac } from "node:crypto";

const PASSWORD = "correct horse battery";

// What an authenticator app shows (RFC 6238), so many intervals from now.
function shown(secret, later = 0) {
  const bits = [...secret].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const digest = createHmac("sha1", key).update(step).digest();
  const number = digest.readUInt32BE(digest[19] & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
}

async function signIn(page, { url }, email, password) {
  await page.goto(`${url}/sign-in`);
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).first().click();
}

async function signOut(page, { url }) {
  await page.goto(`${url}/account`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/\/sign-in/);
}

// From an invitation to a password, an app, a sign-in with a code, and out again.
async function fromInvitationToCodes(yard, link, email, options) {
  const { assert, look } = yard;
  const ann = await yard.visitor(options);
  const { page } = ann;
  await page.goto(link);
  await look(ann, "the invitation");
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Name").fill("Ann <b>");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Join" }).click();
  await page.waitForURL(/\/app/);
  await page.goto(`${yard.url}/account`);
  assert.equal(await page.locator("h1").textContent(), "Ann <b>");
  await look(ann, "the account");
  await page.getByRole("link", { name: "Dashboard" }).click();
  await page.waitForURL(/\/app/);
  const again = await yard.visitor(options);
  await again.page.goto(link);
  assert.match(await again.page.locator("main").textContent(), /used|no longer|not valid/i, "a link works once");
  await look(again, "a used invitation");

  await page.goto(`${yard.url}/account`);
  await page.getByRole("button", { name: "Set up" }).click();
  const secret = await page.locator("code").first().textContent();
  await look(ann, "the secret of the app");
  await page.getByLabel("Code that the app shows").fill("000000");
  await page.getByRole("button", { name: "Switch on" }).click();
  await page.getByRole("alert").waitFor();
  await look(ann, "a wrong code");
  await page.getByLabel("Code that the app shows").fill(shown(secret));
  await page.getByRole("button", { name: "Switch on" }).click();
  const recovery = await page.locator("li code").allTextContents();
  assert.equal(recovery.length, 10);
  await look(ann, "recovery codes");
  await signOut(page, yard);

  await signIn(page, yard, email, "a wrong password");
  await page.getByRole("alert").waitFor();
  await look(ann, "a wrong password");
  assert.equal(await page.getByLabel("E-mail address").inputValue(), email, "it need not be typed again");
  await signIn(page, yard, email, PASSWORD);
  await look(ann, "the page for a code");
  const next = shown(secret, 1);
  await page.getByLabel("Code").fill(next);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(/\/app/);
  // The same code a second time, somewhere else; a recovery code stands in for it.
  await signIn(again.page, yard, email, PASSWORD);
  await again.page.getByLabel("Code").fill(next);
  await again.page.getByRole("button", { name: "Sign in" }).click();
  assert.match(await again.page.getByRole("alert").textContent(), /used already/);
  await again.page.getByLabel("Code").fill(recovery[0]);
  await again.page.getByRole("button", { name: "Sign in" }).click();
  await again.page.waitForURL(/\/app/);

  // A new password ends the other session, and this one goes on.
  await page.goto(`${yard.url}/account`);
  assert.equal(await page.getByText("since").count() >= 2, true, "both sessions are listed");
  await page.getByLabel("Current password").fill(PASSWORD);
  await page.getByLabel("New password").fill("something else entirely");
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByRole("status").waitFor();
  await again.page.goto(`${yard.url}/account`);
  await again.page.waitForURL(/\/sign-in/);
  await signOut(page, yard);
  await page.goto(`${yard.url}/app`);
  await page.waitForURL(/\/sign-in/);
  await look(ann, "the sign-in");
}

export default {
  async "the owner's link leads to an account with a password and an app"(yard) {
    await fromInvitationToCodes(yard, yard.link, "ann@example.com");
    const { members } = await yard.api("GET", "/people/members");
    yard.assert.deepEqual(members.map((member) => [member.email, member.role]), [["ann@example.com", "owner"]]);
  },

  async "the same without scripts, by an invitation"(yard) {
    const { link } = await yard.api("POST", "/people/invitations", { invitation: { role: "viewer" } });
    await fromInvitationToCodes(yard, link, "bob@example.com", { javaScriptEnabled: false });
  },

  async "somebody who has an account joins with it"(yard) {
    const { link } = await yard.api("POST", "/people/invitations", { invitation: { role: "editor" } });
    const { page, ...cleo } = await yard.visitor();
    await page.goto(link);
    await page.getByLabel("E-mail address").fill("cleo@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Join" }).click();
    await page.waitForURL(/\/app/);
    const second = await yard.api("POST", "/people/invitations", { invitation: { role: "owner" } });
    await page.goto(second.link);
    await yard.look({ page, ...cleo }, "an invitation for somebody who is signed in");
    await page.getByRole("button", { name: "Join" }).click();
    await page.waitForURL(/\/app/);
    const { members } = await yard.api("GET", "/people/members");
    yard.assert.equal(members.find((member) => member.email === "cleo@example.com").role, "owner");
  },

  async "a link of the operator signs somebody in, once"(yard) {
    const link = (await yard.run("person", "sign-in-link", "cleo@example.com")).match(/http\S+/)[0];
    for (const works of [true, false]) {
      const guest = await yard.visitor();
      await guest.page.goto(link);
      await yard.look(guest, "a link to sign in");
      if (works) {
        await guest.page.getByRole("button").click();
        await guest.page.waitForURL(/\/app/);
      } else {
        yard.assert.equal(await guest.page.getByRole("button").count(), 0);
      }
    }
  },

  async "whoever is sent to sign in comes back to where they were going"(yard) {
    const { page } = await yard.visitor();
    await page.goto(`${yard.url}/app/default/settings/members`);
    await page.waitForURL(/\/sign-in\?return_to=/);
    await page.getByText("With a key").click();
    await page.getByLabel("Key").fill(yard.key);
    await page.locator("details").getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(`${yard.url}/app/default/settings/members`);
    // Nobody is led elsewhere, whatever the address says.
    for (const away of ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"]) {
      const guest = await yard.visitor();
      await guest.page.goto(`${yard.url}/sign-in?return_to=${encodeURIComponent(away)}`);
      await guest.page.getByText("With a key").click();
      await guest.page.getByLabel("Key").fill(yard.key);
      await guest.page.locator("details").getByRole("button", { name: "Sign in" }).click();
      await guest.page.waitForURL(/\/app/);
      yard.assert.ok(guest.page.url().startsWith(yard.url), away);
    }
  },

  async "a page of another site cannot sign anybody in"(yard) {
    const { page } = await yard.visitor();
    // The callback's page is of another origin: its form has no token of this browser.
    await page.goto(yard.callback);
    await page.setContent(`<form method="post" action="${yard.url}/sign-in"><input name="key" value="${yard.key}"><button>Go</button></form>`);
    await page.getByRole("button", { name: "Go" }).click();
    await page.waitForURL(`${yard.url}/sign-in`);
    await page.getByRole("alert").waitFor();
    await page.goto(`${yard.url}/app`);
    await page.waitForURL(/\/sign-in/);
  },
};
