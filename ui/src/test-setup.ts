import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// jsdom has no modal dialogs; an open one is near enough.
HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
  this.open = true;
};
HTMLDialogElement.prototype.close ??= function (this: HTMLDialogElement) {
  this.open = false;
};

afterEach(() => {
  cleanup();
  localStorage.clear();
});

// How long a page may take to show what a test looks for; the usual second is too short on a busy machine.
configure({ asyncUtilTimeout: 30_000 });

// jsdom knows the element but does not open it. The rest of the page is not made inert here.
HTMLDialogElement.prototype.showModal = function showModal() {
  this.open = true;
};
HTMLDialogElement.prototype.close = function close() {
  if (!this.open) return;
  this.open = false;
  this.dispatchEvent(new Event("close"));
};

// jsdom does not scroll. In Chromium the answer is a promise, so none of it may be what an effect answers.
Element.prototype.scrollIntoView = (() => Promise.resolve()) as Element["scrollIntoView"];
