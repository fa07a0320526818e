/* ---- threads and tasks ------------------------------------------------------------------------------------------- */

const threadBoxes = new Map(); /* by pid and tid */

function makeThread() {
	const box = element('article', {class: 'thread'});
	box.head = element('h3', {});
	box.facts = element('p', {class: 'faint'});
	box.list = element('ol', {class: 'stack'});
	box.append(box.head, box.facts, box.list);
	return box;
}

function frameItem(frame) {
	const line = frame.at && frame.file !== '~' ? `${shortPath(frame.file)}:${frame.at}` : place(frame);
	return element('li', {}, element('button', {type: 'button', class: 'link', title: longPlace(frame), onclick: () => lookAt(frame.id)}, frame.function),
		element('span', {class: 'place'}, line));
}

function fillThread(box, thread) {
	const frames = thread.stack || [], text = JSON.stringify([frames, thread.depth]);
	setText(box.head, `${thread.name || 'thread'} · ${thread.pid === thread.tid ? thread.pid : `${thread.pid} / ${thread.tid}`}`);
	setText(box.facts, `${percent(ofStretch(thread.own_ns))} in Python, ${short(rate(thread.calls))} calls/s`);
	if (box.dataset.frames === text || box.contains(document.activeElement))
		return;
	box.dataset.frames = text;
	box.list.replaceChildren(...frames.map(frameItem));
	if (thread.depth > frames.length)
		box.list.append(element('li', {class: 'faint'}, `… and ${plural(thread.depth - frames.length, 'caller', 'callers')}`));
	if (!frames.length)
		box.list.append(element('li', {class: 'faint'}, 'no Python function runs'));
}

function showThreads(live) {
	const wanted = new Set();
	for (const thread of live.threads) {
		const key = `${thread.pid} ${thread.tid}`;
		if (wanted.has(key))
			continue;
		wanted.add(key);
		if (!threadBoxes.has(key)) {
			threadBoxes.set(key, makeThread());
			byId('threads').append(threadBoxes.get(key));
		}
		fillThread(threadBoxes.get(key), thread);
	}
	for (const [key, box] of threadBoxes)
		if (!wanted.has(key)) {
			box.remove();
			threadBoxes.delete(key);
		}
	showNone('panel_threads', live.threads.length ? '' : 'No thread is recorded.');
}

const taskTable = new Table('tasks', [
	{title: 'steps/s', text: (row) => short(rate(row.steps))},
	{title: 'pid', text: (row) => String(row.pid)},
	{title: 'thread', text: (row) => String(row.tid)},
	{title: 'name', left: true, text: (row) => row.name},
	{title: 'coroutine', left: true, text: (row) => row.function},
	{title: 'place', left: true, text: place, title_of: longPlace},
], {key: (row) => row.number, sort: () => '', pick: (row) => lookAt(row.id)});

function showTasks(live) {
	taskTable.fill(live.tasks.map((row, number) => ({...row, number})));
	showNone('panel_tasks', live.tasks.length ? '' : 'No task took a step in the last refresh. Tasks are those of asyncio and of trio.');
}
