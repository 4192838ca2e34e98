// Addresses that elements of a page open by themselves.

export type PictureKind = "infer" | "full";

export function framePicture(frameUuid: string, kind: PictureKind): string {
  return `/api/frames/${encodeURIComponent(frameUuid)}/picture?kind=${kind}`;
}

/** `isPlayable`: made anew where not every browser plays it as the camera sent it. */
export function eventClip(eventUuid: string, isPlayable = false): string {
  return `/api/events/${encodeURIComponent(eventUuid)}/clip${isPlayable ? "?playable=true" : ""}`;
}

export function feedAddress(after: number | null, page: Pick<Location, "protocol" | "host"> = location): string {
  const scheme = page.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${page.host}/api/feed${after === null ? "" : `?after=${after}`}`;
}
