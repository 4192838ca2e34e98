// Incidents: the list that people review, how many there are of each severity, and reviewing.

import { type InfiniteData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { operations } from "./schema";
import type { Incident, IncidentPage } from "./types";

export type IncidentFilter = NonNullable<operations["list_incidents"]["parameters"]["query"]>;

const INCIDENTS_PAGE = 40;
const LISTS = ["incidents", "list"] as const;

export function useIncidents(filter: IncidentFilter) {
  return useInfiniteQuery({
    queryKey: [...LISTS, filter],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/incidents", {
          params: { query: { ...filter, limit: INCIDENTS_PAGE, ...(pageParam ? { before: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
  });
}

export function useIncidentCounts(filter: Omit<IncidentFilter, "severity_min">) {
  return useQuery({
    queryKey: ["incidents", "counts", filter],
    queryFn: () => answered(api.GET("/api/incidents/counts", { params: { query: filter } })),
  });
}

interface Review {
  incident: Incident;
  reviewed: boolean;
}

/** Marks an incident as seen, or takes that back. It shows at once, before the server has answered. */
export function useReview() {
  const client = useQueryClient();
  const path = ({ incident }: Review) => ({ params: { path: { incident_uuid: incident.incident_uuid } } });
  return useMutation({
    mutationFn: (review: Review) =>
      review.reviewed
        ? answered(
            api.POST("/api/incidents/{incident_uuid}/review", {
              ...path(review),
              body: {
                severity_max: review.incident.severity_max,
                last_event_uuid: review.incident.last_event_uuid,
              },
            }),
          )
        : answered(api.DELETE("/api/incidents/{incident_uuid}/review", path(review))),
    onMutate: async ({ incident, reviewed }) => {
      await client.cancelQueries({ queryKey: LISTS });
      const reviewed_at = reviewed ? Date.now() : null;
      client.setQueriesData<InfiniteData<IncidentPage>>({ queryKey: LISTS }, (known) =>
        withIncident(known, { ...incident, reviewed_at }),
      );
    },
    onSettled: () => {
      // An event's page says whether its incident was reviewed.
      for (const noun of ["incidents", "event"]) void client.invalidateQueries({ queryKey: [noun] });
    },
  });
}

/** The same for whoever knows only its name, as an event does. */
export function useReviewByUuid() {
  const review = useReview();
  return async (incident_uuid: string, reviewed: boolean): Promise<Incident> => {
    const incident = await answered(
      api.GET("/api/incidents/{incident_uuid}", { params: { path: { incident_uuid } } }),
    );
    await review.mutateAsync({ incident, reviewed });
    return incident;
  };
}

export function withIncident(known: InfiniteData<IncidentPage> | undefined, fresh: Incident) {
  if (!known) return known;
  const pages = known.pages.map((page) => ({
    ...page,
    incidents: page.incidents.map((one) => (one.incident_uuid === fresh.incident_uuid ? fresh : one)),
  }));
  return { ...known, pages };
}
