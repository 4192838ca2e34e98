// Cases: evidence that people keep together.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useChanging } from "./changing";
import { answered, api } from "./client";
import type { Case, CaseChange, CaseItem, CaseItemAsked } from "./types";

const CASES_PAGE = 50;
const CASES_SEARCHED = 100;
const ITEMS_PAGE = 100;

export type CaseState = "open" | "closed";

const fetchCases = (state: CaseState | null, before: string, limit = CASES_PAGE) =>
  answered(
    api.GET("/api/cases", {
      params: { query: { limit, ...(state ? { state } : {}), ...(before ? { before } : {}) } },
    }),
  );

export function useCases(state: CaseState | null) {
  return useInfiniteQuery({
    queryKey: ["cases", state],
    queryFn: ({ pageParam }) => fetchCases(state, pageParam),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
  });
}

/** The newest of the open ones that is meant. */
export async function findOpenCase(isMeant: (one: Case) => boolean): Promise<Case | null> {
  let before: string | null = "";
  while (before !== null) {
    const page: Awaited<ReturnType<typeof fetchCases>> = await fetchCases("open", before, CASES_SEARCHED);
    const found = page.cases.find(isMeant);
    if (found) return found;
    before = page.next_before;
  }
  return null;
}

const path = (case_uuid: string) => ({ params: { path: { case_uuid } } });

export function useCase(uuid: string) {
  return useQuery({
    queryKey: ["case", uuid],
    queryFn: () => answered(api.GET("/api/cases/{case_uuid}", path(uuid))),
  });
}

export function useCaseItems(uuid: string) {
  return useInfiniteQuery({
    queryKey: ["case", uuid, "items"],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/cases/{case_uuid}/items", {
          params: {
            path: { case_uuid: uuid },
            query: { limit: ITEMS_PAGE, ...(pageParam ? { after: pageParam } : {}) },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
  });
}

const useCaseChange = <Given, Answer>(change: (given: Given) => Promise<Answer>) =>
  useChanging(["cases", "case"], change);

export const createCase = (body: { title: string; note: string | null }) =>
  answered(api.POST("/api/cases", { body }));

export const useCreateCase = () => useCaseChange(createCase);

export const useChangeCase = (uuid: string) =>
  useCaseChange((body: CaseChange) => answered(api.PATCH("/api/cases/{case_uuid}", { ...path(uuid), body })));

export const useAddNote = (uuid: string) =>
  useCaseChange((body: string) =>
    answered(api.POST("/api/cases/{case_uuid}/notes", { ...path(uuid), body: { body } })),
  );

export const addItem = (caseUuid: string, item: CaseItemAsked) =>
  answered(api.POST("/api/cases/{case_uuid}/items", { ...path(caseUuid), body: item }));

export const useAddItem = () =>
  useCaseChange(({ caseUuid, item }: { caseUuid: string; item: CaseItemAsked }) => addItem(caseUuid, item));

export const removeItem = (caseUuid: string, { kind, uuid }: Pick<CaseItem, "kind" | "uuid">) =>
  answered(
    api.DELETE("/api/cases/{case_uuid}/items/{kind}/{object_uuid}", {
      params: { path: { case_uuid: caseUuid, kind, object_uuid: uuid } },
    }),
  );

export const useRemoveItem = (caseUuid: string) =>
  useCaseChange((item: Pick<CaseItem, "kind" | "uuid">) => removeItem(caseUuid, item));

export const caseExport = (uuid: string) => `/api/cases/${encodeURIComponent(uuid)}/export`;
