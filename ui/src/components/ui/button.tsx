import { cva, type VariantProps } from "class-variance-authority";
import { Slot } from "radix-ui";
import type { ComponentProps, MouseEvent } from "react";
import { cn } from "./class-names";

export const buttonVariants = cva(
  "inline-flex shrink-0 items-center justify-center gap-2 whitespace-nowrap rounded-md font-medium text-sm transition-colors disabled:opacity-60 [&_svg]:size-4 [&_svg]:shrink-0",
  {
    variants: {
      variant: {
        primary: "bg-accent text-accent-text hover:bg-accent/90",
        outline: "border bg-surface text-text hover:bg-raised",
        ghost: "text-text hover:bg-raised",
        danger: "border border-severity-3/50 bg-severity-3/10 text-severity-3 hover:bg-severity-3/20",
      },
      size: { normal: "h-10 px-4", small: "h-8 px-3", icon: "size-10" },
    },
    defaultVariants: { variant: "primary", size: "normal" },
  },
);

type Props = ComponentProps<"button"> & VariantProps<typeof buttonVariants> & { asChild?: boolean };

/** The second click of a double click sends nothing: it may come before the page knows that the first one is under way. */
function sendOnce(event: MouseEvent): void {
  if (event.detail > 1) event.preventDefault();
}

export function Button({ className, variant, size, asChild = false, ...rest }: Props) {
  const Element = asChild ? Slot.Root : "button";
  const type = asChild ? {} : { type: "button" as const };
  // An icon alone says what it does to who points at it, too.
  const hint = size === "icon" && !asChild ? { title: rest["aria-label"] } : {};
  const sending = rest.type === "submit" ? { onClick: sendOnce } : {};
  return (
    <Element
      {...type}
      {...hint}
      {...sending}
      className={cn(buttonVariants({ variant, size }), className)}
      {...rest}
    />
  );
}
