// A sheet is brought, checked, scored and fetched again, with a real server and a stand-in for the model behind it.

import { expect, test } from "@playwright/test";
import * as scoring from "../src/i18n/pages/scoring";
import { expectAccessible, needed, newPerson, setUp, signIn, WORDS } from "./person";

const { ja, en } = scoring;

test("from a file to its scores", async ({ browser }) => {
  const { page, complaints } = await newPerson(browser, "ja-JP");
  await setUp(page, "ja");

  await test.step("there is nothing yet, and what to do", async () => {
    const side = page.getByRole("navigation", { name: WORDS.ja.nav.label }).first();
    await side.getByRole("link", { name: WORDS.ja.nav.scoring, exact: true }).click();
    await expect(page.getByText(ja.sheetsEmptyTitle)).toBeVisible();
    await expectAccessible(page, "ja");
  });

  await test.step("a sheet in a wrong layout is refused with what is wrong, and mended", async () => {
    await page.getByRole("button", { name: ja.add }).click();
    const dialog = page.getByRole("dialog", { name: ja.add });
    await dialog.getByLabel(ja.file, { exact: true }).setInputFiles(needed("CAMSERVER_SHEET"));
    await dialog.getByRole("button", { name: ja.send }).click();
    await expect(page.getByRole("heading", { level: 1, name: "アンケート.csv" })).toBeVisible();
    await expect(page.getByText(ja.error, { exact: true }).first()).toBeVisible();
    await expectAccessible(page, "ja");
    await page.getByLabel(ja.layouts.name_row).fill("1");
    await page.getByLabel(ja.layouts.definition_row).fill("0");
    await page.getByLabel(ja.layouts.detail_row).fill("0");
    await page.getByLabel(ja.layouts.first_data_row).fill("2");
    await page.getByLabel(ja.layouts.text_column).fill("A");
    await page.getByLabel(ja.layouts.first_category_column).fill("B");
    await page.getByRole("button", { name: ja.again }).click();
    await expect(page.getByText("安全, 清掃")).toBeVisible();
  });

  await test.step("what it will take is told before it begins", async () => {
    await expect(page.getByRole("heading", { name: ja.estimate })).toBeVisible();
    await page.getByLabel(ja.budget).fill("-1");
    await page.getByRole("button", { name: ja.begin }).click();
    await expect(page.getByText(ja.budgetWrong)).toBeVisible();
    await page.getByLabel(ja.budget).fill("1");
    await page.getByRole("button", { name: ja.begin }).click();
  });

  await test.step("it is scored, and the file comes back", async () => {
    await expect(page.getByText(ja.status.completed, { exact: true }).first()).toBeVisible();
    await expect(page.getByRole("table", { name: ja.chunks })).toBeVisible();
    await expectAccessible(page, "ja");
    const saved = page.waitForEvent("download");
    await page.getByRole("link", { name: ja.result }).click();
    await (await saved).saveAs(needed("CAMSERVER_RESULT"));
  });

  await test.step("somebody else finds it in English", async () => {
    const other = await newPerson(browser, "en-GB");
    await other.page.addInitScript(() => localStorage.setItem("camserver.language", "en"));
    await signIn(other.page, "en");
    await other.page.goto("/scoring");
    const runs = other.page.getByRole("region", { name: en.runs });
    await expect(runs.getByText(en.status.completed, { exact: true })).toBeVisible();
    await runs.getByRole("link").first().click();
    await expect(other.page.getByRole("link", { name: en.result })).toBeVisible();
    await expectAccessible(other.page, "en");
    expect(other.complaints).toEqual([]);
  });

  expect(complaints).toEqual([]);
});
