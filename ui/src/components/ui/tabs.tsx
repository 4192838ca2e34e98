import { type ReactNode, useEffect, useRef } from "react";
import { NavLink, useLocation, useSearchParams } from "react-router";
import { cn } from "./class-names";

const tab = (on: boolean) =>
  cn(
    "flex items-center gap-1.5 whitespace-nowrap rounded-md px-3 py-1.5 font-medium text-sm [&_svg]:size-4",
    on ? "bg-accent-soft text-text" : "text-quiet hover:bg-raised hover:text-text",
  );

/** Room for the outline of what has the focus, which scrolling would cut off. */
const row = "fades-beyond -mx-1 flex max-w-[calc(100%+0.5rem)] gap-1 overflow-x-auto p-1";

interface ChoicesProps {
  label: string;
  /** Where in the address the choice is kept; nothing there is the first one. */
  name: string;
  choices: readonly { value: string; text: ReactNode }[];
  /** Parts of the address that make no sense after a change. */
  forget?: readonly string[];
}

/** A choice that is kept in the address. */
export function ChoiceTabs({ label, name, choices, forget = [] }: ChoicesProps) {
  const [address, setAddress] = useSearchParams();
  const choose = (value: string) =>
    setAddress(
      (now) => {
        const next = new URLSearchParams(now);
        for (const one of forget) next.delete(one);
        if (value === choices[0]?.value) next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  return (
    <ChoiceRow label={label} choices={choices} chosen={address.get(name) ?? choices[0]?.value} onChoose={choose} />
  );
}

interface RowProps {
  label: string;
  choices: readonly { value: string; text: ReactNode }[];
  chosen: string | undefined;
  onChoose: (value: string) => void;
}

/** On a telephone the one that is chosen may be beyond the edge. */
function useInSight<Row extends HTMLElement>(selector: string, chosen: string | undefined) {
  const ref = useRef<Row>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another one was chosen
  useEffect(() => {
    // Not scrollIntoView: it also moves the place from which the Tab key goes on.
    const show = () => {
      const box = ref.current?.getBoundingClientRect();
      const one = ref.current?.querySelector(selector)?.getBoundingClientRect();
      if (!ref.current || !box || !one) return;
      if (one.left < box.left) ref.current.scrollLeft -= box.left - one.left;
      else if (one.right > box.right) ref.current.scrollLeft += one.right - box.right;
    };
    show();
    window.addEventListener("resize", show);
    return () => window.removeEventListener("resize", show);
  }, [selector, chosen]);
  return ref;
}

/** A choice among a few, all of them in sight. */
export function ChoiceRow({ label, choices, chosen, onChoose }: RowProps) {
  const ref = useInSight<HTMLDivElement>('[aria-pressed="true"]', chosen);
  return (
    <fieldset className="min-w-0">
      <legend className="sr-only">{label}</legend>
      <div ref={ref} className={row}>
        {choices.map(({ value, text }) => (
          <button
            key={value}
            type="button"
            aria-pressed={value === chosen}
            className={tab(value === chosen)}
            onClick={() => onChoose(value)}
          >
            {text}
          </button>
        ))}
      </div>
    </fieldset>
  );
}

/** Parts of a page that have addresses of their own. */
export function LinkTabs({ label, links }: { label: string; links: readonly { to: string; text: ReactNode }[] }) {
  const { pathname } = useLocation();
  const ref = useInSight<HTMLUListElement>('[aria-current="page"]', pathname);
  return (
    <nav aria-label={label}>
      <ul ref={ref} className={row}>
        {links.map(({ to, text }) => (
          <li key={to}>
            <NavLink to={to} end className={({ isActive }) => tab(isActive)}>
              {text}
            </NavLink>
          </li>
        ))}
      </ul>
    </nav>
  );
}
