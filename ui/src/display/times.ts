// Moments and durations in the reader's language and time zone.

const SHAPES = {
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
  minute: { hour: "2-digit", minute: "2-digit" },
  short: { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
  day: { year: "numeric", month: "short", day: "numeric", weekday: "short" },
  // With its zone: whoever looks after places elsewhere must know whose time it is.
  whole: {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
  },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

/** Making one takes far longer than using it, and a wall tells times all the while. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatted(ms: number, language: string, shape: keyof typeof SHAPES): string {
  const key = `${language} ${shape}`;
  let format = formats.get(key);
  if (!format) {
    format = new Intl.DateTimeFormat(language, { ...SHAPES[shape], hourCycle: "h23" });
    formats.set(key, format);
  }
  return format.format(ms);
}

export const clockTime = (ms: number, language: string) => formatted(ms, language, "clock");
export const hourAndMinute = (ms: number, language: string) => formatted(ms, language, "minute");
export const dateText = (ms: number, language: string) => formatted(ms, language, "day");
export const dateAndTime = (ms: number, language: string) => formatted(ms, language, "whole");

/** The time alone for today, with its date otherwise: lists are mostly about today. */
export function shortMoment(ms: number, nowMs: number, language: string): string {
  const sameDay = new Date(ms).toDateString() === new Date(nowMs).toDateString();
  return formatted(ms, language, sameDay ? "clock" : "short");
}

/** Between two times of a span; no line ends at it. */
const TO = "\u2060–\u2060";

/** A span's beginning and end, with their date where that is not the day they stand under. */
export function spanText(from: number, to: number, day: string, language: string): string {
  const begin = dayOf(from) === day ? hourAndMinute(from, language) : formatted(from, language, "short");
  // A day ends where the next one begins.
  const isOneDay = dayOf(from) === dayOf(to - 1);
  return `${begin}${TO}${isOneDay ? hourAndMinute(to, language) : formatted(to, language, "short")}`;
}

export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const parts = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, place) => (place === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}

/** The first moment of a day (`2026-02-03`) where the reader is; undefined when it is no day. */
export function startOfDay(day: string): number | undefined {
  const [year, month, date] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day)?.slice(1).map(Number) ?? [];
  if (year === undefined || month === undefined || date === undefined) return undefined;
  const moment = new Date(year, month - 1, date);
  return moment.getMonth() === month - 1 && moment.getDate() === date ? moment.getTime() : undefined;
}

export function startOfNextDay(day: string): number | undefined {
  const start = startOfDay(day);
  if (start === undefined) return undefined;
  const next = new Date(start);
  // Not 24 hours later: a day with a clock change is shorter or longer.
  next.setDate(next.getDate() + 1);
  return next.getTime();
}

/** A moment's day (`2026-02-03`) where the reader is. */
export function dayOf(ms: number): string {
  const moment = new Date(ms);
  const [month, date] = [moment.getMonth() + 1, moment.getDate()].map((part) => String(part).padStart(2, "0"));
  return `${moment.getFullYear()}-${month}-${date}`;
}

/** The day so many days later or earlier. */
export function dayBeside(day: string, by: number): string {
  const start = startOfDay(day);
  if (start === undefined) return day;
  const moment = new Date(start);
  moment.setDate(moment.getDate() + by);
  return dayOf(moment.getTime());
}
