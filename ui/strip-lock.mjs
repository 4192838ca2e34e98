// Takes the addresses out of package-lock.json that npm puts there for people (whom to give money, where to read on).
// What is left names packages by version and hash only.

import { readFileSync, writeFileSync } from "node:fs";

const FILE = new URL("package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(FILE, "utf8"));
for (const entry of Object.values(lock.packages)) {
  delete entry.funding;
  delete entry.deprecated;
}
writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`);
