// Calling a tool by hand.
import { waiting } from "./approvals.mjs";

const HOSTILE = `<img src=x onerror=alert(1)> "it's"`;
const of = (action) => `/try?ref=tools.native.fake.${action}.main`;

export const screens = () => ({
  finder: "/try",
  found: `/try?q=${encodeURIComponent("read a fake thing")}`,
  "nothing fits": `/try?q=${encodeURIComponent(HOSTILE)}`,
  tool: of("GET_A_THING"),
  "tool, raw": `${of("GET_A_THING")}&tab=raw`,
  "every kind of field": of("FORM_A_THING"),
});

const result = (page) => page.getByRole("region", { name: "Result" });

// Goes on with the Tab key until something has the focus.
async function tabTo(page, target) {
  for (let steps = 0; steps < 60; steps += 1) {
    await page.keyboard.press("Tab");
    if (await target.evaluate((element) => element === document.activeElement)) return;
  }
  throw new Error(`the keyboard does not reach ${target}`);
}

export const walks = {
  async "find a tool with a sentence and run it"(page, { app, api, assert }) {
    await page.goto(`${app}/try`);
    await page.getByLabel("What do you want to do?").fill("read a fake thing");
    await page.getByRole("button", { name: "Find tools" }).click();
    await page.getByRole("link", { name: "GET_A_THING" }).first().click();
    await page.getByLabel("Connection").selectOption("main");
    const owner = `ann-${Math.random()}`;
    await page.getByLabel("owner").fill(owner);
    await page.getByLabel("path").fill("a/b.txt");
    await page.getByLabel("tags").fill("one\ntwo");
    await page.getByRole("button", { name: "Run" }).click();
    await result(page).getByText("succeeded").waitFor();
    const shown = await result(page).textContent();
    assert.ok(shown.includes(`/echo/${owner}/files/a/b.txt`), shown);
    assert.match(shown, /tags=one&tags=two/);
    assert.ok((await page.getByRole("region", { name: "The same call as code" }).textContent()).includes(owner));
    await result(page).getByRole("link", { name: "This call in the record" }).click();
    await page.waitForURL(/\/calls\//);
    const { call } = await api("GET", `/tools/calls/${page.url().split("/").pop()}`);
    assert.deepEqual([call.call_ref, call.outcome], ["tools.native.fake.GET_A_THING.main", "ok"]);
  },

  async "run one from its raw arguments"(page, { app, assert }) {
    await page.goto(app + of("GET_A_THING"));
    await page.getByLabel("owner").fill("ann");
    await page.getByRole("button", { name: "Go on as JSON" }).click();
    const raw = page.getByLabel("All arguments as JSON");
    assert.deepEqual(JSON.parse(await raw.inputValue()), { owner: "ann", size: 10 });
    await raw.fill('{"owner": "ann", "path": "raw.txt"');
    await page.getByRole("button", { name: "Run" }).click();
    assert.match(await page.getByRole("alert").textContent(), /not JSON/);
    await raw.fill('{"owner": "ann", "path": "raw.txt"}');
    await page.getByRole("button", { name: "Run" }).click();
    await result(page).getByText("succeeded").waitFor();
    assert.match(await result(page).textContent(), /\/echo\/ann\/files\/raw.txt/);
    await page.getByRole("button", { name: "Go on in the form" }).click();
    assert.equal(await page.getByLabel("path").inputValue(), "raw.txt");
  },

  async "with the keyboard alone"(page, { app, assert }) {
    await page.goto(`${app}/try`);
    await tabTo(page, page.getByLabel("Ref"));
    await page.keyboard.type("tools.native.fake.GET_A_THING.main");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Get a thing" }).waitFor();
    await tabTo(page, page.getByLabel("owner"));
    await page.keyboard.type("ann");
    await tabTo(page, page.getByLabel("path"));
    await page.keyboard.type("keys.txt");
    await page.keyboard.press("Enter");
    await result(page).getByText("succeeded").waitFor();
    assert.match(await result(page).textContent(), /files\/keys.txt/);
  },

  async "errors come in words"(page, { app, assert }) {
    await page.goto(app + of("FAIL_A_THING"));
    await page.getByRole("textbox", { name: "code" }).fill("many");
    await page.getByRole("button", { name: "Run" }).click();
    assert.match(await page.getByRole("alert").textContent(), /code/);
    await page.getByRole("textbox", { name: "code" }).fill("418");
    await page.getByRole("button", { name: "Run" }).click();
    assert.match(await result(page).getByRole("alert").textContent(), /418/);
    await page.goto(`${app}${of("FAIL_A_THING")}&tab=raw`);
    await page.getByLabel("All arguments as JSON").fill('{"cod": 1}');
    await page.getByRole("button", { name: "Run" }).click();
    assert.match(await result(page).getByRole("alert").textContent(), /cod/);
    await page.goto(app + of("NO_SUCH_THING"));
    assert.match(await page.getByRole("alert").textContent(), /not found/);
  },

  async "a call that waits leads to its approval"(page, context) {
    await waiting(context, `rule ${Math.random()}`);
    const title = `by hand ${Math.random()}`;
    await page.goto(context.app + of("MAKE_A_THING"));
    await page.getByLabel("title").fill(title);
    const run = page.getByRole("button", { name: "Run" });
    await run.click();
    await result(page).getByText("waits for a person", { exact: true }).waitFor();
    await result(page).getByRole("link", { name: "Somebody has to approve this call" }).click();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("status").waitFor();
    await page.getByRole("button", { name: "Run it now" }).click();
    await result(page).getByText("succeeded").waitFor();
    context.assert.ok((await result(page).textContent()).includes(title));
    await result(page).getByRole("link", { name: "This call in the record" }).click();
    await page.getByRole("link", { name: "The yes that it was made with" }).click();
    await page.getByRole("heading", { name: "tools.native.fake.MAKE_A_THING.main" }).waitFor();
    context.assert.equal(await page.getByRole("button", { name: "Run it now" }).count(), 0, "a yes is for one call");
  },

  async "from a tool to a rule for it"(page, { app, assert }) {
    await page.goto(app + of("GET_A_THING"));
    await page.getByRole("link", { name: "Have its calls wait for a person" }).click();
    assert.equal(await page.getByLabel("Pattern of a new rule").inputValue(), "tools.native.fake.GET_A_THING.*");
    assert.equal(await page.getByLabel("Permission of a new rule").inputValue(), "ask");
  },

  async "from a tool to a workflow, a trigger and a delivery that is replayed"(page, { app, assert }) {
    const slug = `walk-${Math.random().toString(36).slice(2)}`;
    await page.goto(app + of("GET_A_THING"));
    await page.getByRole("link", { name: "Use it in a workflow" }).click();
    assert.equal(await page.getByLabel("Slug").inputValue(), "get-a-thing");
    await page.getByLabel("Slug").fill(slug);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("link", { name: "By the clock" }).click();
    assert.equal(await page.getByLabel("Workflow").inputValue(), slug);
    const mapping = page.getByLabel("Mapping");
    assert.ok("owner" in JSON.parse(await mapping.inputValue()));
    await mapping.fill('{"owner": "ann", "path": "x.txt"}');
    await page.locator("#schedule").fill("0 3 1 1 *");
    await page.getByRole("button", { name: "Make the schedule" }).click();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByRole("heading", { name: /^Delivery of/ }).waitFor();
    for (let tries = 0; tries < 40 && !(await page.locator("main .badge").first().textContent()).includes("done"); tries += 1) {
      await page.waitForTimeout(250);
      await page.reload();
    }
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("status").waitFor();
  },

  async "hostile text is shown and not run"(page, { app, assert }) {
    await page.goto(app + of("GET_A_THING"));
    await page.getByLabel("owner").fill(HOSTILE);
    await page.getByLabel("path").fill("</code></pre><script>alert(1)</script>");
    await page.getByRole("button", { name: "Run" }).click();
    await result(page).waitFor();
    assert.equal(await page.locator("main :is(img, script)").count(), 0);
    assert.equal(await page.getByLabel("owner").inputValue(), HOSTILE);
    assert.ok((await page.getByRole("region", { name: "The same call as code" }).textContent()).includes("<img src=x onerror=alert(1)>"));
    await page.goto(`${app}/try?q=${encodeURIComponent(HOSTILE)}&ref=`);
    assert.equal(await page.locator("main img").count(), 0);
    assert.equal(await page.getByLabel("What do you want to do?").inputValue(), HOSTILE);
  },
};
