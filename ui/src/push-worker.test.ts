import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, it, vi } from "vitest";

const ORIGIN = "https://cameras.example";
const CODE = readFileSync("public/push-worker.js", "utf8");

type Handler = (event: Record<string, unknown>) => void;

interface FakeWindow {
  focus: () => Promise<void>;
  navigate: (page: string) => Promise<null>;
}

/** Runs the worker's file as a browser would, and gives it events. */
function startWorker(windows: FakeWindow[] = []) {
  const handlers = new Map<string, Handler>();
  const shown = vi.fn(async (_title: string, _options: Record<string, unknown>) => {});
  const opened = vi.fn(async (_page: string) => {});
  const subscribe = vi.fn(async () => ({
    toJSON: () => ({ endpoint: "https://push.example/2", expirationTime: null, keys: { p256dh: "p", auth: "a" } }),
  }));
  const self = {
    location: { origin: ORIGIN },
    addEventListener: (name: string, handler: Handler) => handlers.set(name, handler),
    skipWaiting: vi.fn(),
    registration: { showNotification: shown, pushManager: { subscribe } },
    clients: { claim: vi.fn(async () => {}), matchAll: async () => windows, openWindow: opened },
  };
  const fetch = vi.fn(async (path: string, _options?: { body?: string; headers?: Record<string, string> }) => {
    const body = path === "/api/session" ? { csrf_token: "token" } : { public_key: "key" };
    return { ok: true, json: async () => body };
  });
  new Function("self", "fetch", CODE)(self, fetch);
  const dispatch = async (name: string, event: Record<string, unknown>) => {
    const waited: Promise<unknown>[] = [];
    handlers.get(name)?.({ ...event, waitUntil: (promise: Promise<unknown>) => waited.push(promise) });
    await Promise.all(waited);
    return waited.length;
  };
  return { dispatch, shown, opened, subscribe, fetch };
}

const pushed = (message: unknown) => ({ data: { json: () => message } });
const tapped = (url: unknown) => ({ notification: { close: vi.fn(), data: { url } } });

describe("a push", () => {
  it("is shown, and a newer one of the same incident replaces it", async () => {
    const { dispatch, shown } = startWorker();
    await dispatch("push", pushed({ title: "入口：人を検知", body: "重要度：2/3", tag: "i1", url: "/events/e1" }));
    expect(shown).toHaveBeenCalledWith("入口：人を検知", {
      body: "重要度：2/3",
      icon: "/icon-192.png",
      tag: "i1",
      renotify: true,
      data: { url: `${ORIGIN}/events/e1` },
    });
  });

  it.each([
    ["nothing", { data: null }],
    [
      "nonsense",
      {
        data: {
          json: () => {
            throw new SyntaxError();
          },
        },
      },
    ],
    ["other types", pushed({ title: 1, body: {}, tag: [], url: 7 })],
  ])("of %s is shown all the same", async (_name, event) => {
    const { dispatch, shown } = startWorker();
    expect(await dispatch("push", event)).toBe(1);
    expect(shown).toHaveBeenCalledWith("camserver", { body: "", icon: "/icon-192.png", data: { url: `${ORIGIN}/` } });
  });
});

describe("a tap", () => {
  let window: FakeWindow;
  beforeEach(() => {
    window = { focus: vi.fn(async () => {}), navigate: vi.fn(async () => null) };
  });

  it("opens the event's page in the window that is there", async () => {
    const { dispatch, opened } = startWorker([window]);
    const event = tapped("/events/e1");
    await dispatch("notificationclick", event);
    expect(event.notification.close).toHaveBeenCalled();
    expect(window.navigate).toHaveBeenCalledWith(`${ORIGIN}/events/e1`);
    expect(window.focus).toHaveBeenCalled();
    expect(opened).not.toHaveBeenCalled();
  });

  it("opens a new one where none can be steered", async () => {
    window.navigate = vi.fn(async () => {
      throw new TypeError();
    });
    const { dispatch, opened } = startWorker([window]);
    await dispatch("notificationclick", tapped("/events/e1"));
    expect(opened).toHaveBeenCalledWith(`${ORIGIN}/events/e1`);
  });

  it.each(["https://evil.example/", "//evil.example/", "javascript:alert(1)", undefined])(
    "never leads away (%s)",
    async (url) => {
      const { dispatch, opened } = startWorker();
      await dispatch("notificationclick", tapped(url));
      expect(opened).toHaveBeenCalledWith(`${ORIGIN}/`);
    },
  );
});

it("tells the server when the browser changes its address", async () => {
  const { dispatch, subscribe, fetch } = startWorker();
  await dispatch("pushsubscriptionchange", {});
  expect(subscribe).toHaveBeenCalledWith({ userVisibleOnly: true, applicationServerKey: "key" });
  const sent = fetch.mock.calls.find(([path]) => path === "/api/push/subscriptions")?.[1];
  expect(sent?.headers?.["X-CSRF-Token"]).toBe("token");
  expect(JSON.parse(sent?.body ?? "")).toEqual({
    endpoint: "https://push.example/2",
    keys: { p256dh: "p", auth: "a" },
  });
});
