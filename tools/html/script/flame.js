/* ---- flame graph ------------------------------------------------------------------------------------------------- */

const FLAME_ROW = 19;
const flame = {root: 0, focus: 0, boxes: [], hover: 0};

function nodeName(node) {
	const {tree} = shown;
	if (!node)
		return 'all processes';
	return tree.parent[node] ? functionName(tree.fn[node]) : processName(tree.process[node]);
}

/* One process needs no root of its own above it. */
function topNode() {
	const {tree} = shown;
	return tree.first[1] - tree.first[0] === 1 ? tree.order[tree.first[0]] : 0;
}

function layoutFlame() {
	const {tree} = shown;
	const base = tree.depth[flame.root || topNode()];
	let deepest = base;
	const stack = [flame.root || topNode()];
	while (stack.length) {
		const node = stack.pop();
		deepest = Math.max(deepest, tree.depth[node]);
		for (let k = tree.first[node]; k < tree.first[node + 1] && tree.total[tree.order[k]] > 0; k++)
			stack.push(tree.order[k]);
	}
	byId('flame_height').style.height = `${(deepest - base + 1) * FLAME_ROW + 6}px`;
	drawCrumbs();
	drawFlame();
}

function drawCrumbs() {
	const {tree} = shown;
	const path = [];
	for (let node = flame.root || topNode(); ; node = tree.parent[node]) {
		path.unshift(node);
		if (!node || node === topNode())
			break;
	}
	const total = tree.total[topNode()] || 1;
	const short = path.length > 6 ? [path[0], -1, ...path.slice(-4)] : path;
	byId('crumbs').replaceChildren(...short.flatMap((node, i) => {
		const arrow = i ? [' › '] : [];
		if (node < 0)
			return [...arrow, '…'];
		return [...arrow, element('button', {type: 'button', onclick: () => zoomFlame(node)}, shorten(nodeName(node), 60))];
	}), ` · ${amount(tree.total[flame.root || topNode()])}, ${((100 * tree.total[flame.root || topNode()]) / total).toFixed(1)} %${shown.least ? ` · stacks below ${shown.least} are left out` : ''}`);
}

function zoomFlame(node) {
	flame.root = node === topNode() ? 0 : node;
	flame.focus = node;
	byId('flame_box').scrollTop = 0;
	layoutFlame();
}

function drawFlame() {
	if (!shown || byId('panel_flame').hidden)
		return;
	requestAnimationFrame(drawFlameNow);
}

function drawFlameNow() {
	const canvas = canvases.flame;
	const {context} = canvas;
	const box = byId('flame_box');
	const width = byId('flame_height').clientWidth;
	const height = box.clientHeight;
	if (!fit(canvas, width, height))
		return;
	const {tree} = shown;
	const root = flame.root || topNode();
	const total = tree.total[root];
	flame.boxes = [];
	if (!total) {
		context.fillStyle = palette.faint;
		context.fillText(weight.none, 10, 16);
		return;
	}
	const scale = width / total;
	const stack = [[root, 0, -box.scrollTop]];
	const labels = [];
	while (stack.length) {
		const [node, x, y] = stack.pop();
		const wide = tree.total[node] * scale;
		if (y > -FLAME_ROW)
			drawFlameBox(context, node, x, y, wide, labels);
		let at = x;
		for (let k = tree.first[node]; k < tree.first[node + 1] && y + FLAME_ROW < height; k++) {
			const child = tree.order[k];
			if (tree.total[child] * scale < 0.4)
				break; /* they come in order of size */
			stack.push([child, at, y + FLAME_ROW]);
			at += tree.total[child] * scale;
		}
	}
	drawLabels(context, labels);
}

