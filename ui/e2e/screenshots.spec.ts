// Takes the pictures of the UI that the docs show. It is no test: `make screenshots` plays it.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@playwright/test";
import { expectDrawn, type Language, needed, newPerson, setUp, signIn, WORDS } from "./person";

const SCREEN = { width: 1440, height: 900 };
/** So many cameras have a picture before the wall is worth looking at. */
const PICTURES_MIN = Number(process.env.CAMSERVER_PICTURES_MIN ?? 3);
const EVENT_TIMEOUT_MS = 180_000;

test("screenshots", async ({ browser }) => {
  test.skip(!process.env.CAMSERVER_SCREENSHOTS, "only for `make screenshots`");
  const folder = needed("CAMSERVER_SCREENSHOTS");
  mkdirSync(folder, { recursive: true });
  const first = await newPerson(browser, "en-GB");
  await setUp(first.page, "en");
  await first.page.goto("/events");
  await expect(first.page.getByRole("article").first()).toBeVisible({ timeout: EVENT_TIMEOUT_MS });

  for (const language of ["en", "ja"] satisfies Language[]) {
    const { page } = await newPerson(browser, language, { viewport: SCREEN, reducedMotion: "reduce" });
    await page.addInitScript((chosen) => localStorage.setItem("camserver.language", chosen), language);
    const shoot = (name: string) => page.screenshot({ path: join(folder, `${name}-${language}.png`) });
    await signIn(page, language);
    const stills = page.getByRole("img", { name: /Newest picture|最新の画像/ });
    await expect.poll(() => stills.count(), { timeout: EVENT_TIMEOUT_MS }).toBeGreaterThanOrEqual(PICTURES_MIN);
    await expect(page.getByTitle(WORDS[language].feed.live)).toBeVisible();
    await shoot("wall");
    await page.getByRole("navigation").getByRole("link", { name: WORDS[language].nav.events }).first().click();
    const card = page.getByRole("list", { name: WORDS[language].events.list }).getByRole("article").first();
    await expectDrawn(page, /./);
    await shoot("events");
    await card.getByRole("link").click();
    await expect(page.getByRole("heading", { level: 2, name: WORDS[language].event.details })).toBeVisible();
    await expect(
      page.getByRole("list", { name: WORDS[language].event.strip }).getByRole("listitem").first(),
    ).toBeVisible();
    await expectDrawn(page, /./);
    await shoot("event");
  }
});
