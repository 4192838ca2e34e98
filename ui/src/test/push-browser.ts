// A browser that can be pushed to, for tests: jsdom has none of it.

import { vi } from "vitest";

export const PUBLIC_KEY = "BAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0-Pw";

export interface FakeSubscription {
  endpoint: string;
  options: { applicationServerKey: ArrayBuffer | null };
  toJSON(): { endpoint: string; keys: { p256dh: string; auth: string } };
  unsubscribe(): Promise<boolean>;
}

/** What a test can look at and change. */
export interface PushBrowser {
  permission: NotificationPermission;
  /** What the person answers when asked. */
  answer: NotificationPermission;
  subscription: FakeSubscription | null;
  registered: string[];
  /** Thrown by the browser instead of subscribing, as where its push service can't be reached. */
  failure: Error | null;
}

export function subscriptionFor(browser: PushBrowser, key: ArrayBuffer | null): FakeSubscription {
  const endpoint = "https://push.example/1";
  return {
    endpoint,
    options: { applicationServerKey: key },
    toJSON: () => ({ endpoint, keys: { p256dh: "point", auth: "secret" } }),
    unsubscribe: async () => {
      browser.subscription = null;
      return true;
    },
  };
}

export function pushBrowser(given: Partial<PushBrowser> = {}): PushBrowser {
  const browser: PushBrowser = {
    permission: "default",
    answer: "granted",
    subscription: null,
    registered: [],
    failure: null,
    ...given,
  };
  const registration = {
    pushManager: {
      getSubscription: async () => browser.subscription,
      subscribe: async ({ applicationServerKey }: { applicationServerKey: Uint8Array<ArrayBuffer> }) => {
        if (browser.failure) throw browser.failure;
        browser.subscription = subscriptionFor(browser, applicationServerKey.buffer);
        return browser.subscription;
      },
    },
  };
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("PushManager", class {});
  vi.stubGlobal("Notification", {
    get permission() {
      return browser.permission;
    },
    requestPermission: async () => {
      browser.permission = browser.answer;
      return browser.answer;
    },
  });
  Object.defineProperty(navigator, "serviceWorker", {
    configurable: true,
    value: {
      ready: Promise.resolve(registration),
      register: async (path: string) => {
        browser.registered.push(path);
        return registration;
      },
      getRegistration: async () => (browser.registered.length || browser.subscription ? registration : undefined),
    },
  });
  return browser;
}

export function noPushBrowser(): void {
  Reflect.deleteProperty(navigator, "serviceWorker");
}
