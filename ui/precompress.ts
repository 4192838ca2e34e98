// Writes .br and .gz beside what compresses well, so that the server never compresses while it serves.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const COMPRESSIBLE = /\.(?:html|js|css|svg|json|webmanifest)$/;
// Below this a compressed copy saves less than its headers cost.
const SIZE_MIN_BYTES = 1024;

export function precompress(): Plugin {
  let folder = "";
  return {
    name: "precompress",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    closeBundle() {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        if (!entry.isFile() || !COMPRESSIBLE.test(entry.name)) continue;
        const content = readFileSync(path);
        if (content.length < SIZE_MIN_BYTES) continue;
        const brotli = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: content.length } };
        writeFileSync(`${path}.br`, brotliCompressSync(content, brotli));
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
      }
    },
  };
}
