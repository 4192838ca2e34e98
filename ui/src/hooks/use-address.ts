import { useCallback } from "react";
import { useSearchParams } from "react-router";

export type AddressPatch = Record<string, string | readonly string[] | null>;

/** The page's choices, which live in its address: they can be kept, sent and gone back to. */
export function useAddress() {
  const [address, setAddress] = useSearchParams();
  /** Changes some of them; null and nothing take one away. */
  const patch = useCallback(
    (changes: AddressPatch) =>
      setAddress(
        (now) => {
          const next = new URLSearchParams(now);
          for (const [name, value] of Object.entries(changes)) {
            next.delete(name);
            for (const one of typeof value === "string" ? [value] : (value ?? [])) if (one) next.append(name, one);
          }
          return next;
        },
        { replace: true },
      ),
    [setAddress],
  );
  const clear = useCallback(() => setAddress({}, { replace: true }), [setAddress]);
  return { address, patch, clear };
}
