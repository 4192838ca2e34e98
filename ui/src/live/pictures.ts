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

/** There is no film of the last seconds: why, as the worker names it (`live.noFilm`), and in English words. */
export class NoFilm extends Error {
  constructor(
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

const WAIT_SEC = 20;

export interface Film {
  blob: Blob;
  /** Why it is not as the camera sent it (`live.note`), and what that was; "" when it is. */
  note: string;
  sourceCodec: string;
}

/**
 * The last seconds of a camera, in a codec that this browser `plays`. A worker has them; it is asked, and then they
 * are fetched.
 */
export async function fetchRecent(cameraId: string, plays: ("h264" | "h265")[], signal: AbortSignal): Promise<Film> {
  const query = { sec: RECENT_SEC, plays };
  const asked = { params: { path: { camera_id: cameraId }, query }, signal };
  let errand = await answered(api.POST("/api/cameras/{camera_id}/recent-clip", asked));
  const path = { errand_uuid: errand.errand_uuid };
  while (errand.state === "waiting" || errand.state === "sent") {
    const params = { path, query: { wait_sec: WAIT_SEC } };
    errand = await answered(api.GET("/api/errands/{errand_uuid}", { params, signal }));
  }
  if (!errand.has_picture) {
    const reason = errand.state === "expired" ? "no_answer" : errand.result?.reason;
    throw new NoFilm(typeof reason === "string" ? reason : "", errand.message);
  }
  const film = { params: { path }, signal, parseAs: "blob" as const };
  const blob = await answered(api.GET("/api/errands/{errand_uuid}/picture", film) as Promise<FilmAnswered>);
  return { blob, note: word(errand.result?.note), sourceCodec: word(errand.result?.source_codec) };
}

const word = (value: unknown): string => (typeof value === "string" ? value : "");

interface FilmAnswered {
  data?: Blob;
  error?: unknown;
  response: Response;
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
