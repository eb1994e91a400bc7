/**
 * Opens every view of the tab in Firefox, in TensorBoard and in a report, and uses it. Arguments:
 * TensorBoard's address, a report, a folder for pictures, Firefox. Prints what fails.
 */

import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [tensorboard, report, out, executablePath] = process.argv.slice(2);
const PATIENCE_MS = 60_000;
const LAYER = "layer=fmapboard/layer1.0.conv1";
const VIEWS = {
  overview: "view=overview",
  maps: `view=maps&${LAYER}`,
  nan: "view=maps&layer=fmapboard/layer3.1.conv1&step=10",
  inputs: `view=maps&${LAYER}&role=inputs&sort=similarity`,
  gradients: `view=maps&${LAYER}&role=gradients_of_maps`,
  kernels: "view=maps&layer=fmapboard/conv1&role=kernels&channel=2",
  channel: `view=maps&${LAYER}&channel=3&overlay=60`,
  pixel: `view=maps&${LAYER}&pixel=0.43,0.61`,
  compare: `view=maps&${LAYER}&compare=@0&show=all&rank=1`,
  film: `view=film&${LAYER}&channel=3&channels=3,5`,
  attribution: "view=attribution",
};

/** TensorBoard's own scripts warn; only errors are of interest. */
const IS_COMPLAINT = (message) => message.type() === "error";

function address(base, state) {
  const entries = state.split("&").map((each) => {
    const [field, value] = each.split("=");
    return `p.feature_maps.${field}=${encodeURIComponent(value)}`;
  });
  return `${base}#feature_maps&p.feature_maps.run=resnet18&${entries.join("&")}`;
}

/** The tab's frame, or the page of a report, once all that it requested is drawn. */
async function tabOf(page, isInside) {
  const frame = isInside ? await (await page.waitForSelector("iframe")).contentFrame() : page;
  await settle(frame);
  return frame;
}

async function settle(frame) {
  await frame.waitForFunction(
    () =>
      new Promise((done) => {
        const { dataset } = document.documentElement;
        const look = () => done(dataset.ready === "true" && dataset.busy === "false");
        requestAnimationFrame(() => requestAnimationFrame(look));
      }),
    { timeout: PATIENCE_MS },
  );
}

const layerOf = (frame) => frame.evaluate(() => document.documentElement.dataset.layer);
const waitForLayer = (frame, layer) =>
  frame.waitForFunction((key) => document.documentElement.dataset.layer === key, {}, layer);

async function open(browser, base, name, isInside, complaints) {
  const page = await browser.newPage();
  await page.setViewport({ width: 1400, height: 900 });
  page.on("console", (said) => IS_COMPLAINT(said) && complaints.push(said.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(address(base, VIEWS[name]), { waitUntil: "load" });
  return { page, frame: await tabOf(page, isInside) };
}

/** Keys, the Back button, and saving the view as a file. */
async function use({ page, frame }, downloads) {
  const first = await layerOf(frame);
  await page.keyboard.press("ArrowDown");
  await frame.waitForFunction((key) => document.documentElement.dataset.layer !== key, {}, first);
  await settle(frame);
  await page.evaluate(() => history.back());
  await waitForLayer(frame, first);
  await settle(frame);
  const before = readdirSync(downloads).length;
  await page.keyboard.press("p");
  for (let tries = 0; readdirSync(downloads).length === before; tries += 1) {
    assert(tries < 100, "the view was not saved");
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** True if a colour bar reaches beyond the head that it is in. */
function isBarOutside() {
  const rightOf = (element) => element.getBoundingClientRect().right;
  const bars = [...document.querySelectorAll(".legend .bar")];
  return bars.some((bar) => rightOf(bar) > rightOf(bar.closest(".head")));
}

const downloads = join(out, "downloads");
mkdirSync(downloads, { recursive: true });
const browser = await puppeteer.launch({
  browser: "firefox",
  executablePath,
  headless: true,
  extraPrefsFirefox: {
    "browser.download.dir": downloads,
    "browser.download.folderList": 2,
    "browser.download.useDownloadDir": true,
  },
  downloadBehavior: { policy: "allow", downloadPath: downloads },
});
let failed = 0;
console.log(await browser.version());
const places = { TensorBoard: [tensorboard, true], report: [pathToFileURL(report).href, false] };
for (const [place, [base, isInside]] of Object.entries(places)) {
  for (const name of Object.keys(VIEWS)) {
    const complaints = [];
    try {
      const opened = await open(browser, base, name, isInside, complaints);
      await opened.page.screenshot({ path: join(out, `${place}_${name}.png`) });
      if (await opened.frame.evaluate(isBarOutside)) complaints.push("a colour bar is cut off");
      if (name === "maps") await use(opened, downloads);
      await opened.page.close();
    } catch (error) {
      complaints.push(String(error));
    }
    console.log(`${place} ${name}: ${complaints.join("; ") || "ok"}`);
    failed += complaints.length;
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
