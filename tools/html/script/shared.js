/* shared.js - what the scripts of the HTML report and of the page of evprof serve begin with. */
'use strict';

const byId = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString('en-GB');
const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith('on'))
			made.addEventListener(name.slice(2), value);
		else if (value !== null)
			made.setAttribute(name, value);
	}
	made.append(...children);
	return made;
}

