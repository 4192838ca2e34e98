// Takes pictures of the UI: every page in both languages at three widths, for whoever works on it, and those that the
// docs show. It is no test: `make screenshots` plays it.

import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, type Page, test } from "@playwright/test";
import { expectDrawn, type Language, needed, newPerson, setUp, signIn, WORDS } from "./person";

const SIZES = { 1440: 900, 820: 1180, 390: 844 } as const;
/** So many cameras have a picture before the wall is worth looking at. */
const PICTURES_MIN = Number(process.env.CAMSERVER_PICTURES_MIN ?? 3);
const EVENT_TIMEOUT_MS = 180_000;

/** Pages by the names of their pictures. Those of the docs are taken at the largest width. */
const PAGES: Record<string, string> = {
  wall: "/",
  incidents: "/incidents?view=all",
  events: "/events",
  search: "/search",
  cases: "/cases?state=all",
  cameras: "/cameras",
  "camera-add": "/cameras/add",
  "camera-import": "/cameras/import",
  workers: "/workers",
  queue: "/queue?state=all",
  deliveries: "/deliveries?state=all",
  receivers: "/deliveries/receivers",
  rules: "/deliveries/rules",
  snoozes: "/deliveries/snoozes",
  system: "/system",
  audit: "/audit",
  settings: "/settings",
  account: "/settings/account",
  people: "/settings/people",
  sites: "/settings/sites",
  retention: "/settings/retention",
  vocabulary: "/settings/vocabulary",
  features: "/settings/features",
  tenants: "/settings/tenants",
  configuration: "/settings/configuration",
};
/** Some of them only, while working on a page: CAMSERVER_SCREENSHOTS_ONLY=wall,events make screenshots. */
const ONLY = process.env.CAMSERVER_SCREENSHOTS_ONLY?.split(",");
const OF_DOCS = ["wall", "events", "event", "incidents", "search", "camera"];

test("screenshots", async ({ browser }) => {
  test.skip(!process.env.CAMSERVER_SCREENSHOTS, "only for `make screenshots`");
  test.setTimeout(900_000);
  const folder = needed("CAMSERVER_SCREENSHOTS");
  const everything = process.env.CAMSERVER_SCREENSHOTS_ALL;
  for (const one of [folder, everything]) if (one) mkdirSync(one, { recursive: true });
  const first = await newPerson(browser, "en-GB");
  if (process.env.CAMSERVER_SET_UP) await signIn(first.page, "en");
  else await setUp(first.page, "en");
  await first.page.goto("/events");
  await expect(first.page.getByRole("article").first()).toBeVisible({ timeout: EVENT_TIMEOUT_MS });

  for (const language of ["en", "ja"] satisfies Language[]) {
    const { page } = await newPerson(browser, language, { reducedMotion: "reduce" });
    await page.addInitScript((chosen) => localStorage.setItem("camserver.language", chosen), language);
    await signIn(page, language);
    const stills = page.getByRole("img", { name: /Newest picture|最新の画像/ });
    await expect.poll(() => stills.count(), { timeout: EVENT_TIMEOUT_MS }).toBeGreaterThanOrEqual(PICTURES_MIN);
    await expect(page.getByTitle(WORDS[language].feed.live)).toBeVisible();
    const addresses = { ...PAGES, ...(await single(page)) };
    for (const [name, address] of Object.entries(addresses)) {
      if (ONLY ? !ONLY.includes(name) : !everything && !OF_DOCS.includes(name)) continue;
      await page.goto(address);
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      await expect(page.locator("main [aria-busy=true]")).toHaveCount(0);
      if (OF_DOCS.includes(name)) await expectDrawn(page, /./);
      for (const [width, height] of Object.entries(SIZES)) {
        if (!everything && width !== "1440") continue;
        await page.setViewportSize({ width: Number(width), height });
        const file = join(everything ?? folder, `${name}-${language}${everything ? `-${width}` : ""}.png`);
        await page.screenshot({ path: file });
        if (everything && width === "1440" && OF_DOCS.includes(name)) {
          copyFileSync(file, join(folder, `${name}-${language}.png`));
        }
      }
      await page.setViewportSize({ width: 1440, height: 900 });
    }
  }
});

/** The addresses of one event and one camera. */
async function single(page: Page): Promise<Record<string, string>> {
  const { events } = await (await page.request.get("/api/events?limit=20")).json();
  const { cameras } = await (await page.request.get("/api/cameras?limit=1")).json();
  const event = events.find((one: { issue: unknown }) => one.issue === null) ?? events[0];
  const camera = `/cameras/${encodeURIComponent(cameras[0].camera_id)}`;
  return {
    event: `/events/${event.event_uuid}`,
    camera,
    "camera-regions": `${camera}/regions`,
    "camera-gate": `${camera}/gate`,
    "camera-settings": `${camera}/settings`,
  };
}
