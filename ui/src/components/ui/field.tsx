import { type ComponentProps, useId } from "react";
import { cn } from "./class-names";

const control =
  "h-10 w-full min-w-0 rounded-md border bg-ground px-3 text-base text-text placeholder:text-quiet disabled:opacity-60 sm:text-sm";

type InputProps = ComponentProps<"input"> & { label: string; hint?: string };

/** An input with its label and, below it, what may be put in. */
export function Field({ label, hint, className, ...rest }: InputProps) {
  const id = useId();
  return (
    <div className="grid gap-1.5">
      <label htmlFor={id} className="font-medium text-sm">
        {label}
      </label>
      <input
        id={id}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className={cn(control, className)}
        {...rest}
      />
      {hint && (
        <p id={`${id}-hint`} className="text-quiet text-xs">
          {hint}
        </p>
      )}
    </div>
  );
}

type SelectProps = ComponentProps<"select"> & { label: string };

/** The browser's own select: it is the best one on a telephone, and it needs no styles written into the page. */
export function SelectField({ label, className, children, ...rest }: SelectProps) {
  const id = useId();
  return (
    <div className="grid min-w-0 gap-1">
      <label htmlFor={id} className="text-quiet text-xs">
        {label}
      </label>
      <select id={id} className={cn(control, "h-9 pr-8", className)} {...rest}>
        {children}
      </select>
    </div>
  );
}

/** A day; the browser's own picker. */
export function DateField({ label, className, ...rest }: ComponentProps<"input"> & { label: string }) {
  const id = useId();
  return (
    <div className="grid min-w-0 gap-1">
      <label htmlFor={id} className="text-quiet text-xs">
        {label}
      </label>
      <input id={id} type="date" className={cn(control, "h-9", className)} {...rest} />
    </div>
  );
}
