import type { ComponentProps } from "react";
import { cn } from "./class-names";

/** The place of something that is on its way, in the size it will have. */
export function Skeleton({ className, ...rest }: ComponentProps<"div">) {
  return <div aria-hidden="true" className={cn("animate-pulse rounded-md bg-raised", className)} {...rest} />;
}
