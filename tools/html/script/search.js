/* ---- search ------------------------------------------------------------------------------------------------------ */

let foundAt = -1;

function matcher(text) {
	if (text.startsWith('re:')) {
		const expression = new RegExp(text.slice(3), 'i');
		return (candidate) => expression.test(candidate);
	}
	const lower = text.toLowerCase();
	return (candidate) => candidate.toLowerCase().includes(lower);
}

/* Time in which one of the found functions ran, or what it allocated: the outermost of them in each stack. */
function foundAmount() {
	const {tree} = shown;
	const inside = new Uint8Array(tree.size);
	let sum = 0;
	for (let node = 1; node < tree.size; node++) {
		inside[node] = inside[tree.parent[node]];
		if (tree.parent[node] && functions.match[tree.fn[node]] && !inside[node]) {
			inside[node] = 1;
			sum += tree.total[node];
		}
	}
	return sum;
}

function tellFound() {
	if (!functions.match) {
		byId('found').textContent = '';
		return;
	}
	/* In a stretch of time, the functions of the whole run. */
	const of = weight.memory ? shown.totalBlocks : whole.calls.map((calls, f) => calls || whole.own[f] || whole.total[f]);
	const share = shown.tree.total[0] ? (100 * foundAmount()) / shown.tree.total[0] : 0;
	const sum = functions.match.reduce((found, match, f) => found + (match && of[f] ? 1 : 0), 0);
	byId('found').textContent = `${plural(sum, 'function', 'functions')}, ${share.toFixed(1)} % ${weight.of}`;
}

function search() {
	const text = byId('query').value;
	foundAt = -1;
	functions.match = null;
	byId('query').setAttribute('aria-invalid', 'false');
	if (text) {
		let matches = null;
		try {
			matches = matcher(text);
		} catch {
			byId('query').setAttribute('aria-invalid', 'true');
			byId('found').textContent = 'not a regular expression';
		}
		if (matches)
			functions.match = Uint8Array.from({length: functions.count}, (_, f) => matches(functionName(f)) || matches(functionStandard(f)));
		if (matches)
			tellFound();
	} else {
		tellFound();
	}
	fillTable();
	draw();
	drawFlame();
}

function nextFound() {
	if (!functions.match)
		return;
	const list = [...functions.match.keys()].filter((f) => functions.match[f] && functions.longest[f]).sort((a, b) => functions.total[b] - functions.total[a]);
	if (!list.length)
		return;
	foundAt = (foundAt + 1) % list.length;
	showLongest(list[foundAt]);
}

