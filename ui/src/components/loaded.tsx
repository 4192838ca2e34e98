import type { ReactNode } from "react";
import { ProblemNotice, StaleNotice } from "./problem-notice";

export interface Asked<T> {
  data: T | undefined;
  error: unknown;
  dataUpdatedAt: number;
  refetch: () => unknown;
}

interface Props<T> {
  query: Asked<T>;
  /** In the place of what is on its way. */
  waiting: ReactNode;
  children: (data: T) => ReactNode;
}

/** What was asked for: its skeleton, then it; a problem in its place, or above what is known from before. */
export function Loaded<T>({ query, waiting, children }: Props<T>) {
  const { data, error, dataUpdatedAt, refetch } = query;
  const retry = () => void refetch();
  if (data === undefined) return error ? <ProblemNotice error={error} onRetry={retry} /> : waiting;
  return (
    <>
      {error != null && <StaleNotice error={error} onRetry={retry} at={dataUpdatedAt} />}
      {children(data)}
    </>
  );
}
