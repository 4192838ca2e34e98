import { Children, type ComponentProps, createContext, type ReactNode, useContext, useMemo } from "react";
import { cn } from "./class-names";

interface Columns {
  headings: readonly string[];
  /** Cards on a telephone. */
  cards: boolean;
}

const HEADING = "px-3 py-2 font-medium max-sm:px-2";
const Columns = createContext<Columns>({ headings: [], cards: true });

/** What stands where there is nothing to say. A card on a telephone leaves it out, with its heading. */
const NOTHING = "–";
const saysNothing = (children: ReactNode) => {
  const said = Children.toArray(children);
  return said.length === 1 && said[0] === NOTHING;
};

interface Props {
  label: string;
  headings: readonly string[];
  busy?: boolean;
  /** A few short columns, which a telephone has room for: it stays a table there. */
  narrow?: boolean;
  children: ReactNode;
}

/** A table that becomes a list of cards on a telephone, each value with its heading beside it. */
export function Table({ label, headings, busy = false, narrow = false, children }: Props) {
  const cards = !narrow;
  const columns = useMemo(() => ({ headings, cards }), [headings, cards]);
  return (
    <Columns value={columns}>
      <div
        className={cn(
          // A window may be too narrow for a row; what is at its end stays within reach.
          "overflow-x-auto rounded-xl border bg-surface",
          cards && "max-sm:overflow-visible max-sm:border-0 max-sm:bg-transparent",
        )}
      >
        <table
          aria-label={label}
          aria-busy={busy}
          className={cn("w-full text-left text-sm", cards ? "max-sm:block" : "max-sm:text-xs")}
        >
          <thead
            className={cn("border-b bg-raised text-quiet text-xs sm:whitespace-nowrap", cards && "max-sm:sr-only")}
          >
            <tr>
              {headings.map((heading, place) => {
                // Above what can be done with a row there is nothing to say, and a heading must say something.
                const Head = heading ? "th" : "td";
                return (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a column is its place
                  <Head key={place} {...(heading ? { scope: "col" } : {})} className={HEADING}>
                    {heading}
                  </Head>
                );
              })}
            </tr>
          </thead>
          <tbody className={cn(cards && "max-sm:grid max-sm:gap-3")}>{children}</tbody>
        </table>
      </div>
    </Columns>
  );
}

export function Row({ className, ...rest }: ComponentProps<"tr">) {
  const { cards } = useContext(Columns);
  return (
    <tr
      className={cn(
        "border-b align-middle last:border-b-0",
        cards && "max-sm:block max-sm:rounded-xl max-sm:border max-sm:bg-surface max-sm:p-2 max-sm:last:border",
        className,
      )}
      {...rest}
    />
  );
}

interface CellProps extends ComponentProps<"td"> {
  column: number;
  /** It says what the row is about, as the first one does. */
  lead?: boolean;
}

/**
 * `column` is its place among the headings, for telephones, where every value stands beside its heading; what leads a
 * row stands above them, as the card's own heading.
 */
export function Cell({ column, lead = column === 0, className, children, ...rest }: CellProps) {
  const { headings, cards } = useContext(Columns);
  const heading = headings[column];
  return (
    <td
      className={cn(
        "min-w-0 px-3 py-2 [overflow-wrap:break-word] max-sm:px-2",
        cards && "max-sm:flex max-sm:gap-3 max-sm:py-1 max-sm:[overflow-wrap:anywhere]",
        cards && lead && "max-sm:font-semibold max-sm:text-base max-sm:[&_.text-quiet]:font-normal",
        cards && saysNothing(children) && "max-sm:hidden",
        className,
      )}
      {...rest}
    >
      {cards && heading && !lead && (
        <span aria-hidden="true" className="w-28 shrink-0 text-quiet text-xs leading-5 sm:hidden">
          {heading}
        </span>
      )}
      <div className={cn("min-w-0", cards && "max-sm:flex-1")}>{children}</div>
    </td>
  );
}

/** Rows that are on their way, at the height they will have. */
export function SkeletonRows({ columns, rows = 5 }: { columns: number; rows?: number }) {
  return Array.from({ length: rows }, (_, row) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
    <Row key={row} aria-hidden="true">
      {Array.from({ length: columns }, (_, column) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: as above
        <td key={column} className="px-3 py-3">
          <div className="h-4 w-2/3 animate-pulse rounded bg-raised" />
        </td>
      ))}
    </Row>
  ));
}
