import { expect, type Page, test } from "@playwright/test";
import {
  addCamera,
  expectAccessible,
  expectDrawn,
  expectMarked,
  type Language,
  LOGIN,
  mark,
  needed,
  newPerson,
  PASSWORD,
  setUp,
  signIn,
  WORDS,
} from "./person";

const PHRASE = { ja: "人を検知", en: "Person detected" };
const TAG = { ja: "1名", en: "One person" };

test("from the set-up link to the first event, in both languages", async ({ browser }) => {
  const japanese = await newPerson(browser, "ja-JP");
  const english = await newPerson(browser, "en-GB");
  const both = [
    [japanese, "ja"],
    [english, "en"],
  ] as const;

  await test.step("set-up and the empty wall", async () => {
    await english.page.goto(needed("CAMSERVER_SETUP_LINK"));
    await expect(english.page.getByRole("heading", { level: 1, name: WORDS.en.setup.title })).toBeVisible();
    await expectAccessible(english.page, "en");
    await setUp(japanese.page, "ja", (page) => expectAccessible(page, "ja"));
    await expect(japanese.page.getByText(WORDS.ja.wall.emptyTitle)).toBeVisible();
    await expect(japanese.page.getByText("camserver camera add")).toBeVisible();
    await expectAccessible(japanese.page, "ja");
  });

  await test.step("sign-in, and the other language", async () => {
    await english.page.goto("/events?severity=2");
    await expect(english.page).toHaveURL(/sign-in\?next=/);
    await expect(english.page.getByRole("heading", { level: 1, name: WORDS.en.signIn.title })).toBeVisible();
    await expectAccessible(english.page, "en");
    await signIn(english.page, "en");
    // The account speaks Japanese, as its owner did at the set-up.
    await expect(english.page.locator("html")).toHaveAttribute("lang", "ja");
    await english.page.getByRole("button", { name: "English" }).click();
    await expect(english.page.getByRole("heading", { level: 1, name: WORDS.en.wall.title })).toBeVisible();
  });

  await test.step("the first event appears by itself", async () => {
    await japanese.page.goto("/events");
    await expect(japanese.page.getByText(WORDS.ja.events.emptyTitle)).toBeVisible();
    for (const [{ page }, language] of both) {
      await expect(page.getByTitle(WORDS[language].feed.live)).toBeVisible();
      await mark(page);
    }
    await addCamera(japanese.page, "entrance", "入口 Entrance", needed("CAMSERVER_ENTRANCE"));
    await addCamera(japanese.page, "broken", "Gate", "test://broken?fault=no_video");
    await addCamera(japanese.page, "locked", "Cellar", "test://broken?fault=unauthorized");
    // Neither of the two pages is touched.
    await expect(english.page.getByRole("article", { name: "入口 Entrance" })).toBeVisible();
    await expectDrawn(english.page, "Newest picture of 入口 Entrance");
    await expect(japanese.page.getByRole("link", { name: PHRASE.ja }).first()).toBeVisible();
    await expect(english.page.getByRole("link", { name: PHRASE.en }).first()).toBeVisible();
    for (const { page } of [japanese, english]) await expectMarked(page);
  });

  await test.step("a camera without a picture says why", async () => {
    await japanese.page.goto("/");
    for (const [{ page }, language] of both) {
      for (const [name, fault] of [
        ["Gate", "no_video"],
        ["Cellar", "unauthorized"],
      ] as const) {
        const tile = page.getByRole("article", { name });
        await expect(tile).toContainText(WORDS[language].camera.reason[fault]);
      }
      await expectAccessible(page, language);
    }
  });

  await test.step("the event's page", async () => {
    for (const [{ page }, language] of both) await expectEventPage(page, language);
  });

  await test.step("signing out", async () => {
    for (const [{ page }, language] of both) {
      const { account, signIn: words } = WORDS[language];
      await page.getByRole("button", { name: account.menu.replace("{{name}}", LOGIN) }).click();
      await page.getByRole("menuitem", { name: account.signOut }).click();
      await expect(page).toHaveURL(/sign-in/);
      await expect(page.getByRole("heading", { level: 1, name: words.title })).toBeVisible();
    }
    await expectAccessible(japanese.page, "ja");
  });

  expect(japanese.complaints).toEqual([]);
  expect(english.complaints).toEqual([]);
});

