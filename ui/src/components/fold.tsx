import type { LucideIcon } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Button } from "./ui/button";
import { cn } from "./ui/class-names";

interface Props {
  title: string;
  Icon: LucideIcon;
  /** From this width on there is room for it. */
  at: "lg" | "xl";
  /** It is in use: open from the beginning. */
  used?: boolean;
  children: ReactNode;
}

/** Open where there is room beside the list; a line to open it elsewhere. */
export function Fold({ title, Icon, at, used = false, children }: Props) {
  const [open, setOpen] = useState(used);
  return (
    <div>
      <Button
        variant="outline"
        className={cn("w-full justify-start", at === "lg" ? "lg:hidden" : "xl:hidden")}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon aria-hidden="true" />
        {title}
      </Button>
      <div className={cn(open ? "mt-3 block" : "hidden", at === "lg" ? "lg:mt-0 lg:block" : "xl:mt-0 xl:block")}>
        {children}
      </div>
    </div>
  );
}
