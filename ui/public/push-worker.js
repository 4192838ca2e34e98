// Shows what the server pushes, and opens its page when it is tapped; and keeps the UI's own files, so that it opens
// while the server is away and says so itself. src/api/worker.ts registers it. What the API answers is never kept here.

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(keepFiles());
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate" && !OTHERS.test(url.pathname)) event.respondWith(pageFor(event));
  else if (FILES.test(url.pathname)) event.respondWith(fileFor(request));
});
self.addEventListener("push", (event) => event.waitUntil(show(read(event.data))));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(pageOf(event.notification.data?.url)));
});
// The browser gave itself a new address; the old one is worth nothing any more.
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(subscribeAgain()));

// --- the UI's files ---

const KEPT = "camserver-files";
/** Under this name the page is kept; every address of the UI is the same page. */
const PAGE = "/";
const FILES = /^\/(assets\/|theme\.js$|favicon\.svg$)/;
/** What the server answers itself, though a browser may be sent there. */
const OTHERS = /^\/(api|share|media|v1|hls|stream|snapshot|metrics|readyz|healthz)(\/|$)/;

const namedIn = (html) =>
  [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path).filter((path) => FILES.test(path));

/** The page and what it names first; the rest is kept as it is loaded. */
async function keepFiles(page) {
  const answer = page ?? (await fetch(PAGE));
  if (!answer.ok || answer.redirected) return;
  const kept = await caches.open(KEPT);
  const html = await answer.clone().text();
  const files = namedIn(html);
  // A page of somebody else's, such as of a proxy that wants to know who is there, is not kept as the UI.
  if (!files.some((path) => path.startsWith("/assets/"))) return;
  const before = await (await kept.match(PAGE))?.text();
  if (before === html) return;
  // Another version: what the old one named is of no use to it.
  if (before !== undefined) await Promise.all((await kept.keys()).map((one) => kept.delete(one)));
  await kept.addAll(files);
  await kept.put(PAGE, answer);
}

async function pageFor(event) {
  try {
    const answer = await fetch(event.request);
    if (answer.ok) event.waitUntil(keepFiles(answer.clone()).catch(() => undefined));
    return answer;
  } catch (error) {
    const kept = await caches.match(PAGE, { cacheName: KEPT });
    if (kept) return kept;
    throw error;
  }
}

/** Files whose name holds a hash are what they were; the others are asked for again. */
async function fileFor(request) {
  const kept = await caches.match(request, { cacheName: KEPT });
  const isFixed = new URL(request.url).pathname.startsWith("/assets/");
  if (kept && isFixed) return kept;
  try {
    const answer = await fetch(request);
    if (answer.ok && isFixed) await (await caches.open(KEPT)).put(request, answer.clone());
    return answer;
  } catch (error) {
    if (kept) return kept;
    throw error;
  }
}

// --- pushes ---

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
