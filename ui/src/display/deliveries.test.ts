import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Delivery } from "@/api/types";
import { en, ja } from "@/i18n/pages/deliveries";
import { gathered, KNOWN_SENTENCES, reasonOf } from "./deliveries";

const SERVER = "../src/camserver";
const DISPATCHER = `${SERVER}/services/dispatcher`;

const delivery = (given: Partial<Delivery>) =>
  ({ receiver_uuid: "r1", kind: "message", status: "queued", last_error: null, reason: "", ...given }) as Delivery;

describe("why a delivery is as it is", () => {
  it("has words in both languages for every sentence of the server", () => {
    const written = [
      ...readdirSync(DISPATCHER)
        .filter((name) => name.endsWith(".py"))
        .map((name) => readFileSync(`${DISPATCHER}/${name}`, "utf8")),
      readFileSync(`${SERVER}/domain/archive.py`, "utf8"),
    ].join("\n");
    for (const sentence of KNOWN_SENTENCES) {
      expect(written, sentence).toContain(`"${sentence}"`);
      const code = reasonOf({ last_error: sentence, reason: "" });
      expect(Object.keys(ja.reasons), sentence).toContain(code);
      expect(Object.keys(en.reasons), sentence).toContain(code);
    }
  });

  it("is the error where there is one, and what the server says where nobody knows better", () => {
    expect(reasonOf({ last_error: "404 no such channel", reason: "continues" })).toBe("404 no such channel");
    expect(reasonOf({ last_error: null, reason: "continues" })).toBe("continues");
  });
});

describe("deliveries of one event", () => {
  it("that say the same of the same receiver are one", () => {
    const all = [
      delivery({ delivery_uuid: "d5" }),
      delivery({ delivery_uuid: "d4", receiver_uuid: "r2" }),
      delivery({ delivery_uuid: "d3" }),
      delivery({ delivery_uuid: "d2", status: "dead", last_error: "refused" }),
      delivery({ delivery_uuid: "d1" }),
    ];
    expect(gathered(all).map(({ delivery: { delivery_uuid }, count }) => [delivery_uuid, count])).toEqual([
      ["d5", 3],
      ["d4", 1],
      ["d2", 1],
    ]);
  });
});
