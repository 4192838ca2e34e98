// Shares: addresses that open an event or a picture to whoever has them.

import { useInfiniteQuery } from "@tanstack/react-query";
import { useChanging } from "./changing";
import { answered, api } from "./client";
import type { ShareAsked } from "./types";

const SHARES_PAGE = 50;

export function useShares() {
  return useInfiniteQuery({
    queryKey: ["shares"],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/shares", {
          params: { query: { limit: SHARES_PAGE, ...(pageParam ? { before: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
  });
}

export const useAddShare = () =>
  useChanging(["shares"], (body: ShareAsked) => answered(api.POST("/api/shares", { body })));

export const useRevokeShare = () =>
  useChanging(["shares"], (share_uuid: string) =>
    answered(api.DELETE("/api/shares/{share_uuid}", { params: { path: { share_uuid } } })),
  );
