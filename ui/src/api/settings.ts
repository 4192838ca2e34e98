// People, tokens, sites, what is kept, words, and what was done.

import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useChanging } from "./changing";
import { answered, api } from "./client";
import type { operations } from "./schema";
import type { AuditFinding, TenantAsked, TenantChange, TokenAsked, UserAsked, UserChange } from "./types";

// --- what was done ---

export type AuditFilter = NonNullable<operations["list_audit"]["parameters"]["query"]>;

export function useAudit(filter: AuditFilter) {
  return useInfiniteQuery({
    queryKey: ["audit", "list", filter],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/audit", {
          params: { query: { ...filter, limit: 100, ...(pageParam ? { before: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
  });
}

export interface AuditChecked {
  entries: number;
  findings: AuditFinding[];
}

/** Checks the whole log, part by part; `onPart` is told how many entries were checked so far. */
export function useVerifyAudit(onPart: (entries: number) => void) {
  return useMutation({
    mutationFn: async (): Promise<AuditChecked> => {
      const checked: AuditChecked = { entries: 0, findings: [] };
      let after: number | null = 0;
      while (after !== null) {
        const body = { after_batch: after, installation: false, with_key: true };
        const part: { entries: number; findings: AuditFinding[]; next_after: number | null } = await answered(
          api.POST("/api/audit/verify", { body }),
        );
        checked.entries += part.entries;
        checked.findings.push(...part.findings);
        onPart(checked.entries);
        after = part.next_after;
      }
      return checked;
    },
  });
}

export const AUDIT_EXPORT = "/api/audit/export";

// --- people ---

export function useUsers() {
  return useInfiniteQuery({
    queryKey: ["users"],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/users", { params: { query: { limit: 100, ...(pageParam ? { after: pageParam } : {}) } } }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
  });
}

const user = (name: string) => ({ params: { path: { user: name } } });

export const useAddUser = () =>
  useChanging(["users"], (body: UserAsked) => answered(api.POST("/api/users", { body })));

export const useChangeUser = () =>
  useChanging(["users"], ({ login, change }: { login: string; change: UserChange }) =>
    answered(api.PATCH("/api/users/{user}", { ...user(login), body: change })),
  );

export const useRemoveUser = () =>
  useChanging(["users"], (login: string) => answered(api.DELETE("/api/users/{user}", user(login))));

export const useMakePasswordLink = () =>
  useChanging(["users"], (login: string) => answered(api.POST("/api/users/{user}/password-link", user(login))));

// --- the own account ---

export function useTokens() {
  return useInfiniteQuery({
    queryKey: ["tokens"],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/tokens", { params: { query: { limit: 100, ...(pageParam ? { after: pageParam } : {}) } } }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
  });
}

export const useAddToken = () =>
  useChanging(["tokens"], (body: TokenAsked) => answered(api.POST("/api/tokens", { body })));

export const useRevokeToken = () =>
  useChanging(["tokens"], (token_uuid: string) =>
    answered(api.DELETE("/api/tokens/{token_uuid}", { params: { path: { token_uuid } } })),
  );

export const useSignIns = () =>
  useQuery({ queryKey: ["sign-ins"], queryFn: () => answered(api.GET("/api/sessions")) });

export const useEndOtherSignIns = () => useChanging(["sign-ins"], () => answered(api.DELETE("/api/sessions")));

export const useChangePassword = () =>
  useChanging(["sign-ins"], (body: { password: string; new_password: string }) =>
    answered(api.POST("/api/session/password", { body })),
  );

// --- sites ---

export const useAddSite = () =>
  useChanging(["sites"], (body: { name: string; timezone: string }) => answered(api.POST("/api/sites", { body })));

export const useChangeSite = () =>
  useChanging(["sites", "cameras"], ({ site, ...body }: { site: string; name: string; timezone: string }) =>
    answered(api.PATCH("/api/sites/{site}", { params: { path: { site } }, body })),
  );

export const useRemoveSite = () =>
  useChanging(["sites"], (site: string) => answered(api.DELETE("/api/sites/{site}", { params: { path: { site } } })));

// --- what is kept, words, configuration ---

export const useRetentionPreview = (wanted: boolean) =>
  useQuery({
    queryKey: ["retention", "preview"],
    queryFn: () => answered(api.GET("/api/retention/preview")),
    enabled: wanted,
  });

export const useRunRetention = () => useChanging(["retention"], () => answered(api.POST("/api/retention/run")));

export const useVocabularies = () =>
  useQuery({ queryKey: ["vocabularies"], queryFn: () => answered(api.GET("/api/vocabulary/versions")) });

export const useChooseVocabulary = () =>
  useChanging(["vocabularies", "vocabulary"], (schema_version: string) =>
    answered(api.POST("/api/vocabulary/active", { body: { schema_version } })),
  );

export const useAddVocabulary = () =>
  useChanging(["vocabularies"], (document: Record<string, unknown>) =>
    answered(api.POST("/api/vocabulary", { body: { document } })),
  );

// --- tenants ---

const tenant = (name: string) => ({ params: { path: { tenant: name } } });

/** Erasing one takes a while; how far it came is seen by asking again. */
export function useTenants() {
  return useInfiniteQuery({
    queryKey: ["tenants"],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/tenants", { params: { query: { limit: 100, ...(pageParam ? { after: pageParam } : {}) } } }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.tenants.some((one) => one.erasing_at !== null)) ? 5000 : false,
  });
}

export const useAddTenant = () =>
  useChanging(["tenants"], (body: TenantAsked) => answered(api.POST("/api/tenants", { body })));

export const useChangeTenant = () =>
  useChanging(["tenants"], ({ uuid, change }: { uuid: string; change: TenantChange }) =>
    answered(api.PATCH("/api/tenants/{tenant}", { ...tenant(uuid), body: change })),
  );

export const useMakeAdminLink = () =>
  useChanging(["tenants"], ({ uuid, login }: { uuid: string; login: string }) =>
    answered(api.POST("/api/tenants/{tenant}/admin-link", { ...tenant(uuid), body: { login } })),
  );

export const useEraseTenant = () =>
  useChanging(["tenants"], ({ uuid, confirm }: { uuid: string; confirm: string }) =>
    answered(api.DELETE("/api/tenants/{tenant}", { ...tenant(uuid), body: { confirm, also_held: false } })),
  );

export const useConfiguration = () =>
  useQuery({ queryKey: ["configuration"], queryFn: () => answered(api.GET("/api/settings")) });
