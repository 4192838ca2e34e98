// Cases: evidence that people keep together.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useChanging } from "./changing";
import { answered, api } from "./client";
import type { CaseChange, CaseItem, CaseItemAsked } from "./types";

const CASES_PAGE = 50;
const ITEMS_PAGE = 100;

export type CaseState = "open" | "closed";

export function useCases(state: CaseState | null) {
  return useInfiniteQuery({
    queryKey: ["cases", state],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/cases", {
          params: {
            query: {
              limit: CASES_PAGE,
              ...(state ? { state } : {}),
              ...(pageParam ? { before: pageParam } : {}),
            },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
  });
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

export const useCreateCase = () =>
  useCaseChange((body: { title: string; note: string | null }) => answered(api.POST("/api/cases", { body })));

export const useChangeCase = (uuid: string) =>
  useCaseChange((body: CaseChange) => answered(api.PATCH("/api/cases/{case_uuid}", { ...path(uuid), body })));

export const useAddNote = (uuid: string) =>
  useCaseChange((body: string) =>
    answered(api.POST("/api/cases/{case_uuid}/notes", { ...path(uuid), body: { body } })),
  );

export const useAddItem = () =>
  useCaseChange(({ caseUuid, item }: { caseUuid: string; item: CaseItemAsked }) =>
    answered(api.POST("/api/cases/{case_uuid}/items", { ...path(caseUuid), body: item })),
  );

export const useRemoveItem = (caseUuid: string) =>
  useCaseChange(({ kind, uuid }: Pick<CaseItem, "kind" | "uuid">) =>
    answered(
      api.DELETE("/api/cases/{case_uuid}/items/{kind}/{object_uuid}", {
        params: { path: { case_uuid: caseUuid, kind, object_uuid: uuid } },
      }),
    ),
  );

export const caseExport = (uuid: string) => `/api/cases/${encodeURIComponent(uuid)}/export`;
