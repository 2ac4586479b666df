// Opens a page in chromium as desktop, phone and dark: what the console said, what was asked for, whether it is wider than the
// screen, and what axe finds. node look.mjs CHROMIUM PAGE [FOLDER for screenshots]; prints JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [program, page, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const switches = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: program, args: switches });
const found = [];
for (const [name, colorScheme, width, height] of [["desktop", "light", 1200, 900], ["phone", "light", 390, 844], ["dark", "dark", 1200, 900]]) {
  const console_ = [], requests = [];
  const context = await browser.newContext({ colorScheme, viewport: { width, height } });
  const tab = await context.newPage();
  tab.on("console", (message) => console_.push(message.text()));
  tab.on("pageerror", (error) => console_.push(String(error)));
  tab.on("request", (request) => requests.push(request.url()));
  await tab.goto(page);
  await tab.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (folder) await tab.screenshot({ path: `${folder}/${name}.png` });
  const said = [...console_];
  await context.close();
  // axe is a script, which the page's policy forbids: a second tab, without the policy, is what it looks at
  const open = await browser.newContext({ colorScheme, viewport: { width, height }, bypassCSP: true });
  const bare = await open.newPage();
  await bare.goto(page);
  await bare.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
  await bare.addScriptTag({ content: axe });
  // every rule runs on every node; of what passes only the first node is written out, which nobody reads
  const result = await bare.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const violations = result.violations.map((one) => ({ id: one.id, impact: one.impact, node: one.nodes[0].html.slice(0, 200) }));
  await open.close();
  found.push({ name, console: said, requests, wide, violations, checked: result.passes.length });
}
await browser.close();
console.log(JSON.stringify(found));
