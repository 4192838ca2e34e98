// The last 24 hours of the wall: all cameras together by the hour, and each camera that saw something.

import type { Strips } from "./timeline";

const HOUR_MS = 3_600_000;

export interface StripCamera {
  camera_id: string;
  camera_name: string;
  looked: string;
  severity: string;
  events: readonly (readonly number[])[];
}

export interface DayStrips extends Strips {
  /** What is newer is not in the figures yet. */
  counted_until: number;
  cameras: readonly StripCamera[];
}

export interface StripHour {
  at: number;
  end: number;
  events: number;
  severity: number;
}

/** A row of one camera; marks are places among `buckets`. */
export interface StripRow {
  cameraId: string;
  name: string;
  events: number;
  severity: number;
  marks: { place: number; severity: number }[];
}

export const bucketsOf = ({ from_at, to_at, bucket_ms }: Strips) => Math.round((to_at - from_at) / bucket_ms);

export const only = (strips: DayStrips, cameraIds: ReadonlySet<string>): DayStrips => ({
  ...strips,
  cameras: strips.cameras.filter((camera) => cameraIds.has(camera.camera_id)),
});

/**
 * How high a bar stands, from 0 to 1. By the square root, so that one hour of rain does not press the others to the
 * ground; the numbers are beside it.
 */
export const barShare = (count: number, most: number) => (count > 0 ? Math.max(BAR_MIN, Math.sqrt(count / most)) : 0);

/** What happened once is seen, too. */
const BAR_MIN = 0.12;

const severityAt = (camera: StripCamera, place: number) => Number(camera.severity[place] ?? 0) || 0;

/** All cameras by the hour, the oldest first. */
export function stripHours(strips: DayStrips): StripHour[] {
  const { from_at, to_at, bucket_ms, cameras } = strips;
  const hours: StripHour[] = [];
  for (let at = from_at; at < to_at; at += HOUR_MS) {
    hours.push({ at, end: Math.min(at + HOUR_MS, to_at), events: 0, severity: 0 });
  }
  for (const camera of cameras) {
    for (const [place = 0, count = 0] of camera.events) {
      const hour = hours[Math.floor((place * bucket_ms) / HOUR_MS)];
      if (!hour) continue;
      hour.events += count;
      hour.severity = Math.max(hour.severity, severityAt(camera, place));
    }
  }
  return hours;
}

/** The cameras that saw something: the gravest first, then those that saw most. */
export function stripRows(strips: DayStrips): StripRow[] {
  return strips.cameras
    .filter((camera) => camera.events.length > 0)
    .map((camera) => {
      const marks = camera.events.map(([place = 0]) => ({ place, severity: severityAt(camera, place) }));
      return {
        cameraId: camera.camera_id,
        name: camera.camera_name,
        events: camera.events.reduce((sum, [, count = 0]) => sum + count, 0),
        severity: Math.max(0, ...marks.map((mark) => mark.severity)),
        marks,
      };
    })
    .sort((a, b) => b.severity - a.severity || b.events - a.events || a.name.localeCompare(b.name));
}

/** The end of the bucket at a share of the strip's width. */
export function momentAt(strips: Strips, share: number): number {
  const place = Math.min(bucketsOf(strips) - 1, Math.max(0, Math.floor(share * bucketsOf(strips))));
  return strips.from_at + (place + 1) * strips.bucket_ms;
}
