// Somebody signs in with a provider of OpenID Connect, and signs out here and there.

import { expect, type Page, test } from "@playwright/test";
import { needed, newPerson, WORDS } from "./person";

const words = WORDS.en;
const BUTTON = "Sign in with your organization";

/** The provider's pages are its own: any login and password will do there. */
async function signInThere(page: Page, login: string): Promise<void> {
  await page.getByPlaceholder("Enter any login").fill(login);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

test("signs in at the provider, and out at both", async ({ browser }) => {
  const provider = needed("CAMSERVER_OIDC_ISSUER_URL");
  const { page, complaints } = await newPerson(browser, "en-US");
  // The provider's own pages want fonts from elsewhere; nothing of this test leaves the machine.
  await page.route(/^https:/, (route) => route.fulfill({ status: 200, contentType: "text/css", body: "" }));
  await page.goto("/events");
  await page
    .getByRole("link", { name: BUTTON })
    .or(page.getByRole("button", { name: BUTTON }))
    .click();
  await page.waitForURL((address) => address.href.startsWith(provider));
  await signInThere(page, "kato");

  // Back on the page that was asked for, as the person the provider named.
  await page.waitForURL((address) => address.pathname === "/events");
  const session = await (await page.request.get("/api/session")).json();
  expect([session.login, session.display_name]).toEqual(["kato", "Person kato"]);

  await page.getByRole("button", { name: words.account.menu.replace("{{name}}", "Person kato") }).click();
  await page.getByRole("menuitem", { name: words.account.signOut }).click();
  await page.waitForURL((address) => address.href.startsWith(provider));
  await page.getByRole("button", { name: "Yes, sign me out" }).click();
  await page.waitForURL((address) => address.pathname === "/sign-in");
  expect((await page.request.get("/api/session")).status()).toBe(401);

  // Also there: it asks for the password again.
  await page
    .getByRole("link", { name: BUTTON })
    .or(page.getByRole("button", { name: BUTTON }))
    .click();
  await expect(page.getByPlaceholder("and password")).toBeVisible();
  expect(complaints).toEqual([]);
});
