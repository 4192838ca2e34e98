// A picture of this moment, and the film of the moments before it, for whoever wants to keep them.

import { answered, api } from "@/api/client";

const SNAPSHOT_TIMEOUT_MS = 10_000;
export const RECENT_SEC = 30;

/** The picture that the server has; where it has none, the one that is shown. */
export async function takeSnapshot(address: string | null, video: HTMLVideoElement | null): Promise<Blob> {
  if (address) {
    try {
      const signal = AbortSignal.timeout(SNAPSHOT_TIMEOUT_MS);
      const answer = await fetch(address, { signal, credentials: "omit", cache: "no-store" });
      if (answer.ok) return await answer.blob();
    } catch {
      // What is shown is as good.
    }
  }
  return shownPicture(video);
}

function shownPicture(video: HTMLVideoElement | null): Promise<Blob> {
  return new Promise((resolve, reject) => {
    if (!video || video.videoWidth === 0) throw new Error("there is no picture");
    const canvas = document.createElement("canvas");
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    canvas.getContext("2d")?.drawImage(video, 0, 0);
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("there is no picture"))), "image/jpeg", 0.92);
  });
}

/** The route is newer than the types that are made of the server's description. */
interface RecentClipRoute {
  POST(
    path: "/api/cameras/{camera_id}/recent-clip",
    options: { params: { path: { camera_id: string } }; body: { sec: number }; signal: AbortSignal; parseAs: "blob" },
  ): Promise<{ data?: Blob; error?: unknown; response: Response }>;
}

export function fetchRecent(cameraId: string, signal: AbortSignal): Promise<Blob> {
  const params = { path: { camera_id: cameraId } };
  const body = { sec: RECENT_SEC };
  const { POST } = api as unknown as RecentClipRoute;
  return answered(POST("/api/cameras/{camera_id}/recent-clip", { params, body, signal, parseAs: "blob" }));
}

/** A name that sorts by time and is fine for every file system. */
export function fileName(cameraId: string, ending: string, at: Date = new Date()): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`;
  return `${cameraId}-${day}-${two(at.getHours())}${two(at.getMinutes())}${two(at.getSeconds())}.${ending}`;
}

/** Has the browser save something. */
export function save(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has taken it by the next turn.
  setTimeout(() => URL.revokeObjectURL(address), 0);
}
