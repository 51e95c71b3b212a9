// A real browser for tests: Chromium as the system has it, driven by Playwright.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

// The headless shell comes first: it shows pages as the browser does, for half of the work.
const PLACES = [process.env.TOOLYARD_CHROMIUM, "/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
// What a browser does besides showing pages: none of it here.
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export function openBrowser() {
  const executablePath = PLACES.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error("there is no Chromium; `./test` installs it, or name one in TOOLYARD_CHROMIUM");
  return chromium.launch({ executablePath, args: ARGS });
}

// Collects what a page must not do: errors in its console, things that its policy refused, requests that failed.
export function watch(page) {
  const problems = [];
  page.on("console", (message) => {
    // A status that is no success is the page's answer to what was asked, and is told by the page itself.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("requestfailed", (request) => {
    // A stream ends with its page.
    if (request.resourceType() !== "eventsource" && request.failure()?.errorText !== "net::ERR_ABORTED") {
      problems.push(`failed: ${request.url()} ${request.failure()?.errorText}`);
    }
  });
  return problems;
}
