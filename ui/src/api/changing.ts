import { useMutation, useQueryClient } from "@tanstack/react-query";

/** Runs a change and has everything asked for again whose key begins with one of these nouns. */
export function useChanging<Given, Answer>(nouns: readonly string[], change: (given: Given) => Promise<Answer>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all(nouns.map((noun) => client.invalidateQueries({ queryKey: [noun] }))),
  });
}
