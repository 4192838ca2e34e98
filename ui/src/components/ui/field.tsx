import { type ComponentProps, useEffect, useId, useRef, useState } from "react";
import { cn } from "./class-names";

const control =
  "h-10 w-full min-w-0 rounded-md border bg-ground px-3 text-base text-text placeholder:text-quiet disabled:opacity-60 sm:text-sm [search_&]:h-9";
/** In a form it leads its field; among the filters of a list it steps back. */
const labelled = "font-medium text-sm [search_&]:font-normal [search_&]:text-quiet [search_&]:text-xs";

type InputProps = ComponentProps<"input"> & { label: string; hint?: string };

/** An input with its label and, below it, what may be put in. */
export function Field({ label, hint, className, ...rest }: InputProps) {
  const id = useId();
  return (
    <div className="grid gap-1.5 [search_&]:gap-1">
      <label htmlFor={id} className={labelled}>
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
    <div className="grid min-w-0 gap-1.5 [search_&]:gap-1">
      <label htmlFor={id} className={labelled}>
        {label}
      </label>
      <select id={id} className={cn(control, "pr-8", className)} {...rest}>
        {children}
      </select>
    </div>
  );
}

/** Somebody who types a year has one of a few digits on the way. */
const isWhole = (day: string) => day === "" || day >= "1000";

type DateInputProps = ComponentProps<"input"> & { value: string };

/** A day; the browser's own picker. A day that is half written is nobody's business but the field's. */
export function DateInput({ value, onChange, ...rest }: DateInputProps) {
  const ref = useRef<HTMLInputElement>(null);
  const [written, setWritten] = useState(value);
  // Changed from elsewhere: cleared, or gone back to.
  useEffect(() => {
    if (document.activeElement !== ref.current) setWritten(value);
  }, [value]);
  return (
    <input
      ref={ref}
      type="date"
      value={written}
      onChange={(event) => {
        setWritten(event.target.value);
        if (isWhole(event.target.value)) onChange?.(event);
      }}
      {...rest}
    />
  );
}

/** The same with its label. */
export function DateField({ label, className, ...rest }: DateInputProps & { label: string }) {
  const id = useId();
  return (
    <div className="grid min-w-0 gap-1.5 [search_&]:gap-1">
      <label htmlFor={id} className={labelled}>
        {label}
      </label>
      <DateInput id={id} className={cn(control, className)} {...rest} />
    </div>
  );
}

/** Several lines of text. */
export function TextField({
  label,
  hint,
  className,
  ...rest
}: ComponentProps<"textarea"> & { label: string; hint?: string }) {
  const id = useId();
  return (
    <div className="grid gap-1.5 [search_&]:gap-1">
      <label htmlFor={id} className={labelled}>
        {label}
      </label>
      <textarea
        id={id}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className={cn(control, "h-auto min-h-20 py-2", className)}
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

/** A tick with its label. */
export function CheckField({ label, hint, ...rest }: ComponentProps<"input"> & { label: string; hint?: string }) {
  const id = useId();
  return (
    <div className="flex items-start gap-2">
      <input
        id={id}
        type="checkbox"
        aria-describedby={hint ? `${id}-hint` : undefined}
        className="mt-0.5 size-4 shrink-0 accent-accent"
        {...rest}
      />
      <div className="grid gap-0.5">
        <label htmlFor={id} className="cursor-pointer text-sm">
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-quiet text-xs">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}
