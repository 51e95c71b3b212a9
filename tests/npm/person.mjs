// A person in front of a browser without scripts: signs in at URL with KEY, and lets clients in.
export class Person {
  constructor(url, key) {
    Object.assign(this, { url, key, cookies: new Map() });
  }

  async #send(address, form) {
    const headers = { cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ") };
    const reply = await fetch(address, { method: form ? "POST" : "GET", body: form && new URLSearchParams(form), headers, redirect: "manual" });
    for (const cookie of reply.headers.getSetCookie()) {
      const [name, value] = cookie.split(";")[0].split(/=(.*)/s);
      this.cookies.set(name, value);
    }
    return { location: reply.headers.get("location"), status: reply.status, text: await reply.text() };
  }

  // Opens an address and goes on as a person does who says yes: the address that leads away from the server, or the last page.
  async allow(address) {
    let form;
    for (let step = 0; step < 10; step += 1) {
      const page = await this.#send(address, form);
      form = undefined;
      if (page.location) {
        address = new URL(page.location, address).href;
        if (!address.startsWith(this.url)) return address;
      } else if (page.text.includes('name="key"')) {
        form = { ...hidden(page.text), key: this.key };
        address = `${this.url}/sign-in`;
      } else if (page.text.includes('value="allow"')) {
        const ticked = [...page.text.matchAll(/name="(allow_\w+)"/g)].map(([, name]) => [name, "on"]);
        address = new URL(page.text.match(/action="([^"]+)"/)[1], address).href;
        form = { ...hidden(page.text), ...Object.fromEntries(ticked), decision: "allow" };
      } else if (page.status === 200) {
        return page.text;
      } else {
        throw new Error(`${page.status} at ${address}: ${page.text}`);
      }
    }
    throw new Error("no end of pages");
  }
}

function hidden(page) {
  const plain = (text) => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)).replaceAll("&amp;", "&");
  return Object.fromEntries([...page.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, plain(value)]));
}
