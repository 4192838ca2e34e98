import { useMutation, useQueryClient } from "@tanstack/react-query";

/** Runs a change and has everything asked for again whose key begins with one of these nouns. */
export function useChanging<Given, Answer>(nouns: readonly string[], change: (given: Given) => Promise<Answer>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    // Not waited for: what asked for the change may be gone from the page when the answer is there.
    onSettled: () => {
      for (const noun of nouns) void client.invalidateQueries({ queryKey: [noun] });
    },
  });
}
