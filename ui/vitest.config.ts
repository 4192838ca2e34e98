import { fileURLToPath } from "node:url";
import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vite.config";

export default mergeConfig(
  base,
  defineConfig({
    test: {
      environment: "jsdom",
      setupFiles: ["./src/test-setup.ts"],
      include: ["src/**/*.test.{ts,tsx}"],
      // Thousands of icons, each a file of its own, would be read for every file of tests; here they are one file.
      alias: {
        "lucide-react": fileURLToPath(
          new URL("./node_modules/lucide-react/dist/cjs/lucide-react.js", import.meta.url),
        ),
      },
      // Files share what they import, which is most of what a file of tests costs; mocks, globals and what a browser
      // remembers are put back after each test.
      pool: "threads",
      isolate: false,
      restoreMocks: true,
      unstubGlobals: true,
      // A busy machine is no reason to fail; what hangs ends by this.
      testTimeout: 120_000,
      hookTimeout: 120_000,
    },
  }),
);
