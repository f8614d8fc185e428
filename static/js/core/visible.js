/**
 * Work for a panel that is far down the page waits until the panel is near the window.
 *
 * @param {HTMLElement} element
 * @returns {{run: (work: () => void) => void, destroy: () => void}} `run` works at once, or when the element comes near;
 *   of several that wait only the last is done
 */
export function createGate(element) {
  let near = false;
  /** @type {(() => void) | null} */
  let waiting = null;
  const observer = new IntersectionObserver(
    (entries) => {
      near = entries[entries.length - 1].isIntersecting;
      if (near && waiting) {
        const work = waiting;
        waiting = null;
        work();
      }
    },
    { rootMargin: "300px 0px" },
  );
  observer.observe(element);
  return {
    run(work) {
      if (near) work();
      else waiting = work;
    },
    destroy() {
      waiting = null;
      observer.disconnect();
    },
  };
}
