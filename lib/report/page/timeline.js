/* Timelines of a few steps: what a step waited for at the top, the calls of threads, stages and streams below, and the chain of waits drawn
 * through them. The wheel with Ctrl or the keys + and - magnify, dragging or the arrow keys move, 0 shows all of it again. */
(function () {
	const NARROW = 700, LABELS = 190, ROW = 15, GROUP = 7, CHAIN = 24, AXIS = 20;
	const texts = page.drawing.texts, shown = page.drawing.timelines;

	function unpack(flat, names) {
		const all = [];
		for (let i = 0; i < flat.length; i += names.length) all.push(Object.fromEntries(names.map((name, at) => [name, flat[i + at]])));
		return all;
	}
	function overlap(a, b) {
		return Math.min(a.t + a.d, b.t + b.d) - Math.max(a.t, b.t);
	}

	/* The tracks in groups: a thread's or a device's, the busiest first within their kind. */
	function groups(step) {
		const by = new Map();
		for (const track of step.tracks) {
			const key = track.kind + ":" + track.of;
			if (!by.has(key)) by.set(key, {kind: track.kind, busy: 0, tracks: []});
			const g = by.get(key);
			g.busy += track.busy;
			g.tracks.push(track);
			track.all = unpack(track.bars, ["t", "d", "calls", "part", "what", "where"]);
		}
		const order = Array.from(by.values()).sort((a, b) => a.kind - b.kind || b.busy - a.busy);
		for (const g of order) g.tracks.sort((a, b) => a.row - b.row);
		return order;
	}
	/* The bar that a link is about: of its name and its time; a pause is in the row of the busiest thread. */
	function joined(link, order) {
		let best = null, most = 0;
		const device = link.part === 0 || page.partNames[link.part] === "communication";
		for (const g of order)
			for (const track of g.tracks)
				for (const bar of track.all) {
					if (bar.t > link.t + link.d) break;
					const shared = overlap(bar, link);
					const fits = texts[link.what] !== "" ? bar.what === link.what : device && g.kind === 2;
					if (shared > most && fits) {
						most = shared;
						best = {track, bar};
					}
				}
		if (best || device) return best;
		return order.length && order[0].kind === 0 ? {track: order[0].tracks[0], bar: null} : null;
	}

	function build(place, step) {
		const order = groups(step), chain = unpack(step.chain, ["t", "d", "part", "what", "words"]);
		for (const link of chain) {
			link.at = joined(link, order);
			if (link.at && link.at.bar) link.at.bar.blamed = link;
		}
		const canvas = page.element("canvas", {tabIndex: 0}), tip = page.element("div", {className: "tip", hidden: true});
		canvas.setAttribute("role", "img");
		canvas.setAttribute("aria-label", "Timeline of step " + step.step + ", " + page.time(step.took / 1e9) + "; the table below tells what it waited for");
		place.append(canvas, tip);
		const {from: first, span: scale} = alike ? common : {from: step.from, span: step.to - step.from};
		const view = {from: first, span: scale};
		let boxes = [], height = 0, left = 0, width = 0;

		function x(t) {
			return left + ((t - view.from) / view.span) * (width - left);
		}
		function layout() {
			width = place.clientWidth;
			left = width < NARROW ? 0 : LABELS;
			height = AXIS + CHAIN + GROUP;
			for (const g of order) {
				g.y = height;
				height += left ? 0 : ROW;
				for (const track of g.tracks) {
					track.y = height;
					height += ROW;
				}
				height += GROUP;
			}
		}
		function clipped(c, text, from, to, y) {
			const room = to - from - 6;
			if (room < 24) return;
			while (text.length > 2 && c.measureText(text).width > room) text = text.slice(0, Math.max(2, Math.floor(text.length * 0.8)));
			if (c.measureText(text).width <= room) c.fillText(text, from + 3, y);
		}
		function axis(c, ink) {
			const rough = (view.span / Math.max((width - left) / 90, 1)), unit = 10 ** Math.floor(Math.log10(rough));
			const every = [1, 2, 5, 10].map((f) => f * unit).find((v) => v >= rough);
			c.fillStyle = ink.soft;
			c.strokeStyle = ink.line;
			for (let t = Math.ceil(view.from / every) * every; t < view.from + view.span; t += every) {
				c.beginPath();
				c.moveTo(x(t), AXIS - 4);
				c.lineTo(x(t), height);
				c.stroke();
				c.fillText(t === 0 ? "0" : (t < 0 ? "-" : "") + page.time(Math.abs(t) / 1e9), x(t) + 3, 11);
			}
		}
		function rect(c, bar, y, h, fill, about) {
			const from = Math.max(x(bar.t), left), to = Math.min(x(bar.t + bar.d), width);
			if (to < left || from > width) return null;
			c.fillStyle = fill;
			c.fillRect(from, y, Math.max(to - from, 1), h);
			boxes.push({from, to: Math.max(to, from + 2), y, h, about});
			return [from, to];
		}
		function path(c, ink) {
			let last = null;
			c.strokeStyle = ink.text;
			for (const link of chain) {
				const from = Math.max(x(link.t), left), to = Math.min(x(link.t + link.d), width);
				/* Where links are too short to be seen it goes straight on; magnified, they are there. */
				if (!link.at || to - from < 2.5) continue;
				const y = link.at.track.y + ROW - 1.5;
				c.beginPath();
				c.lineWidth = 1;
				if (last !== null) {
					c.moveTo(last.x, last.y);
					c.lineTo(from, last.y);
					c.lineTo(from, y);
					c.stroke();
				}
				c.beginPath();
				c.lineWidth = 2;
				c.moveTo(from, y);
				c.lineTo(to, y);
				c.stroke();
				last = {x: to, y};
			}
			c.lineWidth = 1;
		}
		function draw() {
			layout();
			const ratio = devicePixelRatio || 1, c = canvas.getContext("2d");
			canvas.width = width * ratio;
			canvas.height = height * ratio;
			canvas.style.width = width + "px";
			canvas.style.height = height + "px";
			const ink = Object.fromEntries(["text", "soft", "line", "call", "card", "back", ...page.partNames].map((name) => [name, page.colour(name)]));
			c.setTransform(ratio, 0, 0, ratio, 0, 0);
			c.font = "11px system-ui, sans-serif";
			c.fillStyle = ink.back;
			c.fillRect(0, 0, width, height);
			c.fillStyle = ink.card;
			c.fillRect(x(0), AXIS, x(step.took) - x(0), height - AXIS);
			axis(c, ink);
			boxes = [];
			c.save();
			c.beginPath();
			c.rect(left, 0, width - left, height);
			c.clip();
			for (const link of chain) {
				const part = page.partNames[link.part], at = rect(c, link, AXIS, CHAIN - 4, ink[part], {link});
				c.fillStyle = ["launch", "input", "transfer"].includes(part) ? "#000" : "#fff";
				if (at) clipped(c, texts[link.words].split(":")[0], at[0], at[1], AXIS + 14);
			}
			for (const g of order)
				for (const track of g.tracks)
					for (const bar of track.all) {
						const part = bar.part >= 0 ? bar.part : bar.blamed ? bar.blamed.part : -1;
						const at = rect(c, bar, track.y, ROW - 2, part >= 0 ? ink[page.partNames[part]] : ink.call, {bar, track});
						c.fillStyle = part >= 0 && !["launch", "input", "transfer"].includes(page.partNames[part]) ? "#fff" : "#000";
						if (at) clipped(c, texts[bar.what] || bar.calls + " calls", at[0], at[1], track.y + 10);
					}
			path(c, ink);
			c.restore();
			labels(c, ink);
		}
		function labels(c, ink) {
			c.fillStyle = ink.text;
			if (left) c.fillText("waits for", 0, AXIS + 14);
			for (const g of order) {
				const track = g.tracks[0];
				if (!left) c.fillText(track.name, 2, g.y + 11);
				else for (const t of g.kind === 2 ? g.tracks : [track]) c.fillText(cut(c, t.name, left - 8), 0, t.y + 10);
			}
		}
		function cut(c, text, room) {
			while (text.length > 2 && c.measureText(text).width > room) text = text.slice(0, -1);
			return text;
		}
		function about(box) {
			if (box.about.link) {
				const l = box.about.link;
				return [texts[l.words], page.time(l.d / 1e9) + ", " + ((100 * l.d) / step.took).toFixed(1) + " % of the step"];
			}
			const b = box.about.bar;
			return [texts[b.what] || "different calls", texts[b.where], (b.calls > 1 ? b.calls + " of them, in " : "") + page.time(b.d / 1e9), box.about.track.name];
		}
		function point(event) {
			const px = event.offsetX, py = event.offsetY;
			const hit = boxes.filter((b) => px >= b.from - 1 && px <= b.to + 1 && py >= b.y && py <= b.y + b.h).pop();
			tip.hidden = !hit;
			if (!hit) return;
			tip.replaceChildren(...about(hit).filter((t) => t).map((t) => page.element("div", {textContent: t})));
			tip.style.left = Math.max(0, Math.min(px + 12, width - tip.offsetWidth - 4)) + "px";
			tip.style.top = py + 16 + "px";
		}
		function move(from, span) {
			view.span = Math.min(Math.max(span, scale / 1e4), scale);
			view.from = Math.min(Math.max(from, first), first + scale - view.span);
			draw();
		}
		function magnify(factor, at) {
			move(at - (at - view.from) * factor, view.span * factor);
		}
		let held = null;
		canvas.addEventListener("pointerdown", (e) => {
			held = {x: e.offsetX, from: view.from};
			canvas.setPointerCapture(e.pointerId);
		});
		canvas.addEventListener("pointerup", () => (held = null));
		canvas.addEventListener("pointercancel", () => (held = null));
		canvas.addEventListener("pointermove", (e) => {
			if (!held) return point(e);
			tip.hidden = true;
			move(held.from - ((e.offsetX - held.x) / (width - left)) * view.span, view.span);
		});
		canvas.addEventListener("pointerleave", () => (tip.hidden = true));
		canvas.addEventListener("wheel", (e) => {
			if (!e.ctrlKey) return;
			e.preventDefault();
			magnify(e.deltaY > 0 ? 1.25 : 0.8, view.from + ((e.offsetX - left) / (width - left)) * view.span);
		}, {passive: false});
		const keys = {
			"+": () => magnify(0.7, view.from + view.span / 2),
			"=": () => magnify(0.7, view.from + view.span / 2),
			"-": () => magnify(1.4, view.from + view.span / 2),
			"0": () => move(first, scale),
			ArrowLeft: () => move(view.from - view.span / 10, view.span),
			ArrowRight: () => move(view.from + view.span / 10, view.span),
		};
		canvas.addEventListener("keydown", (e) => {
			if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
			e.preventDefault();
			keys[e.key]();
		});
		page.coloured(draw);
		new ResizeObserver(() => place.clientWidth !== width && draw()).observe(place);
	}

	if (!shown.length) return;
	/* On one scale, so that they can be compared, unless the short ones could not be read then. */
	const common = {from: Math.min(...shown.map((s) => s.from))};
	common.span = Math.max(...shown.map((s) => s.to)) - common.from;
	const alike = shown.every((s) => common.span / (s.to - s.from) <= 4);
	for (const place of document.querySelectorAll(".timeline")) page.whenSeen(place, () => build(place, shown[place.dataset.step]));
	const legend = document.getElementById("legend");
	const used = new Set(shown.flatMap((s) => s.chain.filter((v, i) => i % 5 === 2)));
	for (const part of used) {
		const swatch = page.element("span", {className: "swatch"});
		swatch.style.backgroundColor = "var(--" + page.partNames[part] + ")";
		legend.append(page.element("span", {}, swatch, page.partWords[part]));
	}
})();
