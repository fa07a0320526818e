/* Strokes from the lower left to the upper right, 6 pixels apart: what stands on them is not all that ran. */
function hatch(context, x, y, width, height) {
	context.save();
	context.beginPath();
	context.rect(x, y, width, height);
	context.clip();
	context.beginPath();
	const first = Math.floor((x - height) / 6) * 6; /* strokes go on in the next stretch */
	for (let at = first; at < x + width; at += 6) {
		context.moveTo(at, y + height);
		context.lineTo(at + height, y);
	}
	context.globalAlpha = 0.55;
	context.strokeStyle = palette.line;
	context.lineWidth = 1.5;
	context.stroke();
	context.restore();
}

/* Stretches in which functions were thinned, beneath the calls. Those of a pixel are drawn together. */
function drawThinned(context, track, top) {
	const list = thinned[track.thread];
	const height = track.height - NAME_ROW - 6;
	for (let i = stepAt(list, view.from); i < list.length && list[i].start <= view.to; i++) {
		const x = Math.max(xOf(list[i].start), 0);
		let end = list[i].end;
		while (i + 1 < list.length && xOf(list[i + 1].start) - xOf(end) < 1)
			end = list[++i].end;
		hatch(context, x, track.y + NAME_ROW - top, Math.min(xOf(end), view.width) - x, height);
	}
}

/* Draws the rows of a thread that are on the screen. */
function drawThread(context, track, top, labels) {
	const height = rowHeight(track);
	const y0 = track.y + NAME_ROW - top;
	const first = Math.max(0, Math.floor(-y0 / height));
	const last = Math.min(track.open ? track.depth : Math.min(track.depth, 6), Math.ceil((view.height - y0) / height));
	const width = canvases.calls.element.width;
	const list = readySegments(track.thread, levelFor(pixelNs() / view.ratio), view.from, view.to, draw);
	if (last <= first)
		return;
	prepareLines(width, last - first);
	const scale = width / (view.to - view.from);
	for (let depth = first; depth < last; depth++) {
		labels.y = y0 + depth * height;
		for (const segment of list)
			addRow(segment, depth, scale, width, height >= ROW ? labels : null);
		finishLine(width);
	}
	lines.context.putImageData(lines.image, 0, 0, 0, 0, width, last - first);
	context.imageSmoothingEnabled = false;
	for (let depth = first; depth < last; depth++)
		context.drawImage(lines.canvas, 0, depth - first, width, 1, 0, y0 + depth * height, view.width, height - (height > 6 ? 1 : 0));
}

const INSTANT_LOOKS = {10: ['bad', 5], 16: ['bad', 12], 26: ['accent', 12]};

/* Exceptions, marks, losses and the rest, as strokes in the line with the thread's name. */
function drawInstants(context, track, top) {
	const list = instants[track.thread];
	const y = track.y - top;
	let low = 0;
	for (let high = list.length; low < high;) {
		const middle = (low + high) >> 1;
		if (list[middle].time < view.from)
			low = middle + 1;
		else
			high = middle;
	}
	let before = -1;
	let labelled = -1;
	for (let i = low; i < list.length && list[i].time <= view.to; i++) {
		const x = Math.round(xOf(list[i].time));
		const [colour, height] = INSTANT_LOOKS[list[i].kind] || ['faint', 9];
		if (x === before && list[i].kind === 10)
			continue;
		before = x;
		context.fillStyle = palette[colour];
		context.fillRect(x, y + NAME_ROW - 2 - height, 1.5, height);
		if (list[i].kind !== 10 && x > labelled) {
			const text = shorten(instantText(list[i]), 40);
			const wide = context.measureText(text).width;
			const left = x + 6 + wide > view.width; /* no room at the right end */
			context.fillText(text, left ? x - 4 - wide : x + 4, y + 10);
			labelled = x + 12 + wide;
		}
	}
}

function instantText(instant) {
	switch (instant.kind) {
	case 10:
		return `exception ${textAt(instant.value)}`;
	case 16:
		return instant.value ? `${count(instant.value)} events lost` : 'events lost';
	case 22:
		return instant.value ? `fork of ${instant.value}` : 'fork failed';
	case 25:
		return instant.value & 256 ? `exit ${instant.value & 255}` : 'exit';
	case 26:
		return textAt(instant.value);
	case 27:
		return instant.value ? 'recording stops' : 'recording starts';
	default:
		return INSTANTS[instant.kind] || '';
	}
}

