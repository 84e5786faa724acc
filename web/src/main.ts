// What the page can do with a script: zoom the timeline, sort and search the kernels, show details at the pointer.
import { openLinkedDetails } from "./details";
import { enhanceKernelTable } from "./kernel_table";
import { enhanceRoofline } from "./roofline";
import { startTimeline } from "./timeline/start";

// The script stands right behind the timeline, so that nothing below it moves; the rest is not parsed yet.
startTimeline();
document.addEventListener("DOMContentLoaded", () => {
  enhanceKernelTable();
  enhanceRoofline();
  openLinkedDetails();
});
