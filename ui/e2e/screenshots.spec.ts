// Takes pictures of the UI: every page in both languages at three widths, for whoever works on it, and those that the
// docs show. It is no test: `make screenshots` plays it.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Page, expect as patient, test } from "@playwright/test";
import { en as camerasEn, ja as camerasJa } from "../src/i18n/pages/cameras";
import { en as casesEn, ja as casesJa } from "../src/i18n/pages/cases";
import { en as deliveriesEn, ja as deliveriesJa } from "../src/i18n/pages/deliveries";
import { en as rulesEn, ja as rulesJa } from "../src/i18n/pages/rules";
import { en as wallEn, ja as wallJa } from "../src/i18n/pages/wall";
import { en as workersEn, ja as workersJa } from "../src/i18n/pages/workers";
import { type Language, needed, newPerson, signIn, WORDS } from "./person";

const cameras = { en: camerasEn, ja: camerasJa };
const cases = { en: casesEn, ja: casesJa };
const deliveries = { en: deliveriesEn, ja: deliveriesJa };
const rules = { en: rulesEn, ja: rulesJa };
const wall = { en: wallEn, ja: wallJa };
const workers = { en: workersEn, ja: workersJa };

/** A page that is not there by then is named, and the others are taken. */
const expect = patient.configure({ timeout: 20_000 });

/** A telephone, a laptop, a wide screen. */
const SIZES = { phone: [390, 844], laptop: [1024, 768], wide: [1680, 1050] } as const;
type Size = keyof typeof SIZES;
const OF_DOCS_SIZE = { width: 1440, height: 900 };
const OF_DOCS_PHONE = { width: 390, height: 780 };
/** A list goes on for ever; its beginning shows what it is like. */
const HEIGHT_MAX = 2200;
/** So many cameras have a picture before the wall is worth looking at; a telephone shows no more. */
const PICTURES_MIN = 2;
const TIMEOUT_MS = 180_000;
const CAMERA = "crossing";

interface Shot {
  address: string;
  /** What is done there before the picture is taken. */
  act?: (page: Page, language: Language) => Promise<void>;
  /** Nobody is signed in. */
  outside?: boolean;
}

/** Pages by the names of their pictures. */
const SHOTS: Record<string, Shot> = {
  "sign-in": { address: "/sign-in", outside: true },
  setup: { address: "/setup#token=0123456789", outside: true },
  password: { address: "/password#token=0123456789", outside: true },
  wall: { address: "/", act: pictures },
  "wall-six": { address: "/?layout=6", act: pictures },
  "wall-troubled": { address: "/?group=troubled" },
  "wall-groups": { address: "/", act: (page, language) => press(page, wall[language].ownGroups) },
  "first-run": { address: "/", act: withoutCameras },
  "no-server": { address: "/workers", act: withoutServer },
  live: { address: `/?live=${CAMERA}`, act: playing },
  incidents: { address: "/incidents?view=all" },
  "incidents-open": { address: "/incidents" },
  events: { address: "/events" },
  "events-zoomed": { address: "/events?zoom=15m" },
  "events-none": { address: "/events?severity=3&state=open&camera=dock" },
  event: { address: "/events/{event}" },
  "event-case": { address: "/events/{event}", act: (page, language) => press(page, cases[language].add) },
  search: { address: "/search" },
  cases: { address: "/cases?state=all" },
  case: { address: "/cases/{case}" },
  scoring: { address: "/scoring" },
  "scoring-sheet": { address: "/scoring/sheets/{sheet}" },
  "scoring-run": { address: "/scoring/runs/{run}" },
  cameras: { address: "/cameras" },
  "camera-add": { address: "/cameras/add" },
  "camera-add-probe": { address: "/cameras/add", act: (page, language) => wizard(page, language, "probe") },
  "camera-add-draw": { address: "/cameras/add", act: (page, language) => wizard(page, language, "draw") },
  "camera-add-place": { address: "/cameras/add", act: (page, language) => wizard(page, language, "place") },
  "camera-import": { address: "/cameras/import" },
  camera: { address: `/cameras/${CAMERA}` },
  "camera-troubled": { address: "/cameras/gate" },
  "camera-regions": { address: `/cameras/${CAMERA}/regions` },
  "camera-gate": { address: `/cameras/${CAMERA}/gate`, act: explained },
  "camera-settings": { address: `/cameras/${CAMERA}/settings` },
  workers: { address: "/workers" },
  "workers-enrol": { address: "/workers", act: (page, language) => press(page, workers[language].enrol) },
  queue: { address: "/queue" },
  "queue-all": { address: "/queue?state=all" },
  deliveries: { address: "/deliveries" },
  "deliveries-all": { address: "/deliveries?state=all" },
  receivers: { address: "/deliveries/receivers" },
  rules: { address: "/deliveries/rules" },
  "rule-change": {
    address: "/deliveries/rules",
    act: (page, language) => press(page, WORDS[language].action.change),
  },
  "rule-test": { address: "/deliveries/rules", act: (page, language) => press(page, rules[language].test) },
  "receiver-add": {
    address: "/deliveries/receivers",
    act: (page, language) => press(page, deliveries[language].addReceiver),
  },
  snoozes: { address: "/deliveries/snoozes" },
  system: { address: "/system" },
  audit: { address: "/audit" },
  settings: { address: "/settings" },
  account: { address: "/settings/account" },
  shares: { address: "/settings/shares" },
  people: { address: "/settings/people" },
  sites: { address: "/settings/sites" },
  notifications: { address: "/settings/notifications" },
  retention: { address: "/settings/retention" },
  vocabulary: { address: "/settings/vocabulary" },
  features: { address: "/settings/features" },
  tenants: { address: "/settings/tenants" },
  configuration: { address: "/settings/configuration" },
  palette: { address: "/events", act: (page, language) => press(page, WORDS[language].palette.title) },
  help: { address: "/events", act: (page) => page.keyboard.press("?") },
  "not-found": { address: "/nowhere" },
};
/** Also in light. */
const MAIN = ["wall", "live", "incidents", "events", "event", "search", "camera", "system", "deliveries", "audit"];
/** What the docs show: the picture's name, of which page, by theme. */
const OF_DOCS: Record<string, { of: string; theme: "dark" | "light"; languages: Language[]; phone?: true }> = {
  wall: { of: "wall", theme: "dark", languages: ["en", "ja"] },
  event: { of: "event", theme: "dark", languages: ["en", "ja"] },
  events: { of: "events", theme: "light", languages: ["en", "ja"] },
  incidents: { of: "incidents", theme: "dark", languages: ["en"] },
  live: { of: "live", theme: "dark", languages: ["en"] },
  camera: { of: "camera-gate", theme: "dark", languages: ["en"] },
  phone: { of: "wall", theme: "dark", languages: ["en", "ja"], phone: true },
};

