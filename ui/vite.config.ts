import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { precompress } from "./precompress";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
// Where `npm run dev` finds the server. It is not part of what is built.
const SERVER = process.env.CAMSERVER_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react(), tailwindcss(), precompress()],
  resolve: { alias: { "@": here("./src") } },
  build: {
    // tools/ui_build.py names a folder of its own and moves it into place when the build is complete.
    outDir: process.env.CAMSERVER_UI_OUT ?? here("../src/camserver/services/web/ui_dist"),
    emptyOutDir: true,
    // The server's policy allows pictures from itself only, not from data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
  },
  server: { proxy: { "/api": { target: SERVER, ws: true }, "/media": SERVER } },
});
