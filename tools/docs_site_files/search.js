// Finds pages by every word of the question, in titles first. Words are compared as they are written, so Japanese works.
"use strict";
(() => {
  const root = document.body.dataset.root;
  const input = document.getElementById("search");
  const found = document.getElementById("found");
  const SHOWN_MAX = 20;
  const AROUND = 60;

  function score(entry, words) {
    let sum = 0;
    for (const word of words) {
      const inTitle = entry.folded.title.includes(word);
      const at = entry.folded.text.indexOf(word);
      if (!inTitle && at < 0) return 0;
      sum += inTitle ? 10 : 1;
    }
    return sum;
  }

  function line(entry, word) {
    const at = Math.max(entry.folded.text.indexOf(word), 0);
    return entry.text.slice(Math.max(at - AROUND, 0), at + AROUND * 2);
  }

  function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.replaceChildren();
    found.hidden = words.length === 0;
    const hits = words.length === 0 ? [] : INDEX
      .map((entry) => [score(entry, words), entry])
      .filter(([points]) => points > 0)
      .sort((a, b) => b[0] - a[0])
      .slice(0, SHOWN_MAX);
    for (const [, entry] of hits) {
      const link = document.createElement("a");
      link.href = root + entry.url;
      link.textContent = entry.title;
      const text = document.createElement("small");
      text.textContent = line(entry, words[0]);
      link.append(text);
      found.append(link);
    }
    if (words.length > 0 && hits.length === 0) found.textContent = "Nothing found · 見つかりません";
  }

  for (const entry of INDEX) entry.folded = { title: entry.title.toLowerCase(), text: entry.text.toLowerCase() };
  input.addEventListener("input", show);
})();
