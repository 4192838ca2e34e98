import { Bell, LayoutGrid, LogOut, UserRound } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Link, NavLink, Outlet } from "react-router";
import { useFeedState } from "@/api/live";
import { useSignOut } from "@/api/queries";
import type { Session } from "@/api/types";
import { LanguageSwitch } from "./language-switch";
import { Logo } from "./logo";
import { PushSwitch, usePushState } from "./push-switch";
import { ThemeSwitch } from "./theme-switch";
import { Button } from "./ui/button";
import { cn } from "./ui/class-names";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuLabel,
  DropdownMenuTrigger,
} from "./ui/dropdown-menu";

const PAGES = [
  { to: "/", name: "nav.wall", Icon: LayoutGrid, end: true },
  { to: "/events", name: "nav.events", Icon: Bell, end: false },
] as const;

/** What is around every page of somebody who is signed in: a bar above, on telephones with tabs below. */
export function AppShell({ session }: { session: Session }) {
  const { t } = useTranslation();
  return (
    <div className="flex min-h-dvh flex-col pb-16 sm:pb-0">
      <a
        href="#content"
        className="-translate-y-20 fixed top-2 left-2 z-50 rounded-md bg-accent px-4 py-2 text-accent-text focus:translate-y-0"
      >
        {t("app.skip")}
      </a>
      <header className="sticky top-0 z-40 border-b bg-surface">
        <div className="mx-auto flex h-14 max-w-[120rem] items-center gap-2 px-3 sm:px-5">
          <Link to="/" aria-label="camserver" className="mr-2 rounded-md">
            <Logo />
          </Link>
          <Tabs className="hidden sm:block" item="h-9 flex-row px-3 text-sm" />
          <div className="ml-auto flex items-center gap-1 sm:gap-2">
            <FeedMark />
            <LanguageSwitch />
            <ThemeSwitch />
            <AccountMenu session={session} />
          </div>
        </div>
      </header>
      <main
        id="content"
        tabIndex={-1}
        className="mx-auto w-full max-w-[120rem] flex-1 px-3 py-4 outline-none sm:px-5 sm:py-6"
      >
        <Outlet />
      </main>
      <Tabs
        className="fixed inset-x-0 bottom-0 z-40 border-t bg-surface pb-[env(safe-area-inset-bottom)] sm:hidden"
        item="h-16 flex-1 flex-col text-xs"
      />
    </div>
  );
}

function Tabs({ className, item }: { className: string; item: string }) {
  const { t } = useTranslation();
  return (
    <nav aria-label={t("nav.label")} className={className}>
      <ul className="flex gap-1">
        {PAGES.map(({ to, name, Icon, end }) => (
          <li key={to} className="flex flex-1">
            <NavLink
              to={to}
              end={end}
              className={({ isActive }) =>
                cn(
                  "flex items-center justify-center gap-1.5 rounded-md font-medium [&_svg]:size-4",
                  isActive ? "bg-accent-soft text-text" : "text-quiet hover:text-text",
                  item,
                )
              }
            >
              <Icon aria-hidden="true" />
              {t(name)}
            </NavLink>
          </li>
        ))}
      </ul>
    </nav>
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

function AccountMenu({ session }: { session: Session }) {
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
        <DropdownMenuItem onSelect={() => signOut.mutate()}>
          <LogOut aria-hidden="true" />
          {t("account.signOut")}
        </DropdownMenuItem>
      </DropdownMenuContent>
    </DropdownMenu>
  );
}
