// Which page an address shows, and who gets to see it.

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { BrowserRouter, Navigate, Route, Routes, useLocation } from "react-router";
import { LiveUpdates } from "./api/live";
import { asProblem } from "./api/problem";
import { keys, useSession } from "./api/queries";
import type { Session } from "./api/types";
import { AppShell } from "./components/app-shell";
import { CrashGuard } from "./components/crash-notice";
import { ProblemNotice } from "./components/problem-notice";
import { followAccount } from "./i18n";
import { LiveHost } from "./live/live-host";
import { NotFoundPage } from "./pages/not-found";
import { PasswordPage } from "./pages/password";
import { SetUpPage } from "./pages/setup";
import { SignInPage } from "./pages/sign-in";
import { ROUTES } from "./shell/page-table";

const RETRIES_MAX = 2;

export function makeQueryClient(): QueryClient {
  const client = new QueryClient({
    defaultOptions: {
      queries: {
        // The browser's idea of being online is about the internet; the server is often in the same house.
        networkMode: "always",
        staleTime: 5000,
        retry: (failures, error) => failures < RETRIES_MAX && asProblem(error).passes,
      },
      mutations: { networkMode: "always" },
    },
  });
  let known: string | null = null;
  client.getQueryCache().subscribe(({ type, query }) => {
    if (type !== "updated") return;
    // A session that ended is noticed by whichever question meets it first.
    const ended = query.state.status === "error" && asProblem(query.state.error).status === 401;
    if (ended && client.getQueryData(keys.session)) client.setQueryData(keys.session, null);
    // However it ended, nothing of one person's stays for the next one at the same browser.
    const login = client.getQueryData<Session | null>(keys.session)?.login ?? null;
    if (known !== null && login !== known) {
      client.removeQueries({ predicate: (one) => one.queryKey[0] !== keys.session[0] });
    }
    known = login;
  });
  return client;
}

export function App({ client }: { client: QueryClient }) {
  return (
    <CrashGuard>
      <QueryClientProvider client={client}>
        <BrowserRouter>
          <AppRoutes />
        </BrowserRouter>
      </QueryClientProvider>
    </CrashGuard>
  );
}

export function AppRoutes() {
  return (
    <Routes>
      <Route path="/setup" element={<SetUpPage />} />
      <Route path="/password" element={<PasswordPage />} />
      <Route path="/sign-in" element={<SignInPage />} />
      <Route element={<SignedIn />}>
        {ROUTES.map(({ path, Page }) => (
          <Route key={path} path={path} element={<Page />} />
        ))}
        <Route path="*" element={<NotFoundPage />} />
      </Route>
    </Routes>
  );
}

function SignedIn() {
  const { data: session, error, isPending, refetch } = useSession();
  const { pathname, search } = useLocation();
  const language = session?.language;
  useEffect(() => {
    if (language) followAccount(language);
  }, [language]);
  if (isPending) return <div aria-busy="true" className="min-h-dvh" />;
  if (session) {
    return (
      // Another person's pages begin anew.
      <LiveUpdates key={session.login}>
        <AppShell session={session} />
        <LiveHost />
      </LiveUpdates>
    );
  }
  if (error) {
    return (
      <main className="grid min-h-dvh place-items-center p-4">
        <ProblemNotice error={error} onRetry={() => void refetch()} />
      </main>
    );
  }
  const here = pathname + search;
  return <Navigate to={here === "/" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(here)}`} replace />;
}
