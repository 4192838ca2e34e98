// What went wrong with somebody else's server, read out of the server's sentence about it: the sentence is kept with
// what failed, in English, and is read by people of both languages.

export interface Trouble {
  kind: TroubleKind;
  /** What the sentence names, by the names that the words of the kind have for it. */
  named: Readonly<Record<string, string>>;
}

// The first that fits counts.
const SENTENCES = [
  ["unreachable", /^(?:the mail server )?(?<host>\S+) can't be reached: (?<cause>.+)$/s],
  ["noConnection", /^(?:[A-Z]+ \S+ at )?(?<host>\S+): no connection within (?<seconds>[\d.]+) s$/],
  ["unreachable", /^[A-Z]+ \/\S* at (?<host>\S+): (?<cause>.+)$/s],
  ["noAnalyzerAnswer", /^[A-Z]+ \/\S* got no answer within (?<seconds>[\d.]+) s$/],
  ["noAnswer", /^(?<host>\S+) gave no answer within (?<seconds>[\d.]+) s$/],
  ["untrusted", /^(?<host>\S+): its certificate is not trusted: (?<cause>.+)$/s],
  ["redirect", /^(?<who>.+?) answered (?<status>3\d\d), a redirect, /],
  ["analyzerAnswered", /^the analyzer answered (?<status>\d{3}): (?<said>.*)$/s],
  ["answeredBare", /^(?<who>.+?) answered (?<status>\d{3})$/],
  ["answered", /^(?<who>.+?) answered (?<status>\d{3}): (?<said>.+)$/s],
  ["slackRefused", /^Slack \((?<method>[\w.]+)\) refused: (?<said>.+)$/s],
  ["recipientsRefused", /^the mail server (?<host>\S+) refuses every recipient: (?<said>.+)$/s],
  ["brokerLogin", /^the MQTT broker (?<host>\S+) refuses user name or password; /],
  ["brokerUntrusted", /^the MQTT broker (?<host>\S+) is not trusted: (?<cause>.+); check /s],
  ["brokerAway", /^the MQTT broker (?<host>\S+) can't be reached or went away: (?<cause>.+); it is tried again$/s],
] as const satisfies readonly (readonly [string, RegExp])[];

export type TroubleKind = (typeof SENTENCES)[number][0];

/** Why a connection fails, as operating systems say it. */
const CAUSES = {
  "Connection refused": "refused",
  "Connection reset by peer": "reset",
  "Connection timed out": "timedOut",
  "No route to host": "noRoute",
  "Network is unreachable": "noRoute",
  "Name or service not known": "noName",
  "No address associated with hostname": "noName",
  "Temporary failure in name resolution": "noNameNow",
  "ServerDisconnectedError: Server disconnected": "hungUp",
} as const;

export type CauseKind = (typeof CAUSES)[keyof typeof CAUSES];

/** Null for a sentence that is none of these. Of an analyzer's troubles the sentence comes behind their code. */
export function troubleOf(sentence: string): Trouble | null {
  return sentenceOf(sentence) ?? sentenceOf(sentence.replace(/^[a-z_]+: /, ""));
}

function sentenceOf(sentence: string): Trouble | null {
  for (const [kind, pattern] of SENTENCES) {
    const found = pattern.exec(sentence);
    if (found) return { kind, named: { ...found.groups } };
  }
  return null;
}

/** Null for a cause that has no words of its own. Some come with a number before them: `[Errno 111] Connect call failed`. */
export function causeOf(cause: string): CauseKind | null {
  if (/^\[Errno 111\]/.test(cause)) return "refused";
  const plain = cause.replace(/^\[Errno -?\d+\] /, "");
  return Object.hasOwn(CAUSES, plain) ? CAUSES[plain as keyof typeof CAUSES] : null;
}