const ONLY = process.env.CAMSERVER_SCREENSHOTS_ONLY?.split(",").filter(Boolean) ?? [];

test("screenshots", async ({ browser }) => {
  test.skip(!process.env.CAMSERVER_SCREENSHOTS, "only for `make screenshots`");
  test.setTimeout(1_700_000);
  const [folder, everything] = [needed("CAMSERVER_SCREENSHOTS"), needed("CAMSERVER_SCREENSHOTS_ALL")];
  for (const one of [folder, everything]) mkdirSync(one, { recursive: true });

  for (const language of ["en", "ja"] satisfies Language[]) {
    for (const theme of ["dark", "light"] as const) {
      const { page } = await newPerson(browser, language, { reducedMotion: "reduce" });
      await page.addInitScript(
        ([chosen, shown]) => {
          localStorage.setItem("camserver.language", chosen);
          localStorage.setItem("camserver.theme", shown);
        },
        [language, theme] as const,
      );
      const names = Object.keys(SHOTS).filter((name) => ONLY.length === 0 || ONLY.includes(name));
      for (const name of names.filter((one) => SHOTS[one]?.outside && theme === "dark")) {
        await take(page, language, theme, name, everything, {});
      }
      await signIn(page, language);
      await pictures(page);
      const places = await single(page);
      for (const name of names) {
        if (SHOTS[name]?.outside || (theme === "light" && !MAIN.includes(name))) continue;
        await attempt(name, () => take(page, language, theme, name, everything, places));
      }
      for (const [picture, { of, languages, ...shown }] of Object.entries(OF_DOCS)) {
        if (shown.theme !== theme || !languages.includes(language) || !names.includes(of)) continue;
        await page.setViewportSize(shown.phone ? OF_DOCS_PHONE : OF_DOCS_SIZE);
        await attempt(picture, async () => {
          await open(page, language, of, places);
          await page.screenshot({ path: join(folder, `${picture}-${language}.png`) });
        });
      }
      await page.context().close();
    }
  }
  expect(failed, "could not be taken").toEqual([]);
});

const failed: string[] = [];

/** One picture that can't be taken shall not keep the others away. */
async function attempt(name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    failed.push(`${name}: ${String(error).slice(0, 300)}`);
  }
}

type Places = Record<string, string>;

async function open(page: Page, language: Language, name: string, places: Places): Promise<void> {
  const shot = SHOTS[name] as Shot;
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.goto(shot.address.replace(/\{(\w+)\}/g, (_, what: string) => places[what] ?? "none"));
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.locator("main [aria-busy=true]")).toHaveCount(0);
  await shot.act?.(page, language);
  await drawn(page);
}

