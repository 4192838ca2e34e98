import { Switch as Radix } from "radix-ui";
import { type ComponentProps, useId } from "react";

export function Switch({ label, ...rest }: ComponentProps<typeof Radix.Root> & { label: string }) {
  const id = useId();
  return (
    <div className="flex items-center gap-2">
      <Radix.Root
        id={id}
        className="inline-flex h-5 w-9 shrink-0 items-center rounded-full bg-quiet/50 p-0.5 transition-colors data-[state=checked]:bg-accent"
        {...rest}
      >
        <Radix.Thumb className="block size-4 rounded-full bg-white shadow transition-transform data-[state=checked]:translate-x-4" />
      </Radix.Root>
      <label htmlFor={id} className="cursor-pointer text-sm">
        {label}
      </label>
    </div>
  );
}
