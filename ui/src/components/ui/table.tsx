import { type ComponentProps, createContext, type ReactNode, useContext } from "react";
import { cn } from "./class-names";

const Headings = createContext<readonly string[]>([]);

interface Props {
  label: string;
  headings: readonly string[];
  busy?: boolean;
  children: ReactNode;
}

/** A table that becomes a list of cards on a telephone, each value with its heading beside it. */
export function Table({ label, headings, busy = false, children }: Props) {
  return (
    <Headings value={headings}>
      <div className="rounded-xl border bg-surface max-sm:border-0 max-sm:bg-transparent sm:overflow-hidden">
        <table aria-label={label} aria-busy={busy} className="w-full text-left text-sm max-sm:block">
          <thead className="whitespace-nowrap border-b bg-raised text-quiet text-xs max-sm:sr-only">
            <tr>
              {headings.map((heading, place) => {
                // Above what can be done with a row there is nothing to say, and a heading must say something.
                const Head = heading ? "th" : "td";
                return (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a column is its place
                  <Head key={place} {...(heading ? { scope: "col" } : {})} className="px-3 py-2 font-medium">
                    {heading}
                  </Head>
                );
              })}
            </tr>
          </thead>
          <tbody className="max-sm:grid max-sm:gap-3">{children}</tbody>
        </table>
      </div>
    </Headings>
  );
}

export function Row({ className, ...rest }: ComponentProps<"tr">) {
  return (
    <tr
      className={cn(
        "border-b align-middle last:border-b-0 max-sm:block max-sm:rounded-xl max-sm:border max-sm:bg-surface max-sm:p-2 max-sm:last:border",
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
  const heading = useContext(Headings)[column];
  return (
    <td
      className={cn(
        "min-w-0 [overflow-wrap:anywhere] sm:[overflow-wrap:break-word] px-3 py-2 max-sm:flex max-sm:gap-3 max-sm:px-2 max-sm:py-1",
        lead && "max-sm:font-semibold max-sm:text-base max-sm:[&_.text-quiet]:font-normal",
        className,
      )}
      {...rest}
    >
      {heading && !lead && (
        <span aria-hidden="true" className="w-28 shrink-0 text-quiet text-xs leading-5 sm:hidden">
          {heading}
        </span>
      )}
      <div className="min-w-0 max-sm:flex-1">{children}</div>
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
