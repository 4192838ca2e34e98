import type { ReactNode } from "react";
import { type Asked, Loaded } from "./loaded";
import { SkeletonRows, Table } from "./ui/table";

interface Props<T> {
  query: Asked<readonly T[]>;
  label: string;
  headings: readonly string[];
  /** So many rows stand in the place of what is on its way. */
  waitingRows?: number;
  /** In the table's place where there is nothing; a table without rows where that can't be. */
  empty?: ReactNode;
  /** A row. */
  children: (one: T, place: number) => ReactNode;
}

/** A list as a table: its skeleton, then its rows, or a word where there are none. */
export function LoadedTable<T>({ query, label, headings, waitingRows = 5, empty, children }: Props<T>) {
  return (
    <Loaded
      query={query}
      waiting={
        <Table label={label} headings={headings} busy>
          <SkeletonRows columns={headings.length} rows={waitingRows} />
        </Table>
      }
    >
      {(found) =>
        found.length === 0 && empty ? (
          empty
        ) : (
          <Table label={label} headings={headings}>
            {found.map(children)}
          </Table>
        )
      }
    </Loaded>
  );
}
