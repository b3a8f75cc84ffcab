"use strict";

/* What the parts of the page share: the report and what is to be drawn, words for numbers, colours, elements. */
const page = (function () {
	document.documentElement.classList.add("drawn");
	const report = JSON.parse(document.getElementById("report").textContent);
	const drawing = JSON.parse(document.getElementById("drawing").textContent);
	const partNames = drawing.parts.map((p) => p[0]), partWords = drawing.parts.map((p) => p[1]);

	function digits(value, unit) {
		const places = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
		return value.toFixed(places) + " " + unit;
	}
	function scaled(value, units) {
		let at = 0;
		while (at + 1 < units.length && Math.abs(value) >= 999.5) {
			value /= 1000;
			at++;
		}
		return at === 0 && Number.isInteger(value) ? value + " " + units[0] : digits(value, units[at]);
	}
	function time(seconds) {
		if (seconds === null || !Number.isFinite(seconds)) return "n/a";
		if (seconds < 99.95) return scaled(Math.max(seconds, 0) * 1e9, ["ns", "us", "ms", "s"]);
		const s = Math.round(seconds);
		if (s < 3600) return Math.floor(s / 60) + "m" + String(s % 60).padStart(2, "0") + "s";
		return Math.floor(s / 3600) + "h" + String(Math.floor((s / 60) % 60)).padStart(2, "0") + "m";
	}
	function amount(value, unit) {
		if (value === null || !Number.isFinite(value)) return "n/a";
		if (unit === "bytes") return scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"]);
		if (unit === "bytes/s") return scaled(value, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
		if (unit === "share") return (value * 100).toFixed(value < 0.00095 ? 2 : value < 0.0995 ? 1 : 0) + " %";
		return value >= 999.5 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
	}
	/* A colour of the style sheet, as it is now. */
	function colour(name) {
		return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
	}
	function element(name, properties, ...children) {
		const e = Object.assign(document.createElement(name), properties);
		e.append(...children);
		return e;
	}
	/* Calls a function now and whenever colours change: by the system's setting, or for paper. */
	function coloured(draw) {
		draw();
		for (const media of ["(prefers-color-scheme: dark)", "print"])
			matchMedia(media).addEventListener("change", draw);
	}
	/* Calls a function once, when an element is about to be seen or printed. */
	function whenSeen(target, draw) {
		let done = false;
		function once() {
			if (done) return;
			done = true;
			watch.disconnect();
			draw();
		}
		const watch = new IntersectionObserver((all) => all.some((x) => x.isIntersecting) && once(), {rootMargin: "600px"});
		watch.observe(target);
		addEventListener("beforeprint", once);
	}
	return {report, drawing, partNames, partWords, time, amount, colour, element, coloured, whenSeen};
})();

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
			const button = page.element("button", {type: "button", className: "order", textContent: head.textContent});
			button.addEventListener("click", () => order(table, column, head));
			head.replaceChildren(button);
		});
	}
})();

/* Of long tables the first rows, until all are asked for; on paper all. */
for (const table of document.querySelectorAll("table")) {
	const rows = table.tBodies[0].rows.length;
	if (rows <= 30) continue;
	const button = page.element("button", {type: "button", className: "order controls", textContent: "all " + rows + " rows"});
	table.classList.add("short");
	table.after(button);
	button.addEventListener("click", () => {
		table.classList.remove("short");
		button.remove();
	});
}

/* Ranks as a heat map: what a part takes, as a share of the longest step. */
(function () {
	const rows = document.querySelectorAll("tr.heat");
	const most = Math.max(...page.report.ranks.map((r) => r.step_s));
	for (const row of rows)
		Array.from(row.cells).slice(1).forEach((cell, part) => {
			const share = Math.min(Number(cell.dataset.v || 0) / most, 1);
			cell.style.backgroundColor = "color-mix(in srgb, var(--" + page.partNames[part] + ") " + Math.round(70 * share) + "%, transparent)";
		});
})();

