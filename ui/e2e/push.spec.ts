// Notifications in this browser. Subscribing needs a push service outside, so messages are handed to the worker by the
// browser's own developer tools, as a push service would.

import AxeBuilder from "@axe-core/playwright";
import { type BrowserContext, expect, type Page, test } from "@playwright/test";
import { LOGIN, newPerson, setUp, WORDS } from "./person";

const MESSAGE = {
  title: "入口：人を検知",
  body: "重要度：2/3",
  tag: "incident-1",
  url: "/events?camera_ids=entrance",
};

test("a push is shown, replaced by a newer one, and opens its page", async ({ browser }) => {
  const { page, complaints } = await newPerson(browser, "ja-JP");
  const context = page.context();
  await context.grantPermissions(["notifications"]);
  await setUp(page, "ja");

  await test.step("the switch is in the account's menu", async () => {
    const words = WORDS.ja;
    await page.getByRole("button", { name: words.account.menu.replace("{{name}}", LOGIN) }).click();
    const item = page.getByRole("menuitemcheckbox", { name: words.push.label });
    await expect(item).toHaveAttribute("aria-checked", "false");
    await expect(item).not.toHaveAttribute("aria-disabled");
    // A menu hovers over the page and so is in none of its regions.
    const { violations } = await new AxeBuilder({ page }).disableRules(["region"]).analyze();
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
    await page.keyboard.press("Escape");
  });

  const deliver = await worker(context, page);

  await test.step("what is pushed is shown", async () => {
    // Given again until it is shown, as push services do: a browser may drop one while its worker starts. One with
    // the same tag replaces the one before, so a repeat changes nothing.
    const shownOnce = async (message: object) => {
      await deliver(message);
      return shown(page);
    };
    await expect
      .poll(() => shownOnce(MESSAGE))
      .toEqual([{ title: MESSAGE.title, body: MESSAGE.body, tag: MESSAGE.tag }]);
    await expect
      .poll(() => shownOnce({ ...MESSAGE, body: "重要度：3/3" }))
      .toEqual([{ title: MESSAGE.title, body: "重要度：3/3", tag: MESSAGE.tag }]);
    await expect
      .poll(async () => (await shownOnce({ ...MESSAGE, title: "裏口：動物を検知", tag: "incident-2" })).length)
      .toBe(2);
  });

  await test.step("a tap opens its page", async () => {
    await tap(context, MESSAGE.tag);
    await expect(page).toHaveURL(/\/events\?camera_ids=entrance$/);
    await expect(page.getByRole("heading", { level: 1, name: WORDS.ja.events.title })).toBeVisible();
    await expect.poll(async () => (await shown(page)).map((one) => one.tag)).toEqual(["incident-2"]);
  });

  expect(complaints).toEqual([]);
});

/** Starts the worker as switching on does; answers how it is given a message. */
async function worker(context: BrowserContext, page: Page) {
  const cdp = await context.newCDPSession(page);
  const registrationId = new Promise<string>((resolve) => {
    cdp.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const [first] = registrations;
      if (first) resolve(first.registrationId);
    });
  });
  await cdp.send("ServiceWorker.enable");
  await page.evaluate(async () => {
    await navigator.serviceWorker.register("/push-worker.js");
    await navigator.serviceWorker.ready;
  });
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  const origin = new URL(page.url()).origin;
  const id = await registrationId;
  return (message: object) =>
    cdp.send("ServiceWorker.deliverPushMessage", { origin, registrationId: id, data: JSON.stringify(message) });
}

/** The notifications that the browser shows now. */
function shown(page: Page) {
  return page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready;
    const notifications = await registration.getNotifications();
    return notifications.map(({ title, body, tag }) => ({ title, body, tag }));
  });
}

/** What the browser does when somebody taps a notification; there is no hand that could. */
async function tap(context: BrowserContext, tag: string): Promise<void> {
  const [running] = context.serviceWorkers();
  if (!running) throw new Error("the worker does not run");
  await running.evaluate(async (wanted) => {
    const scope = globalThis as unknown as ServiceWorkerScope;
    const [notification] = await scope.registration.getNotifications({ tag: wanted });
    scope.dispatchEvent(new scope.NotificationEvent("notificationclick", { notification }));
  }, tag);
}

/** The part of a worker's global scope that is used here; the page's own types do not know it. */
interface ServiceWorkerScope {
  registration: ServiceWorkerRegistration;
  NotificationEvent: new (name: string, options: { notification: Notification | undefined }) => Event;
  dispatchEvent(event: Event): boolean;
}
