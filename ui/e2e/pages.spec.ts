// Every page once, with a real server behind it: it is reached by its name, shows what it is for, and stands before
// axe in both themes. What pages do is tested beside them.

import { expect, type Locator, type Page, test } from "@playwright/test";
import * as cameras from "../src/i18n/pages/cameras";
import * as cases from "../src/i18n/pages/cases";
import * as deliveries from "../src/i18n/pages/deliveries";
import * as eventlist from "../src/i18n/pages/eventlist";
import * as incidents from "../src/i18n/pages/incidents";
import * as looks from "../src/i18n/pages/looks";
import * as regions from "../src/i18n/pages/regions";
import * as rules from "../src/i18n/pages/rules";
import * as search from "../src/i18n/pages/search";
import * as settings from "../src/i18n/pages/settings";
import * as timeline from "../src/i18n/pages/timeline";
import * as wall from "../src/i18n/pages/wall";
import { expectAccessible, expectAccessibleDialog, expectDrawn, newPerson, signIn, WORDS } from "./person";

const PERSON = "人を検知";
const HOUR_MS = 3_600_000;

test("every page, and from an event to a case and its export", async ({ browser }) => {
  // Axe goes over thirty pages twice.
  test.setTimeout(500_000);
  const { page, complaints } = await newPerson(browser, "ja-JP");
  await signIn(page, "ja");
  const side = page.getByRole("navigation", { name: WORDS.ja.nav.label }).first();
  const open = async (name: keyof typeof WORDS.ja.nav) => {
    await side.getByRole("link", { name: WORDS.ja.nav[name] as string, exact: true }).click();
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  };

  await test.step("incidents are reviewed by keys, and that is undone", async () => {
    await open("incidents");
    const list = page.getByRole("list", { name: incidents.ja.list });
    await expect(list.getByRole("article").first()).toBeVisible();
    await expectDrawn(page, new RegExp(PERSON));
    await expectAccessible(page, "ja");
    await page.keyboard.press("j");
    // Others may come meanwhile: this one goes, and comes back.
    const chosen = list.locator("article[aria-current=true]");
    const same = page.locator(`#${await chosen.getAttribute("id")}`);
    await expect(same).toHaveCount(1);
    await page.keyboard.press("r");
    await expect(same).toHaveCount(0);
    await page.getByRole("button", { name: WORDS.ja.action.undo }).click();
    await expect(same).toHaveCount(1);
    await page.keyboard.press("?");
    await expect(page.getByRole("dialog", { name: WORDS.ja.help.title })).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
  });

  await test.step("what is chosen is bookmarked by B: it is in a case with a star", async () => {
    await page.goto("/events");
    await expect(page.getByRole("article").first()).toBeVisible();
    await page.keyboard.press("j");
    await page.keyboard.press("b");
    await expect(page.getByText(WORDS.ja.bookmark.added)).toBeVisible();
    await page.keyboard.press("b");
    await expect(page.getByText(WORDS.ja.bookmark.already)).toBeVisible();
    await page.getByRole("button", { name: WORDS.ja.bookmark.show, exact: true }).click();
    await expect(page.getByRole("heading", { level: 1, name: /^★/ })).toBeVisible();
  });

  await test.step("an event leads back to its place in the list, which is as it was; a page begins at its top", async () => {
    await page.goto("/events?zoom=15m");
    const first = page.getByRole("article").first();
    await expect(first).toBeVisible();
    await page.evaluate(() => {
      document.documentElement.scrollTop = document.documentElement.scrollHeight;
    });
    // A real click would bring it into sight first.
    await first.getByRole("link").dispatchEvent("click");
    await expect(page.getByRole("button", { name: eventlist.ja.next })).toBeVisible();
    expect(await page.evaluate(() => document.documentElement.scrollTop)).toBe(0);
    await page.getByRole("link", { name: eventlist.ja.toList }).click();
    await expect(page).toHaveURL(/\/events\?zoom=15m$/);
    await expect(page.locator("article[aria-current=true]").getByRole("link")).toBeFocused();
  });

  await test.step("search, and a time by two clicks", async () => {
    await open("search");
    await expectDrawn(page, new RegExp(PERSON));
    const steps = page.getByRole("list", { name: timeline.ja.steps });
    await steps.getByRole("button").first().click();
    await expect(page.getByRole("button", { name: search.ja.toNow })).toBeVisible();
    await expectAccessible(page, "ja");
  });

  await test.step("an event goes into a new case, which is exported", async () => {
    await page.goto("/events");
    await page.getByRole("link", { name: PERSON }).first().click();
    await page.getByRole("button", { name: cases.ja.add }).click();
    const dialog = page.getByRole("dialog", { name: cases.ja.addTitle });
    await dialog.getByLabel(cases.ja.toExisting).selectOption("new");
    await dialog.getByLabel(cases.ja.name).fill("自転車");
    await dialog.getByRole("button", { name: WORDS.ja.action.add }).click();
    await page.getByRole("button", { name: cases.ja.show, exact: true }).click();
    await expect(page.getByRole("heading", { level: 1, name: "自転車" })).toBeVisible();
    await expect(page.getByRole("link", { name: new RegExp(PERSON) })).toBeVisible();
    await expectAccessible(page, "ja");
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: cases.ja.export }).click();
    expect((await saved).suggestedFilename()).toMatch(/^case-.*\.zip$/);
    await open("cases");
    await expect(page.getByRole("link", { name: "自転車" }).first()).toBeVisible();
    await expectAccessible(page, "ja");
  });

  await test.step("cameras, and the wizard with a real probe", async () => {
    await open("cameras");
    await expect(page.getByRole("link", { name: "入口 Entrance" })).toBeVisible();
    await expectAccessible(page, "ja");
    await compose(page, page.getByLabel(cameras.ja.filter), ["い", "いり", "いりぐち"], "入口");
    await expect(page).toHaveURL(/name=%E5%85%A5%E5%8F%A3$/);
    await page.getByRole("link", { name: "入口 Entrance" }).click();
    // Live view itself has tests of its own: a busy machine may refuse it.
    await expect(page.getByRole("link", { name: WORDS.ja.live.watch })).toHaveAttribute("href", /\?.*live=/);
    for (const part of [cameras.ja.overview, cameras.ja.gate, cameras.ja.settings, cameras.ja.regions]) {
      await page.getByRole("main").getByRole("link", { name: part, exact: true }).click();
      await expectAccessible(page, "ja");
    }
    await page.goto(
      `${new URL(page.url()).pathname.replace("/regions", "")}?hour=${Math.floor(Date.now() / HOUR_MS) * HOUR_MS}`,
    );
    await expect(page.getByRole("heading", { name: looks.ja.hour.replace("{{time}} ", "") })).toBeVisible();
    await expectAccessible(page, "ja");
    await addByWizard(page);
  });

  await test.step("cameras from a file, whose mistakes are named before anything is added", async () => {
    await page.goto("/cameras/import");
    await page.getByLabel(cameras.ja.importText).fill("camera_id,url\nshed,test://moving\n!,nowhere");
    await page.getByRole("button", { name: cameras.ja.importCheck }).click();
    await expect(page.getByRole("table", { name: cameras.ja.importPreview })).toContainText("shed");
    await expectAccessible(page, "ja");
    await page.getByLabel(cameras.ja.importSkip).check();
    await page.getByRole("button", { name: cameras.ja.importDo_other.replace("{{count}}", "1") }).click();
    await expect(page.getByText(cameras.ja.importAction.added, { exact: true })).toBeVisible();
  });

  await test.step("the wall: a group of one's own, and a time of the day by one click", async () => {
    await open("wall");
    await page.getByRole("button", { name: wall.ja.ownGroups }).click();
    const dialog = page.getByRole("dialog", { name: wall.ja.ownGroups });
    await dialog.getByLabel(wall.ja.groupName).fill("夜間");
    await dialog.getByLabel("Yard").check();
    await dialog.getByRole("button", { name: WORDS.ja.action.save }).click();
    await page.getByRole("button", { name: "夜間" }).click();
    await expect(page.getByRole("list", { name: wall.ja.camerasList }).getByRole("article")).toHaveCount(1);
    await expectAccessible(page, "ja");
    await page.getByRole("button", { name: wall.ja.all, exact: true }).click();
    await page.getByRole("list", { name: wall.ja.dayHours }).getByRole("link").last().click();
    await expect(page.getByRole("button", { name: eventlist.ja.toNow })).toBeVisible();
  });

  for (const name of ["workers", "queue", "deliveries", "system", "audit", "settings"] as const) {
    await test.step(name, async () => {
      await open(name);
      const parts = page.getByRole("navigation").filter({ hasText: PARTS[name] ?? "no such text" });
      const links = PARTS[name] ? await parts.last().getByRole("link").all() : [];
      if (links.length === 0) await expectSettledAndAccessible(page);
      for (const link of links) {
        await link.click();
        await expectSettledAndAccessible(page);
      }
    });
  }

  await test.step("a receiver and a rule among the settings, and a test that says why it did not arrive", async () => {
    await page.goto("/settings/notifications");
    await page.getByRole("button", { name: deliveries.ja.addReceiver }).click();
    const form = page.getByRole("dialog", { name: deliveries.ja.addReceiver });
    await form.getByLabel(deliveries.ja.kind).selectOption("webhook");
    await form.getByLabel(deliveries.ja.name).fill("防災センター");
    // There is no such host.
    await form.getByLabel(deliveries.ja.field.url).fill("https://camserver.invalid/hook");
    await expectAccessibleDialog(page);
    await form.getByRole("button", { name: WORDS.ja.action.save }).click();
    await page.getByRole("button", { name: rules.ja.add }).click();
    const rule = page.getByRole("dialog", { name: rules.ja.add });
    await expect(rule.getByText(rules.ja.firstOne)).toBeVisible();
    await rule.getByLabel(rules.ja.name).fill("夜間");
    await rule.getByLabel(rules.ja.quietOn).check();
    await expectAccessibleDialog(page);
    await rule.getByRole("button", { name: WORDS.ja.action.save }).click();
    await page.getByRole("button", { name: `${rules.ja.test}: 夜間`, exact: true }).click();
    const results = page.getByRole("list", { name: rules.ja.testResults });
    await expect(results).toContainText("防災センター");
    await expect(results).toContainText(rules.ja.notArrived.replace("{{cause}}", ""), { timeout: 90_000 });
    await expectAccessibleDialog(page);
  });

  expect(complaints).toEqual([]);
});

