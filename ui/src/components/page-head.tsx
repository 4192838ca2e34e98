import { ArrowLeft } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router";

interface Props {
  title: ReactNode;
  lead?: string;
  back?: { to: string; text: string };
  /** Beside the title: badges. */
  beside?: ReactNode;
  /** At the end of the line: what can be done. */
  actions?: ReactNode;
}

export function PageHead({ title, lead, back, beside, actions }: Props) {
  return (
    <div className="mb-4 grid grid-cols-1 gap-1">
      {back && (
        <Link
          to={back.to}
          className="inline-flex items-center gap-1 justify-self-start rounded text-quiet text-sm hover:text-text"
        >
          <ArrowLeft aria-hidden="true" className="size-4" />
          {back.text}
        </Link>
      )}
      <div className="flex min-h-9 flex-wrap items-center gap-x-3 gap-y-2">
        <h1 className="min-w-0 font-semibold text-xl [overflow-wrap:anywhere]">{title}</h1>
        {beside}
        {actions && <div className="ml-auto flex flex-wrap gap-2">{actions}</div>}
      </div>
      {lead && <p className="max-w-3xl text-quiet text-sm">{lead}</p>}
    </div>
  );
}
