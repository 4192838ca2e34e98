// What people call the browser and the machine behind a user agent. The whole of it is kept beside, for who needs it.

/** The first that fits: a browser says the names of those it is like, too. */
const BROWSERS: readonly [RegExp, string][] = [
  [/Edg(?:e|A|iOS)?\//, "Edge"],
  [/OPR\/|Opera/, "Opera"],
  [/SamsungBrowser\//, "Samsung Internet"],
  [/Firefox\/|FxiOS\//, "Firefox"],
  [/Chrome\/|CriOS\/|Chromium\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const MACHINES: readonly [RegExp, string][] = [
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Android/, "Android"],
  [/CrOS/, "ChromeOS"],
  [/Windows/, "Windows"],
  [/Mac OS X|Macintosh/, "macOS"],
  [/Linux|X11/, "Linux"],
];

const firstOf = (known: readonly [RegExp, string][], agent: string) => known.find(([fits]) => fits.test(agent))?.[1];

/** For example "Chrome · Windows"; of a program the name it gives itself. */
export function browserName(agent: string): string {
  const browser = firstOf(BROWSERS, agent);
  if (!browser) return agent.split(/[\s/]/, 1)[0] ?? "";
  const machine = firstOf(MACHINES, agent);
  return machine ? `${browser} · ${machine}` : browser;
}
