/* Charts over time, with uPlot; a build without it leaves the tables. */
(function () {
	if (typeof uPlot === "undefined") return;
	document.documentElement.classList.add("charted");

	function axes(value) {
		const stroke = page.colour("soft"), line = {stroke: page.colour("line"), width: 1};
		return [
			{stroke, grid: line, ticks: line, values: (u, all) => all.map((v) => (v === 0 ? "0" : page.time(v)))},
			{stroke, grid: line, ticks: line, size: 80, values: (u, all) => all.map((v) => (v === 0 ? "0" : value(v)))},
		];
	}
	/* A chart that is as wide as its place, and drawn anew when colours change. */
	function chart(place, height, make) {
		let now = null;
		function draw() {
			if (now) now.destroy();
			const {options, data} = make();
			now = new uPlot(Object.assign({width: place.clientWidth, height}, options), data, place);
		}
		page.whenSeen(place, () => {
			page.coloured(draw);
			new ResizeObserver(() => now.setSize({width: place.clientWidth, height})).observe(place);
		});
	}

	/* Where the steps go along the run: parts on top of each other, the shortest, median and longest of each point above. */
	function steps(place) {
		const s = page.drawing.stretches, n = s.start.length;
		const shown = page.partNames.map((name, at) => ({name, words: page.partWords[at]})).filter((p) => s[p.name].some((v) => v > 0));
		if (n < 2) return place.remove();
		const sums = [];
		shown.forEach((p, at) => sums.push(s[p.name].map((v, i) => v + (at ? sums[at - 1][i] : 0))));
		chart(place, 300, () => {
			const series = [{label: "after the start", value: (u, v) => (v === null ? "-" : page.time(v))}], data = [s.start];
			for (let at = shown.length - 1; at >= 0; at--) {
				const own = s[shown[at].name], fill = page.colour(shown[at].name);
				series.push({label: shown[at].words, fill, stroke: fill, width: 0, points: {show: false},
					value: (u, v, si, i) => (i === null ? "-" : page.time(own[i]))});
				data.push(sums[at]);
			}
			const lines = s.together > 1 ? ["least", "median", "most"] : [];
			const words = {least: "shortest", median: "median", most: "longest"};
			for (const name of lines) {
				series.push({label: words[name], stroke: page.colour("text"), width: 1, dash: name === "median" ? [] : [3, 3], points: {show: false},
					value: (u, v) => (v === null ? "-" : page.time(v))});
				data.push(s[name]);
			}
			return {options: {series, axes: axes(page.time), scales: {x: {time: false}, y: {range: (u, low, high) => [0, high * 1.05]}}}, data};
		});
	}
	function lengths(place) {
		const l = page.drawing.lengths, n = l.count.length;
		if (page.drawing.stretches.steps < 2 || !(l.width > 0)) return place.remove();
		const at = l.count.map((c, i) => l.low + (i + 0.5) * l.width);
		at.push(l.low + (n + 1.5) * l.width);
		const counts = [...l.count, l.longer];
		chart(place, 220, () => ({
			options: {
				scales: {x: {time: false, range: [l.low - l.width, l.low + (n + 3) * l.width]}, y: {range: (u, low, high) => [0, high * 1.05]}},
				axes: axes((v) => (Number.isInteger(v) ? String(v) : "")),
				series: [
					{label: "length", value: (u, v, si, i) => (i === null ? "-" : i === n ? "longer" : page.time(v))},
					{label: "steps", fill: page.colour("sync"), stroke: page.colour("sync"), points: {show: false},
						paths: uPlot.paths.bars({size: [0.95, 100]}), value: (u, v) => (v === null ? "-" : v.toLocaleString("en"))},
				],
			},
			data: [at, counts],
		}));
	}
	function line(place, title, x, y, unit, height) {
		chart(place, height, () => ({
			options: {
				title,
				legend: {show: height > 150},
				cursor: {sync: {key: "machine"}},
				scales: {x: {time: false}, y: {range: (u, low, high) => [0, high > 0 ? high * 1.05 : 1]}},
				axes: axes((v) => page.amount(v, unit)),
				series: [
					{label: "after the start", value: (u, v) => (v === null ? "-" : page.time(v))},
					{label: title || "in use", stroke: page.colour("sync"), fill: page.colour("faint"), width: 1.5, points: {show: x.length < 3},
						value: (u, v) => (v === null ? "-" : page.amount(v, unit))},
				],
			},
			data: [x, y],
		}));
	}

	const places = {"chart-steps": steps, "chart-lengths": lengths};
	for (const id in places) {
		const place = document.getElementById(id);
		if (place) places[id](place);
	}
	const memory = document.getElementById("chart-memory");
	/* the report's times count from the first record, the charts' from the start of the process */
	const zero = page.report.tree ? page.report.tree.begin_s : 0;
	if (memory && page.report.memory.line.length > 1) {
		const l = page.report.memory.line;
		line(memory, "", l.map((p) => p.t_s - zero), l.map((p) => p.bytes), "bytes", 200);
	} else if (memory) {
		memory.remove();
	}
	const machine = document.getElementById("chart-machine");
	if (machine)
		for (const m of page.report.machine) {
			/* what never changed stands in the table */
			if (!(m.most > m.least) || m.line.length < 2) continue;
			const place = page.element("div", {className: "small"});
			machine.append(place);
			const scaled = m.unit === "share" || m.unit.startsWith("bytes");
			line(place, m.name + (m.device === undefined ? "" : " " + m.device) + (scaled ? "" : ", " + m.unit), m.line.map((v, i) => m.start_s - zero + i * m.width_s), m.line, scaled ? m.unit : "", 130);
		}
})();
