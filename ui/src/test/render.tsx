import { QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { vi } from "vitest";
import { AppRoutes, makeQueryClient } from "@/app";
import i18next from "@/i18n";

/** A socket that never says anything. */
class QuietSocket {
  onopen: unknown = null;
  onmessage: unknown = null;
  onclose: unknown = null;
  close(): void {}
}

class NeverSeen {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}

/** The whole UI at an address, in English. Pictures count as loaded. */
export async function renderAt(path: string, Socket: unknown = QuietSocket) {
  vi.stubGlobal("WebSocket", Socket);
  vi.stubGlobal("IntersectionObserver", NeverSeen);
  vi.stubGlobal(
    "Image",
    class {
      onload: (() => void) | null = null;
      set src(_: string) {
        queueMicrotask(() => this.onload?.());
      }
    },
  );
  await i18next.changeLanguage("en");
  const client = makeQueryClient();
  client.setDefaultOptions({ queries: { ...client.getDefaultOptions().queries, retry: false } });
  const shown = render(
    <QueryClientProvider client={client}>
      <MemoryRouter initialEntries={[path]}>
        <AppRoutes />
      </MemoryRouter>
    </QueryClientProvider>,
  );
  return { ...shown, client };
}
