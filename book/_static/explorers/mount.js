/* Brings every <div class="explorer" data-explorer="NAME"> of a page to life; what the div holds stays where it fails.

   Classic scripts, and data as scripts: a page that is opened from file:// may load no module and fetch nothing. */
(() => {
  "use strict";
  const home = document.currentScript.src.replace(/[^/]*$/, "");
  const builders = {},
    loaded = new Map();
  const NEEDS = {
    transform: ["transform.js"],
    fuse: ["growth.js", "data/fuse.js", "fuse.js"],
    goalposts: ["quantiles.js", "verdicts.js", "units.js", "data/goalposts.js", "goalposts.js"],
    break: ["meanfield.js", "data/break.js", "break.js"],
    landscape: ["data/landscape.js", "landscape.js"],
    train: ["network.js", "train.js"],
  };

  /* formulas: what tests compare with the package; data: what the data files fill in, by explorer. */
  const bnbook = (window.bnbook = { formulas: {}, data: {}, kit: {}, ready: null });
  bnbook.explorer = (name, title, build) => {
    builders[name] = { title, build };
  };

  const load = file => {
    if (!loaded.has(file))
      loaded.set(
        file,
        new Promise((done, failed) => {
          const script = document.createElement("script");
          script.src = home + file;
          script.async = false; // in the order in which they were asked for
          script.onload = done;
          script.onerror = () => failed(new Error(`explorers: ${file} is missing`));
          document.head.append(script);
        }),
      );
    return loaded.get(file);
  };

  const mount = async place => {
    const name = place.dataset.explorer;
    const live = document.createElement("div");
    try {
      await Promise.all(["plot.js", "controls.js", ...NEEDS[name]].map(load));
      if (bnbook.data[name] === null) throw new Error(`explorers: no run to draw ${name} from`);
      const { title, build } = builders[name];
      live.className = "explorer-live";
      live.setAttribute("role", "group");
      live.setAttribute("aria-label", title);
      const still = document.createElement("div");
      still.className = "explorer-still";
      still.append(...place.childNodes);
      place.append(still, live);
      build(bnbook.kit.explorer(live, title), bnbook.data[name], place.dataset);
      still.hidden = true;
      place.dataset.state = "live";
    } catch (problem) {
      live.remove();
      place.dataset.state = "still";
      console.warn(String(problem));
    }
  };

  const start = () => {
    bnbook.ready = Promise.all([...document.querySelectorAll("div.explorer[data-explorer]")].map(mount));
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
