/* --- pointer --- */

function listenTracks() {
	const target = canvases.calls.element;
	const box = byId('tracks');
	let drag = null;
	target.addEventListener('wheel', (event) => {
		const unit = event.deltaMode === 1 ? 20 : event.deltaMode === 2 ? 400 : 1;
		event.preventDefault();
		showTip(event, null);
		if (event.shiftKey) {
			box.scrollTop += (event.deltaY || event.deltaX) * unit;
			return;
		}
		if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			const by = event.deltaX * unit * pixelNs();
			setView(view.from + by, view.to + by);
			return;
		}
		zoomAt(Math.exp(Math.min(Math.max(event.deltaY * unit, -200), 200) * (event.ctrlKey ? 0.01 : 0.0022)), event.offsetX);
	}, {passive: false});
	target.addEventListener('pointerdown', (event) => {
		if (event.button > 1)
			return;
		target.setPointerCapture(event.pointerId);
		drag = {x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, top: box.scrollTop, moved: false, stretch: event.shiftKey};
	});
	target.addEventListener('pointermove', (event) => {
		if (!drag) {
			const found = hit(event.offsetX, event.offsetY);
			showTip(event, found && hitText(found));
			return;
		}
		drag.moved ||= Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 4;
		if (!drag.moved)
			return;
		showTip(event, null);
		if (drag.stretch) {
			dragStretch(drag.x, event.offsetX);
			return;
		}
		const by = ((drag.x - event.offsetX) * (drag.to - drag.from)) / view.width;
		box.scrollTop = drag.top + drag.y - event.offsetY;
		target.style.cursor = 'grabbing';
		setView(drag.from + by, drag.to + by);
	});
	const drop = (event) => {
		if (drag && !drag.moved && event.type === 'pointerup') {
			const found = hit(event.offsetX, event.offsetY);
			selectCall(found && found.call ? found.call : null);
			if (found && found.heap && memory)
				showMoment(found.heap, found.time);
		}
		if (drag && drag.stretch && drag.moved)
			stretchChosen();
		drag = null;
		target.style.cursor = '';
	};
	target.addEventListener('pointerup', drop);
	target.addEventListener('pointercancel', drop);
	target.addEventListener('pointerleave', (event) => showTip(event, null));
	target.addEventListener('dblclick', (event) => {
		const found = hit(event.offsetX, event.offsetY);
		if (found && found.call)
			showCall(found.call);
	});
	box.addEventListener('scroll', draw);
}

function dragStretch(x0, x1) {
	const [a, b] = [timeAt(Math.min(x0, x1)), timeAt(Math.max(x0, x1))];
	selection.stretch = {from: Math.max(Math.round(a), meta.from), to: Math.min(Math.round(b), meta.to)};
	draw();
}

function listenRuler() {
	const target = canvases.ruler.element;
	let start = null;
	let moved = false;
	target.addEventListener('pointerdown', (event) => {
		if (event.button)
			return;
		target.setPointerCapture(event.pointerId);
		start = event.offsetX;
		moved = false;
	});
	target.addEventListener('pointermove', (event) => {
		if (start === null || !event.buttons)
			return;
		moved = Math.abs(event.offsetX - start) > 2;
		if (moved)
			dragStretch(start, event.offsetX);
	});
	const drop = (event) => {
		if (start !== null && moved)
			stretchChosen();
		else if (start !== null && event.type === 'pointerup')
			clearStretch();
		start = null;
	};
	target.addEventListener('pointerup', drop);
	target.addEventListener('pointercancel', drop);
	const overview = canvases.overview.element;
	const move = (event) => {
		if (!(event.buttons & 1))
			return;
		const at = meta.from + (event.offsetX / overview.clientWidth) * SPAN;
		const span = Math.min(view.to - view.from, SPAN);
		setView(at - span / 2, at + span / 2);
	};
	overview.addEventListener('pointerdown', (event) => {
		overview.setPointerCapture(event.pointerId);
		move(event);
	});
	overview.addEventListener('pointermove', move);
}

/* --- keys --- */

const pressed = new Set();
let moving = 0;

function moveWhilePressed(now) {
	const passed = Math.min(now - moving, 50);
	moving = now;
	const by = pixelNs() * view.width * passed * 0.0011 * ((pressed.has('d') ? 1 : 0) - (pressed.has('a') ? 1 : 0));
	const zoom = (pressed.has('s') ? 1 : 0) - (pressed.has('w') ? 1 : 0);
	if (by)
		setView(view.from + by, view.to + by);
	if (zoom)
		zoomAt(Math.exp(zoom * passed * 0.004), view.width / 2);
	if (pressed.size)
		requestAnimationFrame(moveWhilePressed);
}

function giveUp() {
	if (byId('query').value) {
		byId('query').value = '';
		search();
	} else if (selection.call || selection.fn >= 0) {
		selectCall(null);
	} else if (selection.stretch) {
		clearStretch();
	}
}

function zoomToSelection() {
	if (selection.call)
		showCall(selection.call);
	else if (selection.stretch)
		setView(selection.stretch.from, selection.stretch.to);
}

const KEYS = {
	'0': wholeView,
	f: zoomToSelection,
	c: () => {
		view.low = !view.low;
		placeTracks();
	},
	m: nextWeight,
	'/': () => byId('query').focus(),
	'?': () => byId('help').showModal(),
	Escape: giveUp,
};

function listenKeys() {
	addEventListener('keydown', (event) => {
		if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open)
			return;
		if (event.target.tagName === 'INPUT') {
			if (event.key === 'Escape')
				giveUp();
			return;
		}
		if (event.target.tagName === 'SELECT' && event.key !== 'Escape')
			return; /* letters select an entry there */
		const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
		if ('wasd'.includes(key)) {
			if (!pressed.size) {
				moving = performance.now() - 16;
				requestAnimationFrame(moveWhilePressed);
			}
			pressed.add(key);
		} else if (KEYS[key] && !(key === 'Escape' && event.target === canvases.flame.element)) {
			KEYS[key]();
			event.preventDefault();
		} else if (key.startsWith('Arrow') && (event.target === canvases.calls.element || event.target === document.body)) {
			stepCall(key);
			event.preventDefault();
		}
	});
	addEventListener('keyup', (event) => pressed.delete(event.key.length === 1 ? event.key.toLowerCase() : event.key));
	addEventListener('blur', () => pressed.clear());
}

