// Masks and zones as they are drawn: polygons in shares (0..1) of the picture.

import type { CameraChange } from "@/api/types";

export type Point = readonly [number, number];
export const REGION_KINDS = ["ignore", "privacy", "zone"] as const;
export type RegionKind = (typeof REGION_KINDS)[number];

export interface Region {
  kind: RegionKind;
  name: string; // of a zone
  points: readonly Point[];
}

/** As the server takes them. */
export const POINTS_MIN = 3;
export const POINTS_MAX = 64;
export const REGIONS_MAX = 16;

interface Own {
  ignore_masks: number[][][] | null;
  privacy_masks: number[][][] | null;
  zones: { name: string; points: number[][] }[] | null;
}

const point = ([x = 0, y = 0]: readonly number[]): Point => [x, y];

export function regionsOf(own: Own | null): Region[] {
  const masks = (kind: RegionKind, polygons: number[][][] | null): Region[] =>
    (polygons ?? []).map((points) => ({ kind, name: "", points: points.map(point) }));
  return [
    ...masks("ignore", own?.ignore_masks ?? null),
    ...masks("privacy", own?.privacy_masks ?? null),
    ...(own?.zones ?? []).map(({ name, points }): Region => ({ kind: "zone", name, points: points.map(point) })),
  ];
}

export type Drawn = Pick<CameraChange, "ignore_masks" | "privacy_masks" | "zones">;

/** What is sent; null sets a value back where nothing is drawn. */
export function drawnValues(regions: readonly Region[]): Drawn {
  const of = (kind: RegionKind) => {
    const found = regions.filter((one) => one.kind === kind).map(({ points }) => points.map((one) => [...one]));
    return found.length > 0 ? found : null;
  };
  const zones = regions
    .filter((one) => one.kind === "zone")
    .map(({ name, points }) => ({ name, points: points.map((one) => [...one]) }));
  return { ignore_masks: of("ignore"), privacy_masks: of("privacy"), zones: zones.length > 0 ? zones : null };
}

const clamp = (share: number) => Math.min(1, Math.max(0, Math.round(share * 1000) / 1000));

export const at = (x: number, y: number): Point => [clamp(x), clamp(y)];

export function movedPoint(region: Region, place: number, by: Point): Region {
  const points = region.points.map((one, number) => (number === place ? at(one[0] + by[0], one[1] + by[1]) : one));
  return { ...region, points };
}

/** With a corner more, in the middle of the side that follows. */
export function splitSide(region: Region, place: number): Region {
  const [from, to] = [region.points[place], region.points[(place + 1) % region.points.length]];
  if (!from || !to || region.points.length >= POINTS_MAX) return region;
  const middle = at((from[0] + to[0]) / 2, (from[1] + to[1]) / 2);
  return { ...region, points: [...region.points.slice(0, place + 1), middle, ...region.points.slice(place + 1)] };
}

export function withoutPoint(region: Region, place: number): Region {
  if (region.points.length <= POINTS_MIN) return region;
  return { ...region, points: region.points.filter((_, number) => number !== place) };
}

/** A shape to begin with, in the middle of the picture. */
export function newRegion(kind: RegionKind, name: string): Region {
  return { kind, name, points: [at(0.35, 0.35), at(0.65, 0.35), at(0.65, 0.65), at(0.35, 0.65)] };
}

/** `zone 2` where `zone 1` is there already. */
export function freshName(regions: readonly Region[], word: string): string {
  const taken = new Set(regions.map((one) => one.name));
  let number = 1;
  while (taken.has(`${word} ${number}`)) number += 1;
  return `${word} ${number}`;
}

export const cornersText = (points: readonly Point[]) => points.map(([x, y]) => `${x * 100},${y * 100}`).join(" ");
