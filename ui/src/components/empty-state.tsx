import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

interface Props {
  Icon: LucideIcon;
  title: string;
  lead: string;
  children?: ReactNode; // the next step
  /** It stands for the whole page, so that its title is the page's. */
  page?: boolean;
}

export function EmptyState({ Icon, title, lead, children, page = false }: Props) {
  const Heading = page ? "h1" : "h2";
  return (
    <div className="mx-auto grid max-w-xl justify-items-center gap-3 rounded-xl border border-dashed px-6 py-14 text-center">
      <span className="grid size-14 place-items-center rounded-full bg-accent-soft text-accent">
        <Icon aria-hidden="true" className="size-7" />
      </span>
      <Heading className="font-semibold text-lg">{title}</Heading>
      <p className="text-balance text-quiet text-sm">{lead}</p>
      {children}
    </div>
  );
}

export function Command({ children }: { children: string }) {
  return (
    <pre className="max-w-full whitespace-pre-wrap break-words rounded-md border bg-raised px-4 py-2 text-left font-mono text-sm">
      <code>{children}</code>
    </pre>
  );
}
