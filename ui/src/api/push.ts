// Notifications in this browser: whether it can, whether it may, whether it does; switching it on and off.

import { keep, readKept } from "@/display/kept";
import { answered, api } from "./client";
import { Problem } from "./problem";
import type { PushSubscriptionAsked } from "./types";
import { WORKER } from "./worker";

/** The code of a browser that can't reach the push service of its maker, or has none. */
export const NO_PUSH_SERVICE = "push_service";
/** Under this name the browser keeps who switched it on. */
const OWNER = "push-owner";

/**
 * insecure: browsers push only to pages that came over https; unsupported: this browser never does;
 * muted: it is on, but the server tells no browser now.
 */
export type PushState = "unsupported" | "insecure" | "denied" | "on" | "muted" | "off";

export function canPush(): PushState | null {
  if (!globalThis.isSecureContext) return "insecure";
  const has = "serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis;
  return has ? null : "unsupported";
}

/**
 * How it stands for whoever is signed in. A browser that they switched on, and that the server does not know of any
 * more, is made known again; one that somebody else switched on is switched off.
 */
export async function pushState(login: string): Promise<PushState> {
  const lacking = canPush();
  if (lacking) return lacking;
  if (Notification.permission === "denied") return "denied";
  const subscription = await currentSubscription();
  if (!subscription) return "off";
  if (await known(subscription)) return onOrMuted();
  if (readKept(OWNER) !== login) {
    await subscription.unsubscribe();
    return "off";
  }
  await tell(subscription);
  return onOrMuted();
}

async function onOrMuted(): Promise<PushState> {
  const { enabled } = await answered(api.GET("/api/push/key"));
  return enabled ? "on" : "muted";
}

/** Asks the person, the browser and the server, in this order; what it came to. */
export async function turnOn(login: string): Promise<PushState> {
  const lacking = canPush();
  if (lacking) return lacking;
  const permission = await Notification.requestPermission();
  if (permission !== "granted") return permission === "denied" ? "denied" : "off";
  const { public_key } = await answered(api.GET("/api/push/key"));
  await navigator.serviceWorker.register(WORKER);
  const registration = await navigator.serviceWorker.ready;
  const old = await registration.pushManager.getSubscription();
  // One that was made for another key of the server would be refused for ever.
  if (old && !sameKey(old.options.applicationServerKey, public_key)) await old.unsubscribe();
  const subscription = await registration.pushManager
    .subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(public_key) })
    .catch((error: Error) => {
      throw new Problem(0, NO_PUSH_SERVICE, error.message);
    });
  await tell(subscription);
  keep(OWNER, login);
  return onOrMuted();
}

/** The server forgets this browser, and the browser the server. */
export async function turnOff(): Promise<PushState> {
  const subscription = await currentSubscription();
  if (!subscription) return canPush() ?? "off";
  const own = await known(subscription);
  if (own) {
    await answered(
      api.DELETE("/api/push/subscriptions/{subscription_uuid}", {
        params: { path: { subscription_uuid: own.subscription_uuid } },
      }),
    );
  }
  await subscription.unsubscribe();
  return "off";
}

/** Before somebody signs out: who comes next at this browser is not told of their cameras. */
export async function forgetBrowser(): Promise<void> {
  if (canPush() !== null) return;
  try {
    await turnOff();
  } catch {
    // Signing out must work all the same; without its browser the server's pushes come to nothing.
    await (await currentSubscription())?.unsubscribe();
  }
}

async function currentSubscription(): Promise<PushSubscription | null> {
  if (canPush() !== null) return null;
  const registration = await navigator.serviceWorker.getRegistration("/");
  return (await registration?.pushManager.getSubscription()) ?? null;
}

async function known(subscription: PushSubscription) {
  const hash = await sha256Hex(subscription.endpoint);
  const { subscriptions } = await answered(api.GET("/api/push/subscriptions"));
  return subscriptions.find((one) => one.endpoint_hash === hash);
}

async function tell(subscription: PushSubscription): Promise<void> {
  const { endpoint, keys } = subscription.toJSON();
  const language = document.documentElement.lang === "en" ? "en" : "ja";
  const body: PushSubscriptionAsked = {
    endpoint: endpoint ?? "",
    keys: { p256dh: keys?.p256dh ?? "", auth: keys?.auth ?? "" },
    language,
  };
  await answered(api.POST("/api/push/subscriptions", { body }));
}

export async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** base64url as the server writes it. */
export function bytesOf(key: string): Uint8Array<ArrayBuffer> {
  const plain = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = new Uint8Array(plain.length);
  for (let index = 0; index < plain.length; index += 1) bytes[index] = plain.charCodeAt(index);
  return bytes;
}

export function sameKey(held: ArrayBuffer | null, key: string): boolean {
  if (!held) return false;
  const wanted = bytesOf(key);
  const given = new Uint8Array(held);
  return given.length === wanted.length && given.every((byte, index) => byte === wanted[index]);
}
