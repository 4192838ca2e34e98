// Reads the list of segments that our own streamer writes (HLS, RFC 8216): one quality, fMP4, live. Nothing else.

export interface Segment {
  number: number;
  address: string;
  seconds: number;
  init: string; // the address of what must be appended before it
}

export interface Playlist {
  segments: Segment[];
  targetSec: number;
  isOver: boolean; // no more will come
  hasSound: boolean; // there is a list with sound beside it, or this is it
  note: string; // why pictures are not as the camera sends them, as a code
  sourceCodec: string; // what it sends then
  units?: number | undefined; // what a transcoded one takes of the budget that everybody shares
}

export function readPlaylist(text: string, base: string): Playlist {
  const playlist: Playlist = {
    segments: [],
    targetSec: 2,
    isOver: false,
    hasSound: false,
    note: "",
    sourceCodec: "",
  };
  const address = (path: string) => new URL(path, base).href;
  let number = 0;
  let seconds = 0;
  let init = "";
  for (const line of text.split(/\r?\n/)) {
    const [tag, value] = split(line);
    if (tag === "#EXT-X-TARGETDURATION") playlist.targetSec = Number(value) || playlist.targetSec;
    else if (tag === "#EXT-X-MEDIA-SEQUENCE") number = Number(value) || 0;
    else if (tag === "#EXT-X-MAP") init = address(/URI="([^"]*)"/.exec(value)?.[1] ?? "");
    else if (tag === "#EXTINF") seconds = Number.parseFloat(value) || 0;
    else if (tag === "#EXT-X-ENDLIST") playlist.isOver = true;
    else if (tag === "#CAMSERVER-SOUND") playlist.hasSound = true;
    else if (tag === "#CAMSERVER-NOTE") [playlist.note = "", playlist.sourceCodec = ""] = value.split(",");
    else if (tag === "#CAMSERVER-UNITS") playlist.units = Number(value) || undefined;
    else if (line && !line.startsWith("#")) {
      playlist.segments.push({ number, address: address(line), seconds, init });
      number += 1;
    }
  }
  return playlist;
}

function split(line: string): [string, string] {
  const place = line.indexOf(":");
  return place < 0 ? [line, ""] : [line.slice(0, place), line.slice(place + 1)];
}

/** What to fetch next: what follows the last one; at first, and after a hole, the newest but one. */
export function nextSegments(playlist: Playlist, last: number | null): Segment[] {
  const { segments } = playlist;
  const after = last === null ? -1 : segments.findIndex((one) => one.number === last);
  if (after >= 0) return segments.slice(after + 1);
  const newest = segments.at(-1);
  // The list still ends where it did.
  if (last !== null && newest && newest.number <= last) return [];
  return segments.slice(-2);
}
