// A file that the server makes while it sends it: how much has come so far, and a way to stop.

import { asProblem, problemOf } from "./problem";

export interface Download {
  /** Null where it was stopped. */
  file: Blob | null;
}

/** Reads the whole answer; `onBytes` is told how much there is so far. Throws a Problem when it is an error. */
export async function download(
  address: string,
  onBytes: (bytes: number) => void,
  signal: AbortSignal,
): Promise<Download> {
  try {
    const answer = await globalThis.fetch(address, {
      signal,
      headers: { "Accept-Language": document.documentElement.lang },
    });
    if (!answer.ok) throw problemOf(answer.status, await answer.json().catch(() => null));
    const parts: Blob[] = [];
    const reader = answer.body?.getReader();
    let bytes = 0;
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) break;
      // A blob of its own: browsers keep large ones on disk.
      parts.push(new Blob([value]));
      bytes += value.byteLength;
      onBytes(bytes);
    }
    return { file: new Blob(parts, { type: answer.headers.get("Content-Type") ?? "" }) };
  } catch (error) {
    if (signal.aborted) return { file: null };
    throw asProblem(error);
  }
}

/** Hands a file to the browser as a download. */
export function saveFile(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser reads it after this; a minute is more than it needs to begin.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
