import type { ComponentProps } from "react";
import { cn } from "./class-names";

export function Badge({ className, ...rest }: ComponentProps<"span">) {
  return (
    <span
      className={cn(
        "inline-flex items-center gap-1 whitespace-nowrap rounded-full border px-2 py-0.5 font-medium text-xs [&_svg]:size-3.5",
        className,
      )}
      {...rest}
    />
  );
}
