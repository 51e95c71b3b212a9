// The MCP Inspector, as its own page shows it: given the address alone, it registers, has a person let it in, lists and calls tools.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url));

async function freePort() {
  const server = createServer();
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

// Starts the Inspector for a server; the address of its page.
async function start({ url, dir }) {
  const env = {
    PATH: process.env.PATH,
    HOME: dir,
    CLIENT_PORT: `${await freePort()}`,
    MCP_SANDBOX_PORT: `${await freePort()}`,
    MCP_AUTO_OPEN_ENABLED: "false",
    MCP_INSPECTOR_SECRET_STORE: "memory",
  };
  const child = spawn(process.execPath, [PROGRAM, "--web", "--transport", "http", "--server-url", `${url}/mcp`], { env });
  let said = "";
  const address = await new Promise((found, failed) => {
    const read = (data) => {
      said += data;
      const ready = said.match(/http:\/\/127\.0\.0\.1:\d+\S*MCP_INSPECTOR_API_TOKEN=\w+/);
      if (ready) found(ready[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", () => failed(new Error(said)));
  });
  return { address, stop: () => child.kill() };
}

export default {
  async "the Inspector signs in from the address alone"(yard) {
    const { assert, url } = yard;
    const { link } = await yard.api("POST", "/people/invitations", { invitation: { role: "owner", email: "ines@example.com" } });
    const person = await yard.visitor();
    const { page, context } = person;
    // The Inspector's page asks for a font that is somewhere else.
    await context.route(/fonts\.googleapis\.com/, (route) => route.fulfill({ contentType: "text/css", body: "" }));
    await page.goto(link);
    await page.getByLabel("Password").fill("correct horse battery");
    await page.getByRole("button", { name: "Join" }).click();
    await page.waitForURL(/\/app/);

    const inspector = await start(yard);
    const calls = async () => (await yard.api("GET", "/tools/calls?limit=100")).calls.filter((call) => call.client_name === "MCP Inspector");
    try {
      await page.goto(inspector.address);
      // What can be pressed is what is around the switch.
      await page.getByRole("switch", { name: /Connect or disconnect/ }).click({ force: true });
      await page.waitForURL((now) => now.href.startsWith(`${url}/oauth/authorize`));
      await yard.look(person, "the page that asks");
      assert.match(await page.locator("main").textContent(), /Let MCP Inspector in\?.*the tools of the project \(MCP\)/s);
      await page.getByRole("button", { name: "Allow", exact: true }).click();
      await page.waitForURL((now) => !now.href.startsWith(url));
      await page.getByText("Tools", { exact: true }).click();
      await page.getByRole("button", { name: /GET_A_THING/ }).click();
      await page.getByRole("textbox", { name: "owner" }).fill("o");
      await page.getByRole("textbox", { name: "path" }).fill("p");
      await page.getByRole("button", { name: "Execute Tool" }).click();
      while (!(await calls()).length) await page.waitForTimeout(100);
      assert.deepEqual((await calls()).map((call) => [call.outcome, call.user_name]), [["ok", "ines@example.com"]]);

      const account = await context.newPage();
      await account.goto(`${url}/account`);
      await account.locator("form", { hasText: "MCP Inspector" }).getByRole("button", { name: "Revoke" }).click();
      await account.getByRole("status").waitFor();
      // Its stream ends with the grant, and it begins again by itself.
      await page.waitForURL((now) => now.href.startsWith(`${url}/oauth/authorize`));
      assert.equal((await calls()).length, 1);
    } finally {
      inspector.stop();
    }
  },
};
