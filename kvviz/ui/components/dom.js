// What the components share. Text reaches the page as text nodes alone, so a token is never read as markup.

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
};

// Writing only what differs keeps focus, selection and scroll positions, and spares the browser a layout.
const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};
const dress = (node, classes) => {
  if (node.className !== classes) node.className = classes;
};

// As many children as there are items: missing ones are made, surplus ones removed, the rest stay where they are.
const fit = (parent, count, make) => {
  while (parent.children.length > count) parent.lastElementChild.remove();
  while (parent.children.length < count) parent.append(make(parent.children.length));
  return parent.children;
};

// One object per place on the page, kept on the mounted element: with new data the script runs again from the start.
const resident = (mount, Kind, component) => {
  mount.kvvizResident ??= new Kind(mount);
  mount.kvvizResident.show(component);
  return () => mount.kvvizResident?.leave?.();
};

const percent = (value) =>
  value === null ? "no value" : `${(100 * value).toLocaleString("en", { maximumSignificantDigits: 3 })}%`;

// Only the box scrolls: scrollIntoView would move the page as well.
const reveal = (box, child) => {
  if (!child) return;
  const above = child.offsetTop - box.offsetTop - box.scrollTop;
  if (above < 0 || above + child.offsetHeight > box.clientHeight) box.scrollTop += above - box.clientHeight / 2;
};

// One stop for the Tab key; the arrows go from cell to cell. `columns` is 1 for a line of chips.
const roam = (box, columns) => {
  box.addEventListener("keydown", (event) => {
    const cells = [...box.querySelectorAll("button")];
    const here = cells.indexOf(event.target);
    const width = columns();
    const row = here - (here % width);
    const goals = {
      ArrowRight: here + 1,
      ArrowLeft: here - 1,
      ArrowDown: here + (width > 1 ? width : 1),
      ArrowUp: here - (width > 1 ? width : 1),
      Home: width > 1 ? row : 0,
      End: width > 1 ? row + width - 1 : cells.length - 1,
    };
    const goal = cells[goals[event.key]];
    if (here < 0 || !(event.key in goals)) return;
    event.preventDefault();
    if (!goal) return;
    rove(cells, goal);
    goal.focus();
  });
};

const rove = (cells, stop) => {
  for (const cell of cells) cell.tabIndex = cell === stop ? 0 : -1;
};
