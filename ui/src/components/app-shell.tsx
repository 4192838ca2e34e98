import { Ellipsis, Keyboard, LogOut, Search, UserRound } from "lucide-react";
import { Suspense, useEffect, useLayoutEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, NavLink, Outlet, useLocation, useNavigate, useNavigationType } from "react-router";
import { useFeedState } from "@/api/live";
import { useSignOut } from "@/api/queries";
import type { Session } from "@/api/types";
import { commandKeys, Help } from "@/shell/help";
import { isComposing, useKeyboard, useShortcuts } from "@/shell/keyboard";
import { fetchAhead, later } from "@/shell/later";
import { Notices } from "@/shell/notices";
import { mayOpen, NAV, NAV_GROUPS, type NavEntry } from "@/shell/page-table";
import { BudgetMark } from "./budget-mark";
import { CrashGuard } from "./crash-notice";
import { LanguageSwitch } from "./language-switch";
import { Logo } from "./logo";
import { PushSwitch, usePushState } from "./push-switch";
import { ThemeSwitch } from "./theme-switch";
import { Button } from "./ui/button";
import { cn } from "./ui/class-names";
import { Dialog } from "./ui/dialog";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuLabel,
  DropdownMenuTrigger,
} from "./ui/dropdown-menu";
import { Skeleton } from "./ui/skeleton";

const Palette = later(() => import("@/shell/palette"), "Palette");

type Overlay = "palette" | "help" | "more" | null;

/** What is around every page of somebody who is signed in: navigation at the side, on telephones with tabs below. */
export function AppShell({ session }: { session: Session }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const [overlay, setOverlay] = useState<Overlay>(null);
  const close = () => setOverlay(null);
  const entries = NAV.filter((entry) => mayOpen(session, entry));
  useKeyboard();
  useTop();
  useEffect(fetchAhead, []);
  usePaletteKey(() => setOverlay("palette"));
  useShortcuts([
    { key: "?", name: t("help.title"), everywhere: true, run: () => setOverlay("help") },
    {
      key: "/",
      name: t("nav.search"),
      everywhere: true,
      run: () => void navigate("/search", { state: { wantsWords: true } }),
    },
  ]);
  return (
    <div className="flex min-h-dvh flex-col pb-[calc(4rem+env(safe-area-inset-bottom))] sm:pb-0">
      <a
        href="#content"
        className="-translate-y-20 fixed top-2 left-2 z-50 rounded-md bg-accent px-4 py-2 text-accent-text focus:translate-y-0"
      >
        {t("app.skip")}
      </a>
      <header className="sticky top-0 z-40 border-b bg-surface">
        <div className="flex h-14 items-center gap-2 px-3 sm:px-4">
          <Link to="/" aria-label="camserver" className="mr-2 rounded-md">
            <Logo />
          </Link>
          <PaletteButton onOpen={() => setOverlay("palette")} />
          <div className="ml-auto flex items-center gap-1 sm:gap-2">
            <BudgetMark />
            <FeedMark />
            <LanguageSwitch />
            <ThemeSwitch />
            <AccountMenu session={session} onHelp={() => setOverlay("help")} />
          </div>
        </div>
      </header>
      <div className="flex flex-1">
        <SideNav entries={entries} />
        <main
          id="content"
          tabIndex={-1}
          className="mx-auto w-full min-w-0 max-w-[112rem] flex-1 px-3 py-4 outline-none sm:px-5 sm:py-5"
        >
          <CrashGuard key={pathname}>
            <Suspense fallback={<PageSkeleton />}>
              <Outlet />
            </Suspense>
          </CrashGuard>
        </main>
      </div>
      <BottomTabs entries={entries} onMore={() => setOverlay("more")} />
      <Notices />
      <Help open={overlay === "help"} onClose={close} />
      <MoreSheet open={overlay === "more"} entries={entries} onClose={close} />
      {overlay === "palette" && (
        <CrashGuard>
          <Suspense fallback={null}>
            <Palette session={session} onClose={close} />
          </Suspense>
        </CrashGuard>
      )}
    </div>
  );
}

/** Another page begins at its top; the browser's own way back leads to where one was. */
function useTop(): void {
  const { pathname } = useLocation();
  const isBack = useNavigationType() === "POP";
  // Before the page's own effects, which may bring something into sight.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page, not another way to it
  useLayoutEffect(() => {
    if (!isBack) document.documentElement.scrollTop = 0;
  }, [pathname]);
}

/** ⌘K or Ctrl+K works everywhere, also while something is written. */
function usePaletteKey(open: () => void): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: it only sets a state
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isComposing(event) || event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      open();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}

function PaletteButton({ onOpen }: { onOpen: () => void }) {
  const { t } = useTranslation();
  return (
    <Button
      variant="outline"
      className="h-9 gap-2 px-2.5 text-quiet md:w-56 md:justify-start"
      aria-label={t("palette.title")}
      onClick={onOpen}
    >
      <Search aria-hidden="true" />
      <span className="hidden truncate font-normal md:inline">{t("palette.short")}</span>
      <kbd className="ml-auto hidden rounded border bg-raised px-1.5 font-mono text-xs md:inline">
        {commandKeys()}
      </kbd>
    </Button>
  );
}

const link = (isActive: boolean) =>
  isActive ? "bg-accent-soft text-text" : "text-quiet hover:bg-raised hover:text-text";

