import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { type MediaBrowser, MIME, mediaBrowser, seconds } from "@/test/media";
import { MediaSink } from "./media-sink";

let browser: MediaBrowser;

beforeEach(() => {
  browser = mediaBrowser();
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

test("media that comes before the source tells that it is open is played without an end", async () => {
  const listener = { moved: vi.fn(), broken: vi.fn() };
  const sink = new MediaSink(browser.video(), listener);
  // Open already, and the event still on its way.
  browser.source().readyState = "open";
  sink.expect(MIME);
  sink.append(seconds(1));
  expect(browser.buffer().updating).toBe(true);
  browser.source().dispatchEvent(new Event("sourceopen"));
  expect(browser.source().duration).toBe(Number.POSITIVE_INFINITY);
  await vi.waitFor(() => expect(listener.moved).toHaveBeenCalled());
  expect(listener.broken).not.toHaveBeenCalled();
  sink.close();
});
