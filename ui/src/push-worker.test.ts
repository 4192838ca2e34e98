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

describe("the UI's own files", () => {
  const PAGE = '<script src="/theme.js"></script><script type="module" src="/assets/index-1.js"></script>';

  /** A browser's cache, and a server that can go away; both know files by their paths. */
  function startFiles() {
    const handlers = new Map<string, Handler>();
    const kept = new Map<string, string>();
    const server = { isAway: false, files: { "/": PAGE, "/theme.js": "theme", "/assets/index-1.js": "one" } };
    const pathOf = (asked: string | { url: string }) =>
      new URL(typeof asked === "string" ? asked : asked.url, ORIGIN).pathname;
    const answer = (text: string) => {
      const one = { ok: true, redirected: false, text: async () => text, clone: () => one };
      return one;
    };
    const fetch = vi.fn(async (asked: string | { url: string }) => {
      if (server.isAway) throw new TypeError("Failed to fetch");
      return answer((server.files as Record<string, string>)[pathOf(asked)] ?? PAGE);
    });
    const cache = {
      match: async (asked: string | { url: string }) => {
        const text = kept.get(pathOf(asked));
        return text === undefined ? undefined : answer(text);
      },
      keys: async () => [...kept.keys()],
      delete: async (path: string) => kept.delete(path),
      put: async (asked: string | { url: string }, { text }: { text: () => Promise<string> }) =>
        void kept.set(pathOf(asked), await text()),
      addAll: async (paths: string[]) => {
        for (const path of paths) await cache.put(path, await fetch(path));
      },
    };
    const self = {
      location: { origin: ORIGIN },
      addEventListener: (name: string, handler: Handler) => handlers.set(name, handler),
      skipWaiting: vi.fn(),
    };
    new Function("self", "fetch", "caches", CODE)(self, fetch, { open: async () => cache, match: cache.match });
    const waited: Promise<unknown>[] = [];
    const waitUntil = (promise: Promise<unknown>) => waited.push(promise);
    const install = async () => {
      handlers.get("install")?.({ waitUntil });
      await Promise.all(waited);
    };
    const ask = async (path: string, mode = "navigate", method = "GET") => {
      let answered: Promise<{ text: () => Promise<string> }> | undefined;
      const request = { url: `${ORIGIN}${path}`, mode, method };
      handlers.get("fetch")?.({
        request,
        waitUntil,
        respondWith: (promise: typeof answered) => {
          answered = promise;
        },
      });
      const text = answered && (await (await answered).text());
      await Promise.all(waited);
      return text;
    };
    return { install, ask, kept, server };
  }

  it("open every page while the server is away", async () => {
    const { install, ask, server } = startFiles();
    await install();
    server.isAway = true;
    expect(await ask("/events?severity=2")).toBe(PAGE);
    expect(await ask("/assets/index-1.js", "no-cors")).toBe("one");
    expect(await ask("/theme.js", "no-cors")).toBe("theme");
  });

  it("are those of the server while it is there, and the old ones go", async () => {
    const { install, ask, kept, server } = startFiles();
    await install();
    const next = PAGE.replace("index-1", "index-2");
    Object.assign(server.files, { "/": next, "/assets/index-2.js": "two" });
    expect(await ask("/")).toBe(next);
    expect([...kept.keys()].sort()).toEqual(["/", "/assets/index-2.js", "/theme.js"]);
  });

  it("are kept, and no page of anybody else's", async () => {
    const { install, ask, kept, server } = startFiles();
    await install();
    Object.assign(server.files, { "/events": "<h1>Who are you?</h1>" });
    expect(await ask("/events")).toBe("<h1>Who are you?</h1>");
    expect(kept.get("/")).toBe(PAGE);
  });

  it("are no answer to what the server answers itself", async () => {
    const { ask } = startFiles();
    const { paths } = JSON.parse(readFileSync("../docs/ref/openapi.json", "utf8"));
    for (const path of Object.keys(paths)) expect(await ask(path), path).toBeUndefined();
  });

  it.each([
    ["/api/session", "cors", "GET"],
    ["/api/oidc/start", "navigate", "GET"],
    ["/media/still", "no-cors", "GET"],
    ["/events", "navigate", "POST"],
  ])("leave %s (%s %s) to the browser", async (path, mode, method) => {
    const { install, ask } = startFiles();
    await install();
    expect(await ask(path, mode, method)).toBeUndefined();
  });
});
