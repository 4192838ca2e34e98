// What workers bring back, as far as pages show it. Other versions may say more or less: what is not understood is left out.

import type { Errand } from "@/api/types";

type Fields = Record<string, unknown>;
const fields = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fields) : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);

/** What a worker said, in the reader's language where it has both. */
export function saidBy(errand: Errand, language: string): string {
  const said = fields(errand.result)[language === "en" ? "said_en" : "said_ja"];
  return text(said) || errand.message;
}

export interface FoundDevice {
  address: string;
  name: string;
  hardware: string;
  reference: string;
}

export function devicesOf(errand: Errand): FoundDevice[] {
  return list(fields(errand.result).devices)
    .map((one) => ({
      address: text(one.address),
      name: text(one.name),
      hardware: text(one.hardware),
      reference: text(one.reference),
    }))
    .filter((one) => one.address !== "");
}

export interface OfferedStream {
  token: string;
  name: string;
  url: string;
  codec: string;
  width: number;
  height: number;
}

export interface Offer {
  maker: string;
  streams: OfferedStream[];
  main: string | null; // tokens of what fits best
  sub: string | null;
}

export function offerOf(errand: Errand): Offer {
  const result = fields(errand.result);
  const device = fields(result.device);
  const streams = list(result.profiles).map((one) => ({
    token: text(one.token),
    name: text(one.name) || text(one.token),
    url: text(one.stream_url),
    codec: text(one.codec),
    width: number(one.width) ?? 0,
    height: number(one.height) ?? 0,
  }));
  return {
    maker: [text(device.manufacturer), text(device.model)].filter(Boolean).join(" "),
    streams: streams.filter((one) => one.url !== ""),
    main: text(result.main) || null,
    sub: text(result.sub) || null,
  };
}

export interface ProbedStream {
  codec: string;
  width: number;
  height: number;
  fps: number | null;
  gopSec: number | null;
  kbitPerSec: number | null;
}

export function streamOf(caps: unknown): ProbedStream | null {
  const stream = fields(caps);
  const [width, height] = [number(stream.width), number(stream.height)];
  if (width === null || height === null) return null;
  return {
    codec: text(stream.codec),
    width,
    height,
    fps: number(stream.fps),
    gopSec: number(stream.gop_sec),
    kbitPerSec: number(stream.kbit_per_sec),
  };
}

export const probedStream = (errand: Errand) => streamOf(fields(errand.result).stream);

/** A camera's main stream as its last probe found it. */
export function knownStream(caps: unknown): ProbedStream | null {
  const known = fields(caps);
  const [width, height] = /^(\d+)x(\d+)$/.exec(text(known.res))?.slice(1).map(Number) ?? [];
  return streamOf(width && height ? { ...known, width, height } : known);
}

export function streamText(stream: ProbedStream): string {
  const parts = [
    `${stream.codec.toUpperCase()} ${stream.width}×${stream.height}`,
    stream.fps === null ? "" : `${Math.round(stream.fps * 10) / 10} fps`,
    stream.kbitPerSec === null ? "" : `${Math.round(stream.kbitPerSec)} kbit/s`,
  ];
  return parts.filter(Boolean).join(", ");
}

export interface ExplainedLook {
  at: number;
  verdict: string;
  reason: string;
  z: number | null;
  changed: number | null; // share of the picture
}

export interface Explained {
  rule: string;
  pass: number | null; // from this Z on a look passes
  learned: number;
  clockCells: number;
  looks: ExplainedLook[];
}

export function explainedOf(errand: Errand): Explained {
  const result = fields(errand.result);
  return {
    rule: text(result.rule),
    pass: number(result.z_pass),
    learned: number(result.learned) ?? 0,
    clockCells: number(result.clock_cells) ?? 0,
    looks: list(result.looks).map((one) => ({
      at: number(one.captured_at) ?? 0,
      verdict: text(one.verdict),
      reason: text(one.reason),
      z: number(one.z_max),
      changed: number(one.diff_ratio),
    })),
  };
}
