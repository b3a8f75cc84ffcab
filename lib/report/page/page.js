"use strict";

/* Tables can be ordered by any of their columns: by a click or the keyboard on its head. Trees keep their order. */
(function () {
	function value(row, column) {
		const cell = row.cells[column];
		if (!cell) return "";
		return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
	}
	function compare(a, b) {
		if (typeof a === "number" && typeof b === "number") return b - a;
		if (typeof a === "number") return -1;
		if (typeof b === "number") return 1;
		return a.localeCompare(b);
	}
	function order(table, column, head) {
		const body = table.tBodies[0], again = head.getAttribute("aria-sort") === "descending";
		const rows = Array.from(body.rows).map((row, at) => ({row, at, v: value(row, column)}));
		rows.sort((a, b) => (again ? -1 : 1) * compare(a.v, b.v) || a.at - b.at);
		for (const h of table.tHead.rows[0].cells) h.removeAttribute("aria-sort");
		head.setAttribute("aria-sort", again ? "ascending" : "descending");
		body.append(...rows.map((r) => r.row));
	}
	for (const table of document.querySelectorAll("table")) {
		const heads = table.tHead.rows[0].cells;
		if (table.tBodies[0].rows.length < 4 || heads.length < 3 || table.querySelector("th[class^=d]")) continue;
		Array.from(heads).forEach((head, column) => {
			if (!head.textContent.trim()) return;
			const button = document.createElement("button");
			button.type = "button";
			button.className = "order";
			button.textContent = head.textContent;
			button.addEventListener("click", () => order(table, column, head));
			head.replaceChildren(button);
		});
	}
})();