async function take(
  page: Page,
  language: Language,
  theme: string,
  name: string,
  folder: string,
  places: Places,
): Promise<void> {
  await page.setViewportSize({ width: SIZES.wide[0], height: SIZES.wide[1] });
  await open(page, language, name, places);
  for (const size of Object.keys(SIZES) as Size[]) {
    // In light a telephone and a wide screen tell enough.
    if (theme === "light" && size === "laptop") continue;
    const [width, height] = SIZES[size];
    await page.setViewportSize({ width, height });
    await drawn(page);
    const whole = await page.evaluate(() => document.documentElement.scrollHeight);
    const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    if (isWide) console.log(`${name} is wider than the screen in ${language} at ${size}`);
    await page.setViewportSize({ width, height: Math.min(HEIGHT_MAX, Math.max(height, whole)) });
    await filled(page);
    const path = join(folder, `${name}-${size}-${language}${theme === "light" ? "-light" : ""}.png`);
    await page.screenshot({ path });
  }
}

/** Every picture on the page is there, but for those beyond the edge of a strip, which come when they are gone to. */
async function drawn(page: Page): Promise<void> {
  const all = () =>
    page.locator("img").evaluateAll((found) =>
      (found as HTMLImageElement[]).every((one) => {
        const edge = one.closest("ul")?.getBoundingClientRect().right ?? 0;
        return one.complete || (one.loading === "lazy" && one.getBoundingClientRect().left >= edge);
      }),
    );
  await expect.poll(all, { intervals: [50, 100, 200] }).toBe(true);
}

/** Tiles that came into sight with a larger window get their pictures; a camera may have none. */
async function filled(page: Page): Promise<void> {
  const waiting = page.locator("main article .animate-pulse");
  await expect
    .poll(() => waiting.count(), { timeout: 5000 })
    .toBe(0)
    .catch(() => undefined);
}

/** Addresses of what has one of its own. */
async function single(page: Page): Promise<Places> {
  const ask = async (path: string) => (await page.request.get(path)).json();
  const { events } = await ask("/api/events?limit=60");
  const seen = events.filter((one: { issue: unknown }) => one.issue === null);
  const told = seen.find((one: { frame_count: number }) => one.frame_count > 2) ?? seen[0] ?? events[0];
  const { cases: all } = await ask("/api/cases?limit=20");
  const { sheets } = await ask("/api/scoring/sheets");
  const { runs } = await ask("/api/scoring/runs");
  return {
    event: told.event_uuid,
    case: all.at(-1)?.case_uuid,
    sheet: sheets[0]?.sheet_uuid,
    run: runs[0]?.run_uuid,
  };
}

async function press(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name }).first().click();
  await expect(page.getByRole("dialog")).toBeVisible();
  await expect(page.locator("dialog [aria-busy=true]")).toHaveCount(0);
}

async function pictures(page: Page): Promise<void> {
  const stills = page.getByRole("img", { name: /Newest picture|最新の画像/ });
  await expect.poll(() => stills.count(), { timeout: TIMEOUT_MS }).toBeGreaterThanOrEqual(PICTURES_MIN);
}

/** What somebody sees whose house has no camera yet. */
async function withoutCameras(page: Page, language: Language): Promise<void> {
  await page.route("**/api/cameras?*", (route) => route.fulfill({ json: { cameras: [], next_after: null } }));
  await page.route("**/api/events?*", (route) => route.fulfill({ json: { events: [], next_before: null } }));
  await page.reload();
  await expect(page.getByText(WORDS[language].wall.emptyTitle)).toBeVisible();
}

async function withoutServer(page: Page, language: Language): Promise<void> {
  await page.route("**/api/{workers,leases}*", (route) => route.abort());
  await page.reload();
  await expect(page.getByText(WORDS[language].problem.title).first()).toBeVisible();
}

async function playing(page: Page): Promise<void> {
  const video = page.getByRole("dialog").locator("video").first();
  await expect(video).toBeVisible();
  await expect.poll(() => video.evaluate((one: HTMLVideoElement) => one.currentTime)).toBeGreaterThan(0.5);
}

async function explained(page: Page, language: Language): Promise<void> {
  await page.getByRole("button", { name: cameras[language].explain }).click();
  await expect(page.getByAltText(cameras[language].explainPicture)).toBeVisible();
}

async function wizard(page: Page, language: Language, until: "probe" | "draw" | "place"): Promise<void> {
  const words = cameras[language];
  const next = page.getByRole("button", { name: WORDS[language].action.next });
  const { source } = await (await page.request.get(`/api/cameras/${CAMERA}`)).json();
  await page.getByLabel(words.address, { exact: true }).fill(source.url);
  await next.click();
  await page.getByRole("button", { name: words.probe }).click();
  await expect(page.getByAltText(words.probePicture)).toBeVisible();
  if (until === "probe") return;
  await next.click();
  if (until === "draw") return;
  await next.click();
}
