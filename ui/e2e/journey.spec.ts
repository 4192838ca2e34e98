// What somebody does on their first day, as one way through the pages: set-up, a camera, its first event, live view,
// no room for a second one, a share, a case and its export.

import { readFile } from "node:fs/promises";
import { expect, test } from "@playwright/test";
import * as cameras from "../src/i18n/pages/cameras";
import * as cases from "../src/i18n/pages/cases";
import * as eventlist from "../src/i18n/pages/eventlist";
import * as shares from "../src/i18n/pages/shares";
import { expectAccessible, expectDrawn, expectMarked, mark, needed, newPerson, setUp, WORDS } from "./person";
import { englishPerson, expectMoving, leave } from "./watching";

const NAME = "Street";
const PHRASE = "Person detected";
const { live, firstRun, action } = WORDS.en;

test("from the set-up to an exported case", async ({ browser }) => {
  const { page, complaints } = await newPerson(browser, "en-GB");

  await test.step("an empty house offers the way to its first camera", async () => {
    await setUp(page, "en");
    await expect(page.getByText(WORDS.en.wall.emptyTitle)).toBeVisible();
    await expect(page.getByRole("button", { name: firstRun.demo })).toBeVisible();
    await expectAccessible(page, "en");
    await page.getByRole("link", { name: firstRun.add }).click();
  });

  await test.step("the camera is added: address, probe with a picture, drawing, name", async () => {
    const words = cameras.en;
    await page.getByLabel(words.address, { exact: true }).fill(needed("CAMSERVER_CAMERA"));
    await page.getByRole("button", { name: action.next }).click();
    await page.getByRole("button", { name: words.probe }).click();
    await expectDrawn(page, words.probePicture);
    await page.getByRole("button", { name: action.next }).click();
    await page.getByRole("button", { name: action.next }).click();
    await page.getByLabel(words.name, { exact: true }).fill(NAME);
    await page.getByRole("button", { name: words.save }).click();
    await page.getByRole("link", { name: words.toWall }).click();
  });

  await test.step("its event appears on the wall by itself, and is opened", async () => {
    await mark(page);
    await expect(page.getByRole("article", { name: NAME })).toBeVisible();
    const event = page.getByRole("link", { name: PHRASE }).first();
    await expect(event).toBeVisible();
    await expectMarked(page);
    await event.click();
    await expect(page.getByRole("heading", { level: 1, name: PHRASE })).toBeVisible();
    await expectDrawn(page, new RegExp(PHRASE));
  });

  await test.step("it is watched live, and whoever comes second is told that there is no room", async () => {
    await page.getByRole("link", { name: live.watch }).click();
    await expectMoving(page);
    const second = await englishPerson(browser);
    await second.page.goto("/?live=street");
    const panel = second.page.getByRole("alertdialog");
    await expect(panel).toContainText(live.refusal.OVER_CAPACITY);
    await expect(panel).toContainText(live.units.replace("{{used}}", "1").replace("{{budget}}", "1"));
    await second.page.context().close();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
  });

  await test.step("it is shared with somebody who does not sign in, until that is revoked", async () => {
    const words = shares.en;
    const event = page.url();
    await page.getByRole("button", { name: eventlist.en.share }).click();
    await page.getByRole("button", { name: words.make }).click();
    await expect(page.getByLabel(words.address)).toBeVisible();
    const neighbour = await browser.newPage();
    const address = await page.getByLabel(words.address).inputValue();
    expect((await neighbour.goto(address))?.status()).toBe(200);
    await expect(neighbour.getByRole("heading", { level: 1 })).toContainText(NAME);
    await page.getByRole("link", { name: words.toList }).click();
    await page.getByRole("button", { name: words.revoke }).click();
    await page.getByRole("dialog").getByRole("button", { name: words.revoke }).click();
    await expect(page.getByRole("heading", { name: words.emptyTitle })).toBeVisible();
    await expectAccessible(page, "en");
    expect((await neighbour.reload())?.status()).toBe(404);
    await neighbour.close();
    await page.goto(event);
  });

  await test.step("the event goes into a case, whose export holds its picture", async () => {
    await page.getByRole("button", { name: cases.en.add }).click();
    const dialog = page.getByRole("dialog", { name: cases.en.addTitle });
    await dialog.getByLabel(cases.en.name).fill("First day");
    await dialog.getByRole("button", { name: action.add }).click();
    await page.getByRole("button", { name: cases.en.show, exact: true }).click();
    await expect(page.getByRole("heading", { level: 1, name: "First day" })).toBeVisible();
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: cases.en.export }).click();
    const saved = await saving;
    expect(saved.suggestedFilename()).toMatch(/^case-.*\.zip$/);
    const bytes = await readFile(await saved.path());
    expect([...bytes.subarray(0, 2)]).toEqual([0x50, 0x4b]);
    expect(bytes.includes(".jpg")).toBe(true);
  });

  await leave(page);
  // Somebody was refused on purpose.
  expect(complaints.filter((one) => !/status of 503/.test(one))).toEqual([]);
});
