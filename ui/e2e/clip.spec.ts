import { expect, test } from "@playwright/test";
import { expectAccessible, newPerson, signIn, WORDS } from "./person";

const PHRASE = "人を検知";

test("an event's clip comes by itself and plays", async ({ browser }) => {
  const { page, complaints } = await newPerson(browser, "ja-JP");
  await page.addInitScript(() => localStorage.setItem("camserver.language", "ja"));
  // The house of journey.spec.ts, with its camera.
  await signIn(page, "ja");
  await page.goto("/events");
  await page.getByRole("link", { name: PHRASE }).first().click();
  await expect(page.getByRole("heading", { level: 1, name: PHRASE })).toBeVisible();

  // Nobody touches the page: first the clip is on its way, then it is there.
  const video = page.getByLabel(/Street の動画クリップ/);
  await expect(video.or(page.getByText(WORDS.ja.clip.asked))).toBeVisible();
  await expect(video).toBeVisible();
  await expect.poll(() => video.evaluate((one: HTMLVideoElement) => one.readyState)).toBeGreaterThan(0);
  expect(await video.evaluate((one: HTMLVideoElement) => one.duration)).toBeGreaterThan(2);
  await video.evaluate((one: HTMLVideoElement) => one.play());
  await expect.poll(() => video.evaluate((one: HTMLVideoElement) => one.currentTime)).toBeGreaterThan(0);
  // To a place that was not loaded yet.
  await video.evaluate((one: HTMLVideoElement) => {
    one.pause();
    one.currentTime = one.duration - 0.5;
  });
  await expect.poll(() => video.evaluate((one: HTMLVideoElement) => one.seeking)).toBe(false);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expectAccessible(page, "ja");

  // As in a browser that does not play what the camera sent.
  await page.route(/\/clip$/, (route) => route.fulfill({ contentType: "video/mp4", body: "no film" }));
  await page.reload();
  await expect(page.getByText(WORDS.ja.clip.converted)).toBeVisible();
  await expect(video).toHaveAttribute("src", /\/clip\?playable=true$/);
  await expect(page.getByRole("alert")).toHaveCount(0);
  expect(complaints).toEqual([]);
});
