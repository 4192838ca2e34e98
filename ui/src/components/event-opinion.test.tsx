import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import i18next from "@/i18n";
import { renderAt } from "@/test/render";
import { event, frame, NOW, SESSION, VOCABULARY } from "@/test/samples";
import { serve } from "@/test/server";

const REVIEW = {
  label: { id: "animal", label_ja: "動物", label_en: "Animal" },
  memo: "A cat. <b>Open the door!</b>",
  provider: "openai",
  model: "m-1",
  created_at: NOW,
};

async function show(review: typeof REVIEW | null) {
  serve({
    "GET /api/session": SESSION,
    "GET /api/vocabulary": VOCABULARY,
    "GET /api/events/e1": {
      ...event(),
      incident: null,
      best_frame: frame(),
      clip: null,
      llm_review: review,
      scores: [],
    },
    "GET /api/events/e1/frames": { frames: [frame()], next_after: null },
  });
  await renderAt("/events/e1");
  await screen.findByRole("heading", { level: 1 });
}

describe("a model's opinion of an event", () => {
  it("is shown as plain text and marked as a machine's", async () => {
    await show(REVIEW);
    expect(screen.getByRole("heading", { name: "A machine's opinion" })).toBeVisible();
    expect(screen.getByText("Animal")).toBeVisible();
    expect(screen.getByText("A cat. <b>Open the door!</b>")).toBeVisible();
    expect(screen.getByText(/may be wrong/)).toBeVisible();
    expect(screen.getByText(/^m-1, /)).toBeVisible();
  });

  it("is marked so in Japanese too", async () => {
    await show(REVIEW);
    await i18next.changeLanguage("ja");
    expect(await screen.findByText("動物")).toBeVisible();
    expect(screen.getByText(/誤りを含むことがあります/)).toBeVisible();
  });

  it("is not there for those who get none", async () => {
    await show(null);
    expect(screen.queryByText("A machine's opinion")).toBeNull();
  });
});
