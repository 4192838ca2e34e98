import { DropdownMenu as Radix } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "./class-names";

/** Not modal: a modal one writes styles into the page, which the server's content policy refuses. */
export const DropdownMenu = (props: ComponentProps<typeof Radix.Root>) => <Radix.Root modal={false} {...props} />;
export const DropdownMenuTrigger = Radix.Trigger;

export function DropdownMenuContent({ className, ...rest }: ComponentProps<typeof Radix.Content>) {
  return (
    <Radix.Portal>
      <Radix.Content
        align="end"
        sideOffset={6}
        className={cn("z-50 min-w-44 rounded-lg border bg-surface p-1 text-text shadow-lg", className)}
        {...rest}
      />
    </Radix.Portal>
  );
}

export function DropdownMenuItem({ className, ...rest }: ComponentProps<typeof Radix.Item>) {
  return (
    <Radix.Item
      className={cn(
        "flex cursor-pointer select-none items-center gap-2 rounded-md px-3 py-2 text-sm outline-none data-[highlighted]:bg-raised [&_svg]:size-4",
        className,
      )}
      {...rest}
    />
  );
}

export function DropdownMenuCheckboxItem({
  className,
  children,
  ...rest
}: ComponentProps<typeof Radix.CheckboxItem>) {
  return (
    <Radix.CheckboxItem
      className={cn(
        "flex cursor-pointer select-none items-center gap-2 rounded-md px-3 py-2 text-sm outline-none data-[disabled]:cursor-default data-[disabled]:text-quiet data-[highlighted]:bg-raised [&_svg]:size-4",
        className,
      )}
      {...rest}
    >
      {children}
      <span
        aria-hidden="true"
        className={cn(
          "ml-auto inline-flex h-5 w-9 shrink-0 items-center rounded-full p-0.5 transition-colors",
          rest.checked ? "justify-end bg-accent" : "bg-quiet/50",
        )}
      >
        <span className="block size-4 rounded-full bg-white shadow" />
      </span>
    </Radix.CheckboxItem>
  );
}

export function DropdownMenuLabel({ className, ...rest }: ComponentProps<typeof Radix.Label>) {
  return <Radix.Label className={cn("px-3 py-2 text-quiet text-xs", className)} {...rest} />;
}
