// The worker that this browser keeps for the site: it shows pushes, and opens the UI while the server is away.

export const WORKER = "/push-worker.js";

/** Browsers keep one only for pages that came over https or from this machine; some people switch them off. */
export async function startWorker(): Promise<void> {
  if (!globalThis.isSecureContext || !("serviceWorker" in navigator)) return;
  try {
    await navigator.serviceWorker.register(WORKER);
    await navigator.serviceWorker.ready;
  } catch (error) {
    console.info("Without a service worker the UI does not open while the server is away.", error);
  }
}
