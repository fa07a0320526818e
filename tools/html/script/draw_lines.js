/*
 * The rows of calls are drawn into one line of pixels each, which is then stretched to the height of a row: the cost is
 * that of the calls looked at, whatever their number on a pixel. A pixel has the colour of the call with the largest
 * part in it, and is as dense as calls cover it.
 */
const lines = {canvas: document.createElement('canvas'), context: null, image: null, pixels: null, cover: null, best: null, word: null, count: 0};
lines.context = lines.canvas.getContext('2d');

function prepareLines(width, rows) {
	if (lines.canvas.width !== width || lines.canvas.height < rows) {
		lines.canvas.width = width;
		lines.canvas.height = Math.max(rows, 64);
		lines.image = lines.context.createImageData(width, lines.canvas.height);
		lines.pixels = new Uint32Array(lines.image.data.buffer);
		lines.cover = new Float32Array(width);
		lines.best = new Float32Array(width);
		lines.word = new Uint32Array(width);
	}
	lines.pixels.fill(0, 0, width * rows);
	lines.count = 0;
}

function addPart(x, part, word, weight) {
	lines.cover[x] += part;
	if (part * weight > lines.best[x]) {
		lines.best[x] = part * weight;
		lines.word[x] = word;
	}
}

function addSpan(a, b, word, weight, width) {
	const first = Math.max(Math.floor(a), 0);
	const last = Math.min(Math.floor(b), width - 1);
	if (first > last)
		return;
	if (first === last) {
		addPart(first, Math.max(Math.min(b, width) - Math.max(a, 0), 0.02), word, weight);
		return;
	}
	addPart(first, Math.min(first + 1 - a, 1), word, weight);
	for (let x = first + 1; x < last; x++) {
		lines.cover[x] = 1;
		lines.best[x] = weight;
		lines.word[x] = word;
	}
	addPart(last, Math.min(b - last, 1), word, weight);
}

function addRow(segment, depth, scale, width, labels) {
	const {rows} = segment;
	if (depth >= rows.depths)
		return;
	const {start, end, fn} = rows;
	const matching = functions.match;
	const gap = view.ratio;
	for (let i = lowerBound(end, rows.first[depth], rows.first[depth + 1], view.from); i < rows.first[depth + 1] && start[i] <= view.to; i++) {
		const a = (start[i] - view.from) * scale;
		let b = (end[i] - view.from) * scale;
		const f = fn[i];
		const word = functionWord(f);
		const weight = matching && matching[f] ? 1000 : 1;
		if (segment.sliver) {
			const covered = rows.cover[i] / 255;
			addSpan(a, a + (b - a) * Math.max(covered, 0.05), word, weight * 0.5, width);
			continue;
		}
		if (b - a > 3 * gap)
			b -= gap; /* so adjacent calls are distinguishable */
		addSpan(a, b, word, weight, width);
		if (labels && b - a > 26 * gap)
			labels.push({a: Math.max(a, 0) / gap, b: Math.min(b, width) / gap, f, y: labels.y});
	}
}

function finishLine(width) {
	const {cover, best, word, pixels} = lines;
	const offset = lines.count++ * width;
	for (let x = 0; x < width; x++) {
		if (!cover[x])
			continue;
		const alpha = best[x] >= 20 ? 255 : Math.round(255 * Math.min(0.28 + 0.72 * cover[x], 1));
		pixels[offset + x] = word[x] | alpha << 24;
		cover[x] = 0;
		best[x] = 0;
	}
}