async function expectEventPage(page: Page, language: Language): Promise<void> {
  const words = WORDS[language];
  await page.goto("/events");
  await expectDrawn(page, new RegExp(PHRASE[language]));
  await expectAccessible(page, language);
  await page.getByRole("link", { name: PHRASE[language] }).first().click();
  await expect(page.getByRole("heading", { level: 1, name: PHRASE[language] })).toBeVisible();
  await expect(page.getByText(TAG[language], { exact: true })).toBeVisible();
  await expectDrawn(page, new RegExp(PHRASE[language]));
  await expect(page.getByTestId("boxes").getByRole("listitem").first()).toBeVisible();
  await page.getByLabel(words.event.boxes).click();
  await expect(page.getByTestId("boxes")).toHaveCount(0);
  await page.getByLabel(words.event.boxes).click();
  await expectAccessible(page, language);
}

/** As long as names come. */
const LONG_NAME = "本社ビル三階東側非常階段踊り場入口付近防犯カメラ、Third-floor emergency staircase";

test("on a telephone", async ({ browser }) => {
  const viewport = { width: 390, height: 844 };
  const { page, complaints } = await newPerson(browser, "en-GB", { viewport });
  await page.addInitScript(() => localStorage.setItem("camserver.language", "en"));
  await signIn(page, "en");
  await expectDrawn(page, /^Newest picture/);
  await page.getByRole("navigation").getByRole("link", { name: WORDS.en.nav.events }).click();
  await expect(page.getByRole("heading", { level: 1, name: WORDS.en.events.title })).toBeVisible();
  await expectAccessible(page, "en");
  const session = await (await page.request.get("/api/session")).json();
  const renamed = await page.request.patch("/api/cameras/locked", {
    headers: { "X-CSRF-Token": session.csrf_token },
    data: { name: LONG_NAME },
  });
  expect(renamed.status(), await renamed.text()).toBe(200);
  // Japanese breaks its lines by phrases, so that a long one is the wider.
  const japanese = await newPerson(browser, "ja-JP", { viewport });
  await signIn(japanese.page, "ja");
  for (const path of ["/", "/events", "/incidents?view=all", "/cameras", "/cameras/locked", "/workers"]) {
    await japanese.page.goto(path);
    await expect(japanese.page.getByText(LONG_NAME).first()).toBeAttached();
    await expect(japanese.page.locator("main [aria-busy=true]")).toHaveCount(0);
    const overflow = await japanese.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow, `${path} is wider than the screen`).toBeLessThanOrEqual(0);
  }
  // The narrowest telephones, and screens that are enlarged four times.
  await japanese.page.setViewportSize({ width: 320, height: 640 });
  const beyond = await japanese.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(beyond, "the header is wider than the screen").toBeLessThanOrEqual(0);
  expect(complaints).toEqual([]);
});

test("without a mouse", async ({ browser }) => {
  const { page } = await newPerson(browser, "en-GB");
  await page.addInitScript(() => localStorage.setItem("camserver.language", "en"));
  await page.goto("/sign-in");
  await expect(page.getByLabel(WORDS.en.signIn.login)).toBeFocused();
  await page.keyboard.type(LOGIN);
  await page.keyboard.press("Tab");
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  // The first by its id, "broken".
  const tile = page.getByRole("article", { name: "Gate" });
  await expect(tile).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: WORDS.en.app.skip })).toBeFocused();
  await page.keyboard.press("Enter");
  // Into the wall, past its choices.
  await page.keyboard.press("ArrowRight");
  await expect(tile.getByRole("link").first()).toBeFocused();
  await page.keyboard.press("Enter");
  const live = page.getByRole("dialog", { name: WORDS.en.live.title.replace("{{name}}", "Gate") });
  await expect(live).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(live).toHaveCount(0);
  await expect(tile.getByRole("link").first()).toBeFocused();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/events/);
});