function drawFlameBox(context, node, x, y, wide, labels) {
	const {tree} = shown;
	const fn = tree.parent[node] ? tree.fn[node] : -1;
	flame.boxes.push([x, y, wide, node]);
	context.fillStyle = fn < 0 ? palette.bar : cssColour(functionWord(fn));
	context.fillRect(x, y, Math.max(wide - (wide > 3 ? 1 : 0), 0.5), FLAME_ROW - 1);
	if (node === flame.focus || (fn >= 0 && fn === selection.fn && wide > 2)) {
		context.strokeStyle = palette.accent;
		context.lineWidth = 2;
		context.strokeRect(x + 1, y + 1, Math.max(wide - 3, 1), FLAME_ROW - 3);
	}
	if (wide < 26)
		return;
	context.fillStyle = palette.text;
	if (fn >= 0) {
		labels.push({a: x, b: x + wide - 1, f: fn, y});
		return;
	}
	context.fillText(cutText(context, `${nodeName(node)} · ${amount(tree.total[node])}`, wide - 9), x + 4, y + FLAME_ROW / 2);
}

function flameAt(x, y) {
	const found = flame.boxes.find(([a, b, wide]) => x >= a && x < a + Math.max(wide, 1) && y >= b && y < b + FLAME_ROW);
	return found ? found[3] : -1;
}

/* How many calls, or in how many blocks; where those are the weight, how many bytes. */
function nodeNumber(node) {
	const {tree} = shown;
	if (!node || (!weight.memory && !tree.parent[node]))
		return '';
	if (!weight.memory)
		return plural(tree.calls[node], ...seen);
	if (weight.memory.only)
		return '';
	return weight.memory.unit === 'blocks' ? bytesText(tree.bytes[node]) : plural(tree.calls[node], ...weight.memory.blocks);
}

function nodeText(node) {
	const {tree} = shown;
	const share = `${((100 * tree.total[node]) / (tree.total[topNode()] || 1)).toFixed(2)} %`;
	return [nodeName(node), `${amount(tree.total[node])} (${share}), ${amount(tree.total[node] - tree.inner[node])} of it by itself`,
		nodeNumber(node), tree.parent[node] ? functionPlace(tree.fn[node]) : ''];
}

function focusNode(node) {
	const {tree} = shown;
	flame.focus = node;
	selection.call = null;
	selection.fn = tree.parent[node] ? tree.fn[node] : -1;
	showDetails(node);
	drawFlame();
	draw();
	markRow();
}

function stepFlame(key) {
	const {tree} = shown;
	const node = flame.focus || topNode();
	const parent = tree.parent[node];
	if (key === 'ArrowUp' && node !== (flame.root || topNode()))
		return parent;
	if (key === 'ArrowDown' && tree.first[node] < tree.first[node + 1] && tree.total[tree.order[tree.first[node]]] > 0)
		return tree.order[tree.first[node]];
	if (key !== 'ArrowLeft' && key !== 'ArrowRight')
		return node;
	const siblings = tree.order.subarray(tree.first[parent], tree.first[parent + 1]);
	const at = siblings.indexOf(node) + (key === 'ArrowRight' ? 1 : -1);
	return at >= 0 && at < siblings.length && tree.total[siblings[at]] > 0 && node !== topNode() ? siblings[at] : node;
}

function listenFlame() {
	const target = canvases.flame.element;
	target.addEventListener('pointermove', (event) => {
		const node = flameAt(event.offsetX, event.offsetY);
		showTip(event, node >= 0 ? nodeText(node) : null);
	});
	target.addEventListener('pointerleave', (event) => showTip(event, null));
	target.addEventListener('click', (event) => {
		const node = flameAt(event.offsetX, event.offsetY);
		if (node < 0)
			return;
		if (node === (flame.root || topNode()) && flame.root)
			zoomFlame(shown.tree.parent[node]);
		else
			zoomFlame(node);
		focusNode(node);
	});
	target.addEventListener('keydown', (event) => {
		if (event.key.startsWith('Arrow')) {
			focusNode(stepFlame(event.key));
			event.preventDefault();
			event.stopPropagation();
		} else if (event.key === 'Enter') {
			zoomFlame(flame.focus || topNode());
		} else if (event.key === 'Escape') {
			zoomFlame(flame.root ? shown.tree.parent[flame.root] : 0);
		}
	});
	byId('flame_box').addEventListener('scroll', drawFlame);
}

