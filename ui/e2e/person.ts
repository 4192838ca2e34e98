// What the tests in a browser share: somebody who uses the pages, and what they must never see.

import AxeBuilder from "@axe-core/playwright";
import { type Browser, type BrowserContextOptions, expect, type Page } from "@playwright/test";
import { en } from "../src/i18n/en";
import { ja } from "../src/i18n/ja";

export const WORDS = { ja, en };
export type Language = keyof typeof WORDS;

export const LOGIN = "first-admin";
export const PASSWORD = "a-password-nobody-guesses-41";

export function needed(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run this through tests/e2e/ui`);
  return value;
}

/** A browser of somebody's own, with what its console said that it should not have. */
export async function newPerson(browser: Browser, locale: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ locale, timezoneId: "Asia/Tokyo", ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // Being signed out is an answer, which browsers log as a failure; and other tests change the machine's network.
    const isUsual = /status of 40[14]|ERR_NETWORK_CHANGED/.test(message.text());
    // Without its address nobody finds out what a browser could not load.
    const where = message.location().url;
    // A page that goes while it asks for a viewing leaves one behind, which the next page hears of.
    const isLeft = /status of 409/.test(message.text()) && where.endsWith("/api/modal/lease");
    if (message.type() === "error" && !isUsual && !isLeft) complaints.push(`${message.text()} ${where}`.trim());
  });
  return { page, complaints };
}

/** Opens the set-up link and makes the account; `look` is called while the form is still empty. */
export async function setUp(page: Page, language: Language, look?: (page: Page) => Promise<void>): Promise<void> {
  const words = WORDS[language].setup;
  await page.goto(needed("CAMSERVER_SETUP_LINK"));
  await expect(page.getByRole("heading", { level: 1, name: words.title })).toBeVisible();
  await look?.(page);
  await page.getByLabel(words.login).fill(LOGIN);
  await page.getByLabel(words.password, { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: words.submit }).click();
  await expect(page.getByRole("heading", { level: 1, name: WORDS[language].wall.title })).toBeVisible();
}

export async function signIn(page: Page, language: Language): Promise<void> {
  const words = WORDS[language].signIn;
  await page.goto("/sign-in");
  await page.getByLabel(words.login).fill(LOGIN);
  await page.getByLabel(words.password).fill(PASSWORD);
  await page.getByRole("button", { name: words.submit }).click();
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.waitForURL((address) => address.pathname === "/");
}

export async function addCamera(page: Page, camera_id: string, name: string, url: string): Promise<void> {
  const session = await (await page.request.get("/api/session")).json();
  const answer = await page.request.post("/api/cameras", {
    headers: { "X-CSRF-Token": session.csrf_token },
    data: { camera_id, name, source: { url } },
  });
  expect(answer.status(), await answer.text()).toBe(201);
}

/** Every rule of axe, in both themes; the page is left in the one it was in. */
export async function expectAccessible(page: Page, language: Language): Promise<void> {
  const { toLight, toDark } = WORDS[language].theme;
  const dark = page.locator("html.dark");
  // Colours that are still fading have no contrast of their own.
  await page.emulateMedia({ reducedMotion: "reduce" });
  await expect(page.locator("html")).toHaveAttribute("lang", language);
  // A page that is on its way has nothing to be judged by yet.
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.locator("main [aria-busy=true]")).toHaveCount(0);
  await expect(dark).toHaveCount(1);
  expect(await complaintsOfAxe(page), "in dark").toEqual([]);
  await page.getByRole("button", { name: toLight }).click();
  await expect(dark).toHaveCount(0);
  expect(await complaintsOfAxe(page), "in light").toEqual([]);
  await page.getByRole("button", { name: toDark }).click();
}

/** The same of a dialog that is open, which covers the switch of themes. */
export async function expectAccessibleDialog(page: Page): Promise<void> {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await expect(page.getByRole("dialog")).toBeVisible();
  expect(await complaintsOfAxe(page)).toEqual([]);
}

async function complaintsOfAxe(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

/** Marks the page as it is now; reloading or leaving it would lose the mark. */
export async function mark(page: Page): Promise<void> {
  await page.evaluate(() => document.documentElement.setAttribute("data-marked", "yes"));
}

export async function expectMarked(page: Page): Promise<void> {
  await expect(page.locator("html")).toHaveAttribute("data-marked", "yes");
}

/** The picture was not only asked for but drawn. */
export async function expectDrawn(page: Page, alt: string | RegExp): Promise<void> {
  const picture = page.getByAltText(alt).first();
  await expect(picture).toBeVisible();
  await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);
}