/** Words and icons where there is room, icons alone where there is little. */
function SideNav({ entries }: { entries: readonly NavEntry[] }) {
  const { t } = useTranslation();
  return (
    <nav
      aria-label={t("nav.label")}
      className="sticky top-14 hidden h-[calc(100dvh-3.5rem)] w-14 shrink-0 overflow-y-auto border-r bg-surface p-2 sm:block lg:w-52"
    >
      {NAV_GROUPS.map((group) => {
        const inside = entries.filter((entry) => entry.group === group);
        if (inside.length === 0) return null;
        return (
          <div key={group} className="mb-3 border-b pb-3 last:border-b-0 lg:mb-4 lg:border-b-0 lg:pb-0">
            <h2 className="sr-only px-3 pb-1 text-quiet text-xs lg:not-sr-only lg:px-3 lg:py-1">
              {t(`nav.group.${group}`)}
            </h2>
            <ul className="grid gap-0.5">
              {inside.map(({ name, to, Icon }) => (
                <li key={to}>
                  <NavLink
                    to={to}
                    end={to === "/"}
                    title={t(`nav.${name}`)}
                    className={({ isActive }) =>
                      cn(
                        "flex h-10 items-center gap-3 rounded-md font-medium text-sm max-lg:justify-center lg:h-9 lg:px-3 [&_svg]:size-5 lg:[&_svg]:size-4",
                        link(isActive),
                      )
                    }
                  >
                    <Icon aria-hidden="true" className="shrink-0" />
                    <span className="sr-only lg:not-sr-only">{t(`nav.${name}`)}</span>
                  </NavLink>
                </li>
              ))}
            </ul>
          </div>
        );
      })}
    </nav>
  );
}

function BottomTabs({ entries, onMore }: { entries: readonly NavEntry[]; onMore: () => void }) {
  const { t } = useTranslation();
  const item =
    "flex h-16 min-w-0 flex-1 flex-col items-center justify-center gap-1 rounded-md font-medium text-xs [&_svg]:size-5";
  return (
    <nav
      aria-label={t("nav.label")}
      className="fixed inset-x-0 bottom-0 z-40 border-t bg-surface pb-[env(safe-area-inset-bottom)] sm:hidden"
    >
      <ul className="flex gap-1 px-1">
        {entries
          .filter((entry) => entry.tab)
          .map(({ name, to, Icon }) => (
            <li key={to} className="flex min-w-0 flex-1">
              <NavLink to={to} end={to === "/"} className={({ isActive }) => cn(item, link(isActive))}>
                <Icon aria-hidden="true" />
                <span className="max-w-full truncate">{t(`nav.${name}`)}</span>
              </NavLink>
            </li>
          ))}
        <li className="flex min-w-0 flex-1">
          <button type="button" className={cn(item, link(false))} onClick={onMore}>
            <Ellipsis aria-hidden="true" />
            <span className="max-w-full truncate">{t("nav.more")}</span>
          </button>
        </li>
      </ul>
    </nav>
  );
}

/** Every page, for telephones. */
function MoreSheet({ open, entries, onClose }: { open: boolean; entries: readonly NavEntry[]; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Dialog open={open} onClose={onClose} title={t("nav.label")} className="mb-0 w-full max-w-full rounded-b-none">
      <ul className="grid grid-cols-3 gap-2 pb-[env(safe-area-inset-bottom)]">
        {entries.map(({ name, to, Icon }) => (
          <li key={to}>
            <NavLink
              to={to}
              end={to === "/"}
              onClick={onClose}
              className={({ isActive }) =>
                cn(
                  "grid h-20 place-content-center justify-items-center gap-1.5 rounded-lg border text-center font-medium text-xs",
                  link(isActive),
                )
              }
            >
              <Icon aria-hidden="true" className="size-5" />
              {t(`nav.${name}`)}
            </NavLink>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

/** Whether the page updates by itself at this moment. */
function FeedMark() {
  const { t } = useTranslation();
  const state = useFeedState();
  return (
    <output className="flex items-center gap-1.5 px-1 text-quiet text-xs" title={t(`feed.${state}`)}>
      <span
        aria-hidden="true"
        className={cn("size-2 rounded-full", state === "live" ? "bg-live" : "animate-pulse bg-severity-2")}
      />
      <span className="sr-only lg:not-sr-only">{t(`feed.${state}`)}</span>
    </output>
  );
}

function AccountMenu({ session, onHelp }: { session: Session; onHelp: () => void }) {
  const { t } = useTranslation();
  const signOut = useSignOut();
  usePushState(session.login);
  return (
    <DropdownMenu>
      <DropdownMenuTrigger asChild>
        <Button variant="ghost" size="icon" aria-label={t("account.menu", { name: session.display_name })}>
          <UserRound aria-hidden="true" />
        </Button>
      </DropdownMenuTrigger>
      <DropdownMenuContent>
        <DropdownMenuLabel>
          {session.display_name}
          <span className="block font-mono">{session.login}</span>
        </DropdownMenuLabel>
        <PushSwitch login={session.login} />
        <DropdownMenuItem onSelect={onHelp}>
          <Keyboard aria-hidden="true" />
          {t("help.title")}
        </DropdownMenuItem>
        <DropdownMenuItem onSelect={() => signOut.mutate()}>
          <LogOut aria-hidden="true" />
          {t("account.signOut")}
        </DropdownMenuItem>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}

function PageSkeleton() {
  return (
    <div aria-busy="true" className="grid gap-4">
      <Skeleton className="h-8 w-48" />
      <Skeleton className="h-64 w-full rounded-xl" />
    </div>
  );
}
