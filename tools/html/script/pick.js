/* --- what is at a place --- */

function trackAt(y) {
	return visibleTracks().find((track) => y >= track.y && y < track.y + track.height);
}

/* The best of the calls at a depth that touch the stretch. isBetter(): whether one is better than the best so far, which may be null. */
function bestCall(isBetter, thread, depth, from, to, pixel = pixelNs() / view.ratio) {
	let best = null;
	for (const segment of readySegments(thread, levelFor(pixel), from, to, draw)) {
		const {rows} = segment;
		if (depth >= rows.depths)
			continue;
		for (let i = lowerBound(rows.end, rows.first[depth], rows.first[depth + 1], from); i < rows.first[depth + 1] && rows.start[i] <= to; i++) {
			const found = {thread, depth, start: rows.start[i], end: rows.end[i], fn: rows.fn[i], how: segment.sliver ? -1 : rows.how[i],
				calls: segment.sliver ? rows.calls[i] : 1, cover: segment.sliver ? rows.cover[i] / 255 : 1};
			if (isBetter(found, best))
				best = found;
		}
	}
	return best;
}

/* The longest call at a depth that touches the stretch; slivers only where there is no call. */
function callAt(thread, depth, from, to) {
	return bestCall((found, best) => !best || (found.how >= 0) > (best.how >= 0) ||
		((found.how >= 0) === (best.how >= 0) && found.end - found.start > best.end - best.start), thread, depth, from, to);
}

/* In a sampled trace a call ends when the next one begins, so adjacent calls touch each other's callers. */
function callerAt(call, depth, pixel) {
	return bestCall((found, best) => found.how >= 0 && found.start <= call.start && found.end >= call.end && (!best || found.start > best.start),
		call.thread, depth, call.start, call.end, pixel);
}

function firstInside(call) {
	return bestCall((found, best) => found.how >= 0 && found.start >= call.start && found.end <= call.end && (!best || found.start < best.start),
		call.thread, call.depth + 1, call.start, call.end);
}

/* What is under the pointer: a call, an instant, a point of the heap or of a counter, or nothing. */
function hit(x, y) {
	const top = byId('tracks').scrollTop;
	const track = trackAt(y + top);
	if (!track)
		return null;
	const time = timeAt(x);
	if (track.kind === 'heap') {
		const at = lowerBound(track.heap.time, 0, track.heap.time.length, time + 1e-9) - 1;
		return at < 0 ? null : {heap: track.heap, at, time};
	}
	if (track.kind === 'counter') {
		const at = valueAt(track.counter, time);
		return at < 0 ? null : {counter: track.counter, at};
	}
	if (track.kind === 'task') {
		const step = track.steps[stepAt(track.steps, timeAt(x - 1))];
		return step && step.start <= timeAt(x + 1) ? {task: track, step} : null;
	}
	if (track.kind !== 'thread')
		return null;
	const row = Math.floor((y + top - track.y - NAME_ROW) / rowHeight(track));
	if (row < 0) {
		let near = null;
		for (const instant of instants[track.thread])
			if (Math.abs(xOf(instant.time) - x) < 4 && (!near || Math.abs(instant.time - time) < Math.abs(near.time - time)))
				near = instant;
		return near && {instant: near};
	}
	if (row >= track.depth)
		return null;
	const call = callAt(track.thread, row, timeAt(x - 0.5), timeAt(x + 0.5));
	return call && {call};
}

function callText(call) {
	if (call.how < 0)
		return [`${plural(call.calls, 'short call', 'short calls')}`, `the longest is ${functionName(call.fn)}; zoom in to see them`];
	return [functionName(call.fn), `${duration(call.end - call.start)} · ${KINDS[call.how >> 3]}, ${ENDS[call.how & 7]}`, functionPlace(call.fn)];
}

