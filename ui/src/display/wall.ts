// The wall's choices: which cameras, and how large. They live in the address and are remembered for the next visit.

import type { Camera } from "@/api/types";
import { isWell, standingOf } from "./camera-standing";
import { keep, readKept } from "./kept";

export const LAYOUTS = ["auto", "2", "3", "4", "6"] as const;
export type Layout = (typeof LAYOUTS)[number];

export const readLayout = (wanted: string | null): Layout =>
  LAYOUTS.find((one) => one === (wanted ?? readKept("wall.layout"))) ?? "auto";

/** A choice of cameras that somebody made for themselves. */
export interface OwnGroup {
  name: string;
  cameras: readonly string[];
}

export const GROUPS_MAX = 20;
const CAMERAS_MAX = 500;

/** `all`, `ongoing`, `troubled`, `site:NAME` or `own:NAME`. */
export type GroupName = string;

export const ALL: GroupName = "all";
export const siteGroup = (site: string): GroupName => `site:${site}`;
export const ownGroup = (name: string): GroupName => `own:${name}`;

export function readOwnGroups(): OwnGroup[] {
  try {
    const kept: unknown = JSON.parse(readKept("wall.groups") ?? "[]");
    return Array.isArray(kept) ? kept.filter(isOwnGroup).slice(0, GROUPS_MAX) : [];
  } catch {
    return []; // somebody else wrote there
  }
}

function isOwnGroup(value: unknown): value is OwnGroup {
  const { name, cameras } = (value ?? {}) as Record<string, unknown>;
  return typeof name === "string" && name !== "" && Array.isArray(cameras);
}

export function keepOwnGroups(groups: readonly OwnGroup[]): void {
  const bounded = groups
    .slice(0, GROUPS_MAX)
    .map(({ name, cameras }) => ({ name, cameras: cameras.slice(0, CAMERAS_MAX) }));
  keep("wall.groups", JSON.stringify(bounded));
}

/** The groups with one of them new or changed; `before` is the name it had. */
export function withGroup(groups: readonly OwnGroup[], group: OwnGroup, before: string | null): OwnGroup[] {
  const others = groups.filter((one) => one.name !== group.name || one.name === before);
  const place = others.findIndex((one) => one.name === before);
  return place < 0 ? [...others, group] : others.map((one, at) => (at === place ? group : one));
}

/** Every site that has a camera, by name. */
export const sitesOf = (cameras: readonly Camera[]): string[] =>
  [...new Set(cameras.map((camera) => camera.site))].sort((a, b) => a.localeCompare(b));

/** The cameras of a group. One that is gone, as a site that was renamed, shows all of them. */
export function camerasOf(
  group: GroupName,
  cameras: readonly Camera[],
  own: readonly OwnGroup[],
  nowMs: number,
): readonly Camera[] {
  if (group === "ongoing") return cameras.filter((camera) => camera.open_event);
  if (group === "troubled") return cameras.filter((camera) => isTroubled(camera, nowMs));
  if (group.startsWith("site:")) {
    const found = cameras.filter((camera) => siteGroup(camera.site) === group);
    return found.length > 0 ? found : cameras;
  }
  const chosen = own.find((one) => ownGroup(one.name) === group);
  return chosen ? cameras.filter((camera) => chosen.cameras.includes(camera.camera_id)) : cameras;
}

export function isTroubled(camera: Camera, nowMs: number): boolean {
  const standing = standingOf(camera, nowMs);
  return !isWell(standing) && standing.kind !== "off";
}

/** Where an arrow leads in a grid of so many columns; it stays inside. */
export function besides(place: number, count: number, columns: number, key: string): number {
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key] ?? 0;
  const next = place + step;
  return next < 0 || next >= count ? place : next;
}