/** A word among the parts of a page that has some. */
const PARTS: Record<string, string> = { deliveries: deliveries.ja.rules, settings: settings.ja.retention };

async function expectSettledAndAccessible(page: Page): Promise<void> {
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.locator("main [aria-busy=true]")).toHaveCount(0);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expectAccessible(page, "ja");
}

/** Writes as an IME does: what is composed stands in the field, unbroken, until it is replaced by the word. */
async function compose(page: Page, field: Locator, steps: string[], word: string): Promise<void> {
  const browser = await page.context().newCDPSession(page);
  await field.focus();
  for (const text of steps) {
    await browser.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length });
    await expect(field).toHaveValue(text);
  }
  await browser.send("Input.insertText", { text: word });
  await expect(field).toHaveValue(word);
}

async function addByWizard(page: Page): Promise<void> {
  const words = cameras.ja;
  await page.goto("/cameras/add");
  await page.getByLabel(words.address, { exact: true }).fill("test://moving");
  await expectAccessible(page, "ja");
  await page.getByRole("button", { name: WORDS.ja.action.next }).click();
  await page.getByRole("button", { name: words.probe }).click();
  await expectDrawn(page, words.probePicture);
  await page.getByRole("button", { name: WORDS.ja.action.next }).click();
  await page.getByRole("button", { name: regions.ja.kind.ignore, exact: true }).click();
  await expectAccessible(page, "ja");
  await page.getByRole("button", { name: WORDS.ja.action.next }).click();
  await page.getByLabel(words.name, { exact: true }).fill("Yard");
  await expectAccessible(page, "ja");
  await page.getByRole("button", { name: words.save }).click();
  await page.getByRole("button", { name: words.test }).click();
  await expect(page.getByText(words.testOk)).toBeVisible();
  await expectAccessible(page, "ja");
}
