// What tests of live view share.

import { type Browser, expect, type Locator, type Page } from "@playwright/test";
import { newPerson, signIn } from "./person";

export async function englishPerson(browser: Browser) {
  const person = await newPerson(browser, "en-GB");
  await person.page.addInitScript(() => localStorage.setItem("camserver.language", "en"));
  await signIn(person.page, "en");
  return person;
}

export const videoOf = (page: Page): Locator => page.getByRole("dialog").locator("video").first();

/** Pictures are shown, and they go on. */
export async function expectMoving(page: Page): Promise<void> {
  const video = videoOf(page);
  await expect(video).toBeVisible();
  const place = () => video.evaluate((one: HTMLVideoElement) => (one.videoWidth > 0 ? one.currentTime : -1));
  await expect.poll(place, { intervals: POLLED_MS }).toBeGreaterThan(0);
  const before = await place();
  await expect.poll(place, { intervals: POLLED_MS }).toBeGreaterThan(before);
}

/** There is room for one: who watches on is in the way of the next test. */
export async function leave(page: Page): Promise<void> {
  await page.goto("/events");
  await expectNobodyWatches(page);
}

export async function expectNobodyWatches(page: Page): Promise<void> {
  const watching = async () => (await (await page.request.get("/api/system/status")).json()).active_modals;
  await expect.poll(watching, { intervals: POLLED_MS }).toBe(0);
}

const POLLED_MS = [50, 100, 200];
