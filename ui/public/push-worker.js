// Shows what the server pushes, and opens its page when it is tapped. src/api/push.ts registers it.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("push", (event) => event.waitUntil(show(read(event.data))));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(pageOf(event.notification.data?.url)));
});
// The browser gave itself a new address; the old one is worth nothing any more.
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(subscribeAgain()));

/** A browser that is pushed to must show something, so a message that can't be read is shown without its words. */
function read(data) {
  try {
    return data?.json() ?? {};
  } catch {
    return {};
  }
}

const text = (value) => (typeof value === "string" ? value : "");

/** A page of this site, whatever the message says. */
function pageOf(url) {
  const page = new URL(text(url) || "/", self.location.origin);
  return page.origin === self.location.origin ? page.href : `${self.location.origin}/`;
}

function show(message) {
  const tag = text(message.tag);
  return self.registration.showNotification(text(message.title) || "camserver", {
    body: text(message.body),
    icon: "/icon-192.png",
    // A newer one of the same incident takes the older one's place, and still makes itself heard.
    ...(tag ? { tag, renotify: true } : {}),
    data: { url: pageOf(message.url) },
  });
}

async function open(page) {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  for (const one of windows) {
    const steered = await one.navigate(page).catch(() => undefined);
    // Undefined: one that this worker may not steer, or that is closing. The next one may do.
    if (steered !== undefined) return (steered ?? one).focus();
  }
  await self.clients.openWindow(page);
}

async function subscribeAgain() {
  const [session, key] = await Promise.all(["/api/session", "/api/push/key"].map(answered));
  const subscription = await self.registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: key.public_key,
  });
  const { endpoint, keys } = subscription.toJSON();
  await fetch("/api/push/subscriptions", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": session.csrf_token },
    body: JSON.stringify({ endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } }),
  });
}

async function answered(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}
