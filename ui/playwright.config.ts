import { defineConfig } from "@playwright/test";

// Started by tests/e2e/ui, which runs the server and says where it is.
export default defineConfig({
  testDir: "./e2e",
  outputDir: "./test-results",
  workers: 1,
  retries: 0,
  reporter: [["list"]],
  // Far above what any machine needs: reaching one means that it will never happen.
  timeout: 600_000,
  expect: { timeout: 60_000 },
  use: {
    baseURL: process.env.CAMSERVER_URL ?? "http://127.0.0.1:8080",
    actionTimeout: 30_000,
    // Tracing every step doubles the time. Where a picture does not tell enough: CAMSERVER_TRACE=on make e2e.
    screenshot: "only-on-failure",
    trace: process.env.CAMSERVER_TRACE ? "retain-on-failure" : "off",
    launchOptions: {
      executablePath: process.env.CAMSERVER_CHROMIUM ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
