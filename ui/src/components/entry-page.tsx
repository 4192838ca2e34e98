import type { FormEvent, ReactNode } from "react";
import { LanguageSwitch } from "./language-switch";
import { Logo } from "./logo";
import { ThemeSwitch } from "./theme-switch";
import { Card } from "./ui/card";

interface Props {
  title: string;
  lead: string;
  children?: ReactNode;
  footer?: ReactNode;
}

/** The frame of the pages before somebody is signed in. */
export function EntryPage({ title, lead, children, footer }: Props) {
  return (
    <div className="flex min-h-dvh flex-col">
      <header className="flex h-14 items-center justify-between px-4">
        <Logo />
        <div className="flex items-center gap-1">
          <LanguageSwitch />
          <ThemeSwitch />
        </div>
      </header>
      <main className="grid flex-1 place-items-center p-4 pb-24">
        <div className="grid w-full max-w-sm gap-4">
          <Card className="grid gap-5 p-6">
            <div className="grid gap-1">
              <h1 className="font-semibold text-xl">{title}</h1>
              <p className="text-quiet text-sm">{lead}</p>
            </div>
            {children}
          </Card>
          {footer && <div className="px-2 text-center text-quiet text-sm">{footer}</div>}
        </div>
      </main>
    </div>
  );
}

/** The values of a form that was sent. */
export function sentValues(event: FormEvent<HTMLFormElement>): Record<string, string> {
  event.preventDefault();
  const values = new FormData(event.currentTarget);
  return Object.fromEntries([...values].map(([name, value]) => [name, String(value)]));
}

export function FormProblem({ text }: { text: string }) {
  return (
    <p
      role="alert"
      className="rounded-md border border-severity-3/40 bg-severity-3/10 px-3 py-2 text-severity-3 text-sm"
    >
      {text}
    </p>
  );
}
