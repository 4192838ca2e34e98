import { type ChangeEvent, type CompositionEvent, useEffect, useRef, useState } from "react";
import { useAddress } from "./use-address";

/**
 * A text field that is kept in the address. What is written stands in the field at once and goes into the address
 * when a word is whole: an address that answered late would take letters back, and break a word that an IME composes.
 */
export function useWritten(name: string) {
  const { address, patch } = useAddress();
  const kept = address.get(name) ?? "";
  const [value, setValue] = useState(kept);
  const ref = useRef<HTMLInputElement>(null);
  // Changed from elsewhere: cleared, or gone back to.
  useEffect(() => {
    if (document.activeElement !== ref.current) setValue(kept);
  }, [kept]);
  return {
    ref,
    value,
    onChange: (event: ChangeEvent<HTMLInputElement>) => {
      setValue(event.target.value);
      const { isComposing } = event.nativeEvent as InputEvent;
      if (!isComposing) patch({ [name]: event.target.value });
    },
    onCompositionEnd: (event: CompositionEvent<HTMLInputElement>) => patch({ [name]: event.currentTarget.value }),
  };
}
