// What a receiver of each kind is asked for in its form. The server holds the rules; this is what people fill in.

import type { ReceiverKind } from "@/api/types";

export interface ReceiverField {
  name: string;
  secret?: boolean;
  type: "text" | "number" | "switch" | "list" | "long" | "choice";
  required?: boolean;
  choices?: readonly string[]; // the first is what it is where nobody said
  on?: boolean; // of a switch: what it is where nobody said
}

const text = (name: string, more: Partial<ReceiverField> = {}): ReceiverField => ({ name, type: "text", ...more });
const turn = (name: string, on = false): ReceiverField => ({ name, type: "switch", on });
const secret = (name: string, more: Partial<ReceiverField> = {}) => text(name, { secret: true, ...more });
const TELLING = [turn("summaries"), turn("signed_link")];

export const RECEIVER_FIELDS: Record<ReceiverKind, readonly ReceiverField[]> = {
  webhook: [secret("url", { required: true }), secret("signing_key"), turn("picture", true), ...TELLING],
  slack: [secret("webhook_url"), secret("bot_token"), text("channel"), turn("picture", true), ...TELLING],
  email: [
    text("host", { required: true }),
    text("port", { type: "number" }),
    text("security", { type: "choice", choices: ["starttls", "tls", "plain"] }),
    text("ca", { type: "long" }),
    text("username"),
    secret("password"),
    text("sender", { required: true }),
    text("to", { type: "list", required: true }),
    turn("picture", true),
    ...TELLING,
  ],
  mqtt: [
    text("host", { required: true }),
    text("port", { type: "number" }),
    turn("tls"),
    text("ca", { type: "long" }),
    text("username"),
    secret("password"),
    text("prefix"),
    ...TELLING,
  ],
  push: TELLING,
  folder: [text("path", { required: true })],
  s3: [
    text("bucket", { required: true }),
    text("endpoint"),
    text("region"),
    text("prefix"),
    text("access_key_id", { required: true }),
    secret("secret_access_key", { required: true }),
  ],
  drive: [text("folder_id", { required: true }), secret("credentials", { required: true, type: "long" })],
};

export const RECEIVER_KINDS = Object.keys(RECEIVER_FIELDS) as ReceiverKind[];

type Value = string | number | boolean | string[];

/** What was filled in, as it is sent: what is empty is left out, so that the server's own default holds. */
export function receiverValues(kind: ReceiverKind, sent: Record<string, string>) {
  const config: Record<string, Value> = {};
  const secrets: Record<string, Value> = {};
  for (const { name, type, secret: isSecret } of RECEIVER_FIELDS[kind]) {
    const written = sent[name]?.trim() ?? "";
    const into = isSecret ? secrets : config;
    if (type === "switch") into[name] = written === "on";
    else if (written && type === "number") into[name] = Number(written);
    else if (written && type === "list") into[name] = written.split(/[\s,;]+/).filter(Boolean);
    else if (written) into[name] = written;
  }
  return { config, secrets };
}

/** What a receiver keeps of its configuration when its form is sent: what the form does not ask for. */
export function keptConfig(kind: ReceiverKind, config: Record<string, unknown>): Record<string, unknown> {
  const asked = new Set(RECEIVER_FIELDS[kind].map(({ name }) => name));
  return Object.fromEntries(Object.entries(config).filter(([name]) => !asked.has(name)));
}
