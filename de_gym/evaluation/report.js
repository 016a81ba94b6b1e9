// Sort a table by the column whose heading was clicked; a second click turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => heading.firstElementChild.addEventListener("click", () => {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value;
    const number = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));
    const compare = (one, other) => {
      const [left, right] = [number(value(one)), number(value(other))];
      if (Number.isNaN(left) || Number.isNaN(right)) return value(one).localeCompare(value(other));
      return left === right ? 0 : left - right;
    };
    const rows = [...table.tBodies[0].rows].sort(compare);
    table.tBodies[0].append(...(descending ? rows.reverse() : rows));
  }));
}
