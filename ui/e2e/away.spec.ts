// The server stops while pages are open, and comes back: nobody has to do anything for it.

import { expect, test } from "@playwright/test";
import { addCamera, expectDrawn, needed, newPerson, signIn, WORDS } from "./person";

const { problem, feed, nav } = WORDS.en;

test("a server that goes away and comes back", async ({ browser, request }) => {
  const { page } = await newPerson(browser, "en-GB");
  await page.addInitScript(() => localStorage.setItem("camserver.language", "en"));
  await signIn(page, "en");
  await addCamera(page, "yard", "Yard", "test://moving");
  await expectDrawn(page, /^Newest picture/);
  await expect(page.getByTitle(feed.live)).toBeVisible();

  await test.step("what a browser needs to install it is there", async () => {
    const manifest = await (await page.request.get("/manifest.webmanifest")).json();
    expect(manifest).toMatchObject({ start_url: "/", display: "standalone" });
    for (const { src } of manifest.icons) expect((await page.request.get(src)).status(), src).toBe(200);
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    // Pages that were not opened yet are fetched ahead, the last of them among the settings.
    await page.waitForFunction(async () => {
      const kept = await (await caches.open("camserver-files")).keys();
      return ["/system-", "/configuration-"].every((name) => kept.some(({ url }) => url.includes(name)));
    });
  });

  await test.step("a file that is cut off on its way does not leave an empty page", async () => {
    const other = await newPerson(browser, "en-GB");
    let cut = 0;
    await other.page.route("**/assets/*.js", (route) => (cut++ === 0 ? route.abort() : route.continue()));
    await other.page.goto("/sign-in");
    await expect(other.page.getByLabel(WORDS.en.signIn.login)).toBeVisible();
    await other.page.context().close();
  });

  await request.post(`${needed("CAMSERVER_SWITCH")}/stop`);
  const stale = new RegExp(problem.stale.replace("{{age}}", ".*"));

  await test.step("the wall stays, with its age", async () => {
    await expect(page.getByRole("status").filter({ hasText: stale })).toBeVisible();
    await expect(page.getByTitle(feed.waiting)).toBeVisible();
    await expectDrawn(page, /^Newest picture/);
  });

  await test.step("another page says why it shows nothing", async () => {
    await page.getByRole("navigation").getByRole("link", { name: nav.system, exact: true }).first().click();
    await expect(page.getByRole("alert").first()).toContainText(problem.unreachable);
  });

  const fresh = await page.context().newPage();
  await test.step("a new tab opens and says the same", async () => {
    await fresh.goto("/events");
    await expect(fresh.getByRole("alert")).toContainText(problem.unreachable);
  });

  await request.post(`${needed("CAMSERVER_SWITCH")}/start`);

  await test.step("both come back by themselves", async () => {
    await expect(fresh.getByRole("heading", { level: 1, name: WORDS.en.events.title })).toBeVisible();
    await expect(page.getByTitle(feed.live)).toBeVisible();
    await expect(page.getByRole("alert")).toHaveCount(0);
    await page.getByRole("navigation").getByRole("link", { name: nav.wall }).first().click();
    await expect(page.getByRole("status").filter({ hasText: stale })).toHaveCount(0);
    await expectDrawn(page, /^Newest picture/);
  });
});
