// What the log of deliveries says to a reader.

import type { Delivery } from "@/api/types";

/** Most reasons are codes with words of their own; these the server says as a sentence. */
const SENTENCES: Readonly<Record<string, string>> = {
  "the event or its picture is gone": "event_gone",
  "the picture of the event's best frame is gone": "picture_gone",
  "the picture is past its retention": "picture_gone",
  "the clip is past its retention": "clip_gone",
  "the case was closed": "case_closed",
  "the summary is gone": "summary_gone",
  "over the camera's quota of the day": "day_quota",
  "the receiver is switched off": "receiver_off",
  "the event has its review": "has_opinion",
  "the event is being reviewed": "has_opinion",
  "the camera was reviewed a moment ago": "lately_asked",
  "the day's budget is used up": "budget_used_up",
  "llm.daily_cost_usd is set, and the model's price is not known": "price_unknown",
};

export const KNOWN_SENTENCES = Object.keys(SENTENCES);

/** Why it was made, held back or given up: a code that may have words, or what the server says. */
export function reasonOf({ last_error, reason }: Pick<Delivery, "last_error" | "reason">): string {
  const told = last_error || reason;
  return SENTENCES[told] ?? told;
}

export interface Gathered {
  /** The newest of them. */
  delivery: Delivery;
  count: number;
}

/** Deliveries that say the same of the same receiver are one, newest first. */
export function gathered(deliveries: readonly Delivery[]): Gathered[] {
  const groups = new Map<string, Gathered>();
  for (const delivery of deliveries) {
    const { receiver_uuid, kind, status } = delivery;
    const key = JSON.stringify([receiver_uuid, kind, status, reasonOf(delivery)]);
    const known = groups.get(key);
    if (known) known.count += 1;
    else groups.set(key, { delivery, count: 1 });
  }
  return [...groups.values()];
}
