/* ---- tables ------------------------------------------------------------------------------------------------------ */

const classOf = (column) => [column.left ? 'left' : '', column.group || ''].join(' ').trim() || null;

/*
 * columns: {title, hint, text(row), left, group, share(row), sort, node(row), update(cell, row)}. Rows stay in place between two refreshes, by
 * their keys, so that the focus and a click find them.
 */
class Table {
	constructor(id, columns, {key, pick, sort, sortable}) {
		this.table = byId(id);
		this.columns = columns;
		this.key = key;
		this.pick = pick;
		this.sort = sort;
		this.made = new Map();
		this.table.tHead.replaceChildren(element('tr', {}, ...columns.map((column) => this.head(column, sortable))));
		if (pick)
			this.table.tBodies[0].addEventListener('keydown', (event) => this.step(event));
	}

	head(column, sortable) {
		const by = sortable && column.sort;
		return element('th', {scope: 'col', class: classOf(column), 'data-sort': by || null},
			by ? element('button', {type: 'button', title: column.hint || '', onclick: () => sortable(by)}, column.title)
				: element('span', {title: column.hint || ''}, column.title));
	}

	step(event) {
		const row = event.target.closest('tr');
		const next = event.key === 'ArrowDown' ? row.nextElementSibling : event.key === 'ArrowUp' ? row.previousElementSibling : null;
		if (next)
			next.focus();
		else if (event.key === 'Enter')
			this.pick(row.data);
		else
			return;
		event.preventDefault();
	}

	makeRow() {
		const row = element('tr', this.pick ? {tabindex: 0} : {}, ...this.columns.map((column) => element('td', {class: classOf(column)})));
		if (this.pick)
			row.addEventListener('click', () => this.pick(row.data));
		return row;
	}

	fillRow(row, data) {
		row.data = data;
		this.columns.forEach((column, i) => {
			const cell = row.cells[i];
			if (column.node) {
				if (!cell.firstChild)
					cell.append(column.node(row));
				if (column.update)
					column.update(cell, data);
				return;
			}
			setText(cell, column.text(data));
			if (column.title_of)
				cell.title = column.title_of(data);
			if (column.share) {
				cell.classList.add('share');
				cell.style.setProperty('--share', `${Math.min(100, 100 * column.share(data)).toFixed(1)}%`);
			}
		});
	}

	fill(rows, selected = null) {
		const old = this.made, body = this.table.tBodies[0];
		this.made = new Map();
		for (const th of this.table.tHead.rows[0].cells) {
			if (th.dataset.sort && th.dataset.sort === this.sort())
				th.setAttribute('aria-sort', 'descending');
			else
				th.removeAttribute('aria-sort');
		}
		for (const data of rows) {
			const key = this.key(data);
			if (this.made.has(key))
				continue;
			const row = old.get(key) || this.makeRow();
			this.fillRow(row, data);
			row.classList.toggle('selected', key === selected);
			this.made.set(key, row);
		}
		const wanted = [...this.made.values()];
		for (const [key, row] of old)
			if (!this.made.has(key))
				row.remove();
		wanted.forEach((row, i) => {
			if (body.rows[i] !== row) {
				const focused = row === document.activeElement;
				body.insertBefore(row, body.rows[i] || null);
				if (focused)
					row.focus({preventScroll: true});
			}
		});
	}
}

/* The line under an empty table. */
function showNone(panel, text) {
	const none = byId(panel).querySelector('.none');
	none.hidden = !text;
	setText(none, text);
}