/* What-ifs as bars that can be combined. Gains do not add up: of several only bounds are known, but for all of them together. */
(function () {
	const place = document.getElementById("combine");
	if (!place) return;
	const all = page.report.whatif.find((w) => w.remove === "everything-but-compute");
	const single = page.report.whatif.filter((w) => w !== all);
	const now = page.report.breakdown.reduce((sum, p) => sum + (p.share === null ? 0 : p.s_per_step), 0);
	const names = Object.fromEntries(page.drawing.parts);
	if (!single.length || !(now > 0)) return;

	function least(w) {
		return w.ceiling_speedup > 0 ? now / w.ceiling_speedup : 0;
	}
	/* [shortest, longest] that a step without it may take, and the point between, if there is one. */
	function range(w) {
		if (w.step_s === null) return {low: w.low_s === null ? least(w) : w.low_s, high: w.high_s === null ? now : w.high_s, point: null};
		return {low: w.low_s === null ? w.step_s : w.low_s, high: w.high_s === null ? w.step_s : w.high_s, point: w.step_s};
	}
	function bar(r, kind) {
		const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
		const part = (from, to, name) => {
			const rect = document.createElementNS(ns, "rect");
			rect.setAttribute("x", (100 * from) / now);
			rect.setAttribute("width", Math.max((100 * (to - from)) / now, 0.4));
			rect.setAttribute("height", 10);
			rect.setAttribute("class", name);
			svg.append(rect);
		};
		svg.setAttribute("viewBox", "0 0 100 10");
		svg.setAttribute("preserveAspectRatio", "none");
		svg.setAttribute("aria-hidden", "true");
		part(0, r.low, kind);
		part(r.low, Math.max(r.high, r.low), kind + " unsure");
		if (r.point !== null) part(r.point - now / 500, r.point + now / 500, "point");
		return svg;
	}
	function words(r) {
		const span = page.time(r.low) + " to " + page.time(r.high);
		return r.point === null ? span : page.time(r.point) + (r.high > r.low ? " (" + span + ")" : "");
	}
	function together(chosen) {
		if (!chosen.length) return {r: {low: now, high: now, point: now}, why: "nothing is chosen"};
		if (chosen.length === 1) return {r: range(chosen[0]), why: "as predicted"};
		const every = all ? range(all) : {low: 0, high: now, point: null};
		if (chosen.length === single.length && all) return {r: every, why: "as predicted for everything but compute"};
		const high = Math.min(...chosen.map((w) => range(w).high));
		return {
			r: {low: Math.min(every.low, high), high, point: null},
			why: "between two bounds: no longer than with the best of them alone, no shorter than without everything but compute",
		};
	}
	const rows = single.map((w) => {
		const box = page.element("input", {type: "checkbox", checked: w === single[0]});
		const label = page.element("label", {}, box, " no " + (names[w.remove] || w.remove));
		const r = range(w);
		place.append(page.element("div", {className: "whatif"}, label, bar(r, w.remove), page.element("span", {textContent: words(r)})));
		box.addEventListener("change", show);
		return {box, w};
	});
	const sum = page.element("div", {className: "whatif sum"}), told = page.element("p", {className: "note"});
	told.setAttribute("aria-live", "polite");
	place.prepend(page.element("div", {className: "whatif"}, page.element("span", {textContent: "a step now"}),
		bar({low: now, high: now, point: null}, "now"), page.element("span", {textContent: page.time(now)})));
	place.append(sum, told);
	function show() {
		const t = together(rows.filter((x) => x.box.checked).map((x) => x.w));
		sum.replaceChildren(page.element("b", {textContent: "together"}), bar(t.r, "run"), page.element("b", {textContent: words(t.r)}));
		told.textContent = "Together " + t.why + ". Gains do not add up: what one removes may have been hidden behind the other.";
	}
	show();
})();
