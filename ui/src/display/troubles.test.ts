import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { en, ja } from "@/i18n/pages/troubles";
import { causeOf, type TroubleKind, troubleOf } from "./troubles";

const CLIENTS = "../src/camserver/clients";
const source = (...names: string[]) =>
  names
    .map((name) => readFileSync(`${CLIENTS}/${name}.py`, "utf8"))
    .join("\n")
    .replace(/"\s+f?"/g, "");

// A sentence of each kind, what it names, and the piece of the server's program that writes it.
const SAID: readonly (readonly [TroubleKind, string, Record<string, string>, string])[] = [
  [
    "unreachable",
    "hooks.example.com:443 can't be reached: Connection refused",
    { host: "hooks.example.com:443", cause: "Connection refused" },
    " can't be reached: {cause}",
  ],
  [
    "unreachable",
    "the mail server mail.example.com can't be reached: no connection in time",
    { host: "mail.example.com", cause: "no connection in time" },
    "the mail server {host} can't be reached: {why}",
  ],
  [
    "unreachable",
    "POST /v1/analyze at 127.0.0.1:9: Connection refused",
    { host: "127.0.0.1:9", cause: "Connection refused" },
    "{method} {path} at {self.host}: {cause_of(error)}",
  ],
  [
    "noConnection",
    "hooks.example.com: no connection within 5 s",
    { host: "hooks.example.com", seconds: "5" },
    "{host}: no connection within {limit.connect:g} s",
  ],
  [
    "noConnection",
    "GET /v1/health at 127.0.0.1:9: no connection within 2.5 s",
    { host: "127.0.0.1:9", seconds: "2.5" },
    "{method} {path} at {self.host}: no connection within {limit.connect:g} s",
  ],
  [
    "noAnalyzerAnswer",
    "POST /v1/analyze got no answer within 30 s",
    { seconds: "30" },
    "{method} {path} got no answer within {limit.total:g} s",
  ],
  [
    "noAnswer",
    "hooks.example.com gave no answer within 10 s",
    { host: "hooks.example.com", seconds: "10" },
    "{host} gave no answer within {total_sec:g} s",
  ],
  [
    "untrusted",
    "hooks.example.com: its certificate is not trusted: self-signed",
    { host: "hooks.example.com", cause: "self-signed" },
    "{host}: its certificate is not trusted: {error}",
  ],
  [
    "redirect",
    "hooks.example.com answered 302, a redirect, which is not followed; enter the address it leads to",
    { who: "hooks.example.com", status: "302" },
    "{who} answered {self.status}, a redirect, ",
  ],
  [
    "analyzerAnswered",
    'the analyzer answered 503: {"error": "busy"}',
    { status: "503", said: '{"error": "busy"}' },
    "the analyzer answered {answer.status}: {said}",
  ],
  ["answeredBare", "Slack answered 500", { who: "Slack", status: "500" }, "{who} answered {self.status}{said}"],
  [
    "answered",
    "Slack's upload answered 413: too\nlarge",
    { who: "Slack's upload", status: "413", said: "too\nlarge" },
    "{who} answered {self.status}{said}",
  ],
  [
    "slackRefused",
    "Slack (chat.postMessage) refused: channel_not_found",
    { method: "chat.postMessage", said: "channel_not_found" },
    "Slack ({method}) refused: {error}",
  ],
  [
    "recipientsRefused",
    "the mail server mail.example.com refuses every recipient: a@example.com: 550 no",
    { host: "mail.example.com", said: "a@example.com: 550 no" },
    "the mail server {host} refuses every recipient: {said}",
  ],
  [
    "brokerLogin",
    "the MQTT broker mqtt.example.com refuses user name or password; enter them again",
    { host: "mqtt.example.com" },
    "the MQTT broker {host} refuses user name or password; ",
  ],
  [
    "brokerUntrusted",
    "the MQTT broker mqtt.example.com is not trusted: self-signed; check `tls`, `ca` and the host's name",
    { host: "mqtt.example.com", cause: "self-signed" },
    "the MQTT broker {host} is not trusted: {why}; check ",
  ],
  [
    "brokerAway",
    "the MQTT broker mqtt.example.com can't be reached or went away: [Errno 111] Connection refused; it is tried again",
    { host: "mqtt.example.com", cause: "[Errno 111] Connection refused" },
    "the MQTT broker {host} can't be reached or went away: {error}; it is tried again",
  ],
];

describe("what went wrong with another server", () => {
  it.each(SAID)("is read as %s out of “%s”", (kind, sentence, named) => {
    expect(troubleOf(sentence)).toEqual({ kind, named });
    for (const words of [ja, en])
      expect([...words.kinds[kind].matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1]).sort()).toEqual(
        Object.keys(named).sort(),
      );
  });

  it("is said by the server in just these words", () => {
    const written = source("outgoing", "mail", "mqtt", "slack", "analyzer");
    for (const [, , , piece] of SAID) expect(written).toContain(piece);
    expect(new Set(SAID.map(([kind]) => kind))).toEqual(new Set(Object.keys(ja.kinds)));
  });

  it("of an analyzer is read behind its code", () => {
    const named = { host: "127.0.0.1:9", cause: "Connection refused" };
    expect(troubleOf("connection: POST /v1/analyze at 127.0.0.1:9: Connection refused")).toEqual({
      kind: "unreachable",
      named,
    });
    expect(troubleOf("bad_request: the picture is too small")).toBeNull();
  });

  it("stays as it is where it is nothing of that", () => {
    expect(troubleOf("the event or its picture is gone")).toBeNull();
    expect(troubleOf("")).toBeNull();
  });

  it.each([
    ["Connection refused", "refused"],
    ["[Errno 111] Connect call failed ('127.0.0.1', 9)", "refused"],
    ["[Errno 113] No route to host", "noRoute"],
    ["constructor", null],
    ["self-signed", null],
  ])("has the cause %s told as %s", (cause, kind) => {
    expect(causeOf(cause)).toBe(kind);
  });
});
