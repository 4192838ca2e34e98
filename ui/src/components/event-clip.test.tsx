import { fireEvent, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Clip } from "@/api/types";
import i18next from "@/i18n";
import { renderAt } from "@/test/render";
import { event, frame, NOW, SESSION, VOCABULARY } from "@/test/samples";
import { serve } from "@/test/server";

const READY: Clip = {
  state: "ready",
  reason: null,
  begin_at: NOW - 65_000,
  end_at: NOW - 50_000,
  bytes: 1_000_000,
  codec: "h264",
  width: 1280,
  height: 720,
};

async function show(clip: Clip | null) {
  serve({
    "GET /api/session": SESSION,
    "GET /api/vocabulary": VOCABULARY,
    "GET /api/events/e1": { ...event(), incident: null, best_frame: frame(), clip, scores: [] },
    "GET /api/events/e1/frames": { frames: [frame()], next_after: null },
  });
  await renderAt("/events/e1");
  await screen.findByRole("heading", { level: 1, name: "Person detected" });
}

describe("the clip of an event", () => {
  it("can be played and kept", async () => {
    await show(READY);
    const video = screen.getByLabelText<HTMLVideoElement>(/^Clip of Entrance, /);
    expect(video).toHaveAttribute("src", "/api/events/e1/clip");
    expect(video).toHaveAttribute("poster", "/api/frames/f1/picture?kind=infer");
    expect(video).toHaveAttribute("preload", "metadata");
    expect(video).toHaveAttribute("playsinline");
    expect(video.controls).toBe(true);
    expect(screen.getByText(/^From .*, 0:15 long$/)).toBeVisible();
    expect(screen.getByRole("link", { name: "Download" })).toHaveAttribute("href", "/api/events/e1/clip");
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("that the browser can't play is converted, and given out as it is", async () => {
    await show({ ...READY, codec: "hevc" });
    const video = screen.getByLabelText(/^Clip of Entrance/);
    fireEvent.error(video);
    expect(video).toHaveAttribute("src", "/api/events/e1/clip?playable=true");
    expect(screen.getByText(/is being converted/)).toBeVisible();
    fireEvent.loadedMetadata(video);
    expect(screen.getByText(/was converted/)).toBeVisible();
    expect(screen.getByRole("link", { name: "Download" })).toHaveAttribute("href", "/api/events/e1/clip");
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("that can't be converted either says so", async () => {
    await show({ ...READY, codec: "hevc" });
    const video = screen.getByLabelText(/^Clip of Entrance/);
    fireEvent.error(video);
    fireEvent.error(video);
    expect(screen.getByRole("alert")).toHaveTextContent("can't play");
  });

  it("on its way says so", async () => {
    await show({ ...READY, state: "asked", bytes: 0, codec: "", width: 0, height: 0 });
    expect(screen.getByText("The clip is being made…")).toBeVisible();
    expect(screen.queryByLabelText(/^Clip of/)).toBeNull();
  });

  it("that there is none of says why, in the reader's language", async () => {
    const reason = { id: "no_video", label_ja: "動画を送りません", label_en: "It sends no video" };
    await show({ ...READY, state: "none", reason });
    expect(screen.getByText("No clip: It sends no video")).toBeVisible();
    await i18next.changeLanguage("ja");
    expect(await screen.findByText("動画クリップはありません: 動画を送りません")).toBeVisible();
  });

  it("that nobody asked for is not spoken of", async () => {
    await show(null);
    expect(screen.queryByText(/clip/i)).toBeNull();
  });
});