function hitText(found) {
	if (found.call)
		return callText(found.call);
	if (found.instant)
		return [instantText(found.instant), `at ${moment(found.instant.time)}`];
	if (found.task)
		return [found.task.name, `${found.task.name.startsWith('span ') ? 'for' : 'a step of'} ${duration(found.step.end - found.step.start)}`, `at ${moment(found.step.start)}`,
			found.step.more ? textAt(found.step.more - 1) : ''];
	if (found.counter)
		return [`${found.counter.name} = ${numberText(found.counter.value[found.at])}`, `since ${moment(found.counter.time[found.at])}`];
	const {heap, at} = found;
	const look = lowerBound(heap.resident.time, 0, heap.resident.time.length, found.time + 1e-9) - 1;
	return [`${bytesText(heap.last[at])} in live blocks`, `at ${moment(found.time)}`,
		look < 0 ? '' : `${bytesText(heap.resident.bytes[look])} resident`,
		heap.width > 1 ? `${bytesText(heap.low[at])} to ${bytesText(heap.high[at])} within ${duration(heap.width)}` : ''];
}

function showTip(event, lines_) {
	const tip = byId('tip');
	if (!lines_) {
		tip.hidden = true;
		return;
	}
	tip.replaceChildren(element('b', {}, shorten(lines_[0], 300)), ...lines_.slice(1).filter(Boolean).map((line) => element('div', {}, shorten(line, 300))));
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
	tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}

/* --- selecting --- */

function selectCall(call) {
	selection.call = call;
	selection.fn = call ? call.fn : -1;
	showDetails();
	draw();
	drawFlame();
	markRow();
}

function showCall(call) {
	const span = Math.max((call.end - call.start) * 1.6, 1000);
	const middle = (call.start + call.end) / 2;
	setView(middle - span / 2, middle + span / 2);
	revealCall(call);
}

function revealCall(call) {
	const track = tracks.find((one) => one.thread === call.thread);
	if (!track.open) {
		track.open = true;
		placeTracks();
	}
	const y = track.y + NAME_ROW + call.depth * rowHeight(track);
	const box = byId('tracks');
	if (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight)
		box.scrollTop = Math.max(0, y - box.clientHeight / 3);
}

/* Goes to the longest call of a function, wherever it is. */
async function showLongest(fn) {
	if (!functions.longest[fn])
		return;
	const took = functions.longest[fn] - 1;
	const call = {thread: functions.longestThread[fn], start: functions.longestStart[fn], end: functions.longestStart[fn] + took, fn};
	setView(call.start - took * 0.3 - 300, call.end + took * 0.3 + 300);
	const needed = neededSegments(call.thread, levelFor(pixelNs() / view.ratio), view.from, view.to).filter((segment) => !segment.rows);
	await Promise.all(needed.map((segment) => loadBlock(segment.block)));
	for (let depth = 0; depth < meta.threads[call.thread].depth; depth++) {
		const found = callAt(call.thread, depth, call.start + took / 2, call.start + took / 2);
		if (found && found.fn === fn && found.start === call.start && found.end === call.end) {
			revealCall(found);
			selectCall(found);
			return;
		}
	}
	selection.fn = fn;
	showDetails();
}

/* The next call in the same row, in one direction. */
function stepSideways(direction) {
	const {call} = selection;
	const span = view.to - view.from;
	let next = null;
	for (const segment of readySegments(call.thread, levelFor(pixelNs() / view.ratio), call.start - span, call.end + span, draw)) {
		const {rows} = segment;
		if (segment.sliver || call.depth >= rows.depths)
			continue;
		const [low, high] = [rows.first[call.depth], rows.first[call.depth + 1]];
		let i = lowerBound(rows.start, low, high, direction > 0 ? call.start + 0.5 : call.start);
		i += direction > 0 ? 0 : -1;
		if (i >= low && i < high && (!next || (rows.start[i] - next.start) * direction < 0))
			next = {...call, start: rows.start[i], end: rows.end[i], fn: rows.fn[i], how: rows.how[i]};
	}
	return next;
}

function stepCall(key) {
	const {call} = selection;
	let next = null;
	if (!call) {
		const track = visibleTracks().find((one) => one.depth && one.open);
		next = track && callAt(track.thread, 0, view.from, view.to);
	} else if (key === 'ArrowUp') {
		next = call.depth ? callerAt(call, call.depth - 1) : null;
	} else if (key === 'ArrowDown') {
		next = firstInside(call);
	} else {
		next = stepSideways(key === 'ArrowRight' ? 1 : -1);
	}
	if (!next || next.how < 0)
		return;
	if (next.end < view.from || next.start > view.to) {
		const span = view.to - view.from;
		setView((next.start + next.end - span) / 2, (next.start + next.end + span) / 2);
	}
	revealCall(next);
	selectCall(next);
}