/* The first step of a task that ends at a time or later. */
function stepAt(steps, time) {
	let low = 0;
	for (let high = steps.length; low < high;) {
		const middle = (low + high) >> 1;
		if (steps[middle].end < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

function drawTask(context, track, y) {
	context.fillStyle = palette.accent;
	for (let i = stepAt(track.steps, view.from), before = -1; i < track.steps.length && track.steps[i].start <= view.to; i++) {
		const x = Math.max(xOf(track.steps[i].start), -1, before);
		const end = Math.max(xOf(track.steps[i].end), x + 1);
		before = Math.floor(end);
		context.fillRect(x, y + 2, Math.min(end, view.width + 1) - x, NAME_ROW - 5);
	}
}

/* The last value before a time or at it; -1: none. */
function valueAt(counter, time) {
	let low = 0;
	for (let high = counter.time.length; low < high;) {
		const middle = (low + high) >> 1;
		if (counter.time[middle] <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/* A counter keeps its value until it is set again. The line of 0 is always there. */
function drawCounter(context, track, top) {
	const {counter} = track;
	const bottom = track.y - top + track.height - 4;
	const yOf = (value) => bottom - ((track.height - 10) * (value - counter.least)) / (counter.most - counter.least || 1);
	const right = Math.min(xOf(meta.to), view.width + 10);
	let at = Math.max(valueAt(counter, view.from), 0);
	let y = yOf(counter.value[at]);
	const left = Math.max(xOf(counter.time[at]), -10);
	context.beginPath();
	context.moveTo(left, yOf(0));
	context.lineTo(left, y);
	for (at++; at < counter.time.length && counter.time[at] <= view.to; at++) {
		const x = xOf(counter.time[at]);
		context.lineTo(x, y);
		y = yOf(counter.value[at]);
		context.lineTo(x, y);
	}
	context.lineTo(right, y);
	context.lineTo(right, yOf(0));
	context.globalAlpha = 0.25;
	context.fillStyle = palette.accent;
	context.fill();
	context.globalAlpha = 1;
	context.strokeStyle = palette.accent;
	context.lineWidth = 1;
	context.stroke();
}

function drawHeap(context, track, top) {
	const {heap} = track;
	if (!heap.time.length)
		return;
	const bottom = track.y - top + track.height - 3;
	const tall = track.height - 10;
	const yOf = (value) => bottom - (tall * value) / (heap.top || 1);
	const first = Math.max(lowerBound(heap.time, 0, heap.time.length, view.from) - 1, 0);
	context.beginPath();
	context.moveTo(Math.max(xOf(heap.time[first]), -10), bottom);
	let y = yOf(heap.last[first]);
	for (let i = first; i < heap.time.length && heap.time[i] <= view.to; i++) {
		const x = Math.min(Math.max(xOf(heap.time[i]), -10), view.width + 10);
		if (i > first)
			context.lineTo(x, y); /* the value holds until it changes */
		context.lineTo(x, yOf(heap.high[i]));
		y = yOf(heap.last[i]);
		context.lineTo(Math.min(xOf(heap.time[i] + heap.width), view.width + 10), y);
	}
	context.lineTo(Math.min(xOf(meta.to), view.width + 10), y);
	context.lineTo(Math.min(xOf(meta.to), view.width + 10), bottom);
	context.globalAlpha = 0.3;
	context.fillStyle = palette.curve;
	context.fill();
	context.globalAlpha = 1;
	context.strokeStyle = palette.curve;
	context.lineWidth = 1;
	context.stroke();
	drawResident(context, heap.resident, yOf);
	drawHeapMoments(context, heap, track.y - top, track.height);
}

/* The resident size, on the scale of the heap: a line from look to look. */
function drawResident(context, {time, bytes}, yOf) {
	const first = Math.max(lowerBound(time, 0, time.length, view.from) - 1, 0);
	context.beginPath();
	for (let i = first, y = 0; i < time.length && (i === first || time[i - 1] <= view.to); i++) {
		const x = Math.min(Math.max(xOf(time[i]), -10), view.width + 10);
		if (i > first)
			context.lineTo(x, y); /* as last seen */
		y = yOf(bytes[i]);
		context.lineTo(x, y);
		if (i === time.length - 1)
			context.lineTo(Math.min(xOf(meta.to), view.width + 10), y);
	}
	context.strokeStyle = palette.faint;
	context.lineWidth = 1;
	context.stroke();
}

/* When most was alive, and when the program had run. */
function drawHeapMoments(context, heap, y, height) {
	const picked = !byId('panel_sites').hidden && sites.heap === heap && !selection.stretch ? sites.time : null;
	const moments = [[heap.peakTime, `peak ${bytesText(heap.peak)}`, 'peak'], [heap.end, 'end of the program', 'live'], [picked, '', 'sites']];
	context.lineWidth = 1;
	for (const [time, text, key] of moments) {
		const x = time === null || !heap.peak ? -1 : Math.round(xOf(time)) + 0.5;
		if (x < 0 || x > view.width)
			continue;
		const strong = weight.key === key || key === 'sites';
		context.strokeStyle = palette[strong ? 'accent' : 'faint'];
		context.setLineDash(strong ? [] : [2, 3]);
		context.beginPath();
		context.moveTo(x, y + 1);
		context.lineTo(x, y + height - 3);
		context.stroke();
		context.setLineDash([]);
		if (height < HIGH_HEAP_ROW || !text)
			continue;
		const wide = context.measureText(text).width;
		const left = x + 8 + wide > view.width;
		const at = left ? x - 5 - wide : x + 5;
		/* The one text below the other: the two moments may be the same. */
		const row = y + (key === 'peak' ? 11 : 28);
		context.globalAlpha = 0.8;
		context.fillStyle = palette.back;
		context.fillRect(at - 2, row - 8, wide + 4, 15);
		context.globalAlpha = 1;
		context.fillStyle = palette[strong ? 'accent' : 'faint'];
		context.fillText(text, at, row);
	}
}

function drawTracks() {
	const canvas = canvases.calls;
	const {context} = canvas;
	const box = byId('tracks');
	view.height = box.clientHeight;
	for (const line of ['overview_line', 'ruler_line'])
		byId(line).style.paddingRight = `${box.offsetWidth - box.clientWidth}px`;
	view.width = Math.max(canvas.element.clientWidth, 1);
	byId('window').style.height = `${view.height}px`;
	if (!fit(canvas, view.width, view.height))
		return;
	view.ratio = canvas.element.width / view.width;
	const top = box.scrollTop;
	const shown = visibleTracks();
	drawNames(shown);
	drawGrid(context);
	const labels = [];
	for (const track of shown) {
		const y = track.y - top;
		if (track.kind === 'process') {
			context.fillStyle = palette.raised;
			context.fillRect(0, y, view.width, PROCESS_ROW - 1);
			context.fillStyle = palette.line;
			context.fillRect(0, y + PROCESS_ROW - 1, view.width, 1);
			context.fillStyle = palette.faint;
			context.fillText(meta.processes[track.process].arguments.map((i) => textAt(i)).join(' ').slice(0, 300), 6, y + 13);
		} else if (track.kind === 'heap') {
			drawHeap(context, track, top);
		} else if (track.kind === 'counter') {
			drawCounter(context, track, top);
		} else if (track.kind === 'task') {
			drawTask(context, track, track.y - top);
		} else {
			drawThinned(context, track, top);
			drawThread(context, track, top, labels);
			drawInstants(context, track, top);
		}
	}
	drawLabels(context, labels);
	drawStretch(context, view.height);
	drawMarked(context, top);
}

function drawGrid(context) {
	const step = Math.max(rulerStep(90), 1);
	context.strokeStyle = palette.line;
	context.globalAlpha = 0.5;
	context.lineWidth = 1;
	context.beginPath();
	for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
		const x = Math.round(xOf(k * step)) + 0.5;
		context.moveTo(x, 0);
		context.lineTo(x, view.height);
	}
	context.stroke();
	context.globalAlpha = 1;
}

/* A frame around the call that is selected. */
function drawMarked(context, top) {
	const {call} = selection;
	const track = call && tracks.find((one) => one.thread === call.thread);
	if (!track)
		return;
	const height = rowHeight(track);
	const y = track.y + NAME_ROW + call.depth * height - top;
	const a = Math.max(xOf(call.start), -4);
	const b = Math.min(xOf(call.end), view.width + 4);
	context.strokeStyle = palette.accent;
	context.lineWidth = 2;
	context.strokeRect(a - 1, y - 1, Math.max(b - a, 1) + 1, height + 1);
}

