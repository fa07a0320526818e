/*
 * page.c - the files of tools/html/ as parts of the program, and the page made from them. See page.h.
 *
 * The script is one for the browser: its parts follow each other in the order in which they stand here.
 */
#include "html/page.h"

#include <stdlib.h>

#include "util/asset.h"

#define FILE_OF(Name) ASSET_FILE("tools/html/" Name)
#define SCRIPT(Name) FILE_OF("script/" Name ".js")

ASSET("html_page", FILE_OF("report.html"));
ASSET("html_style", FILE_OF("shared.css") FILE_OF("report.css"));
ASSET("html_script", SCRIPT("shared") SCRIPT("report") SCRIPT("data") SCRIPT("levels") SCRIPT("aggregate")
			 SCRIPT("colours") SCRIPT("timeline") SCRIPT("draw") SCRIPT("draw_lines") SCRIPT("draw_labels")
			     SCRIPT("draw_tracks") SCRIPT("pick") SCRIPT("input") SCRIPT("weights") SCRIPT("sites")
				 SCRIPT("flame") SCRIPT("table") SCRIPT("details") SCRIPT("search") SCRIPT("page"));

extern const char page[] ASSET_SYMBOL("html_page"), page_end[] ASSET_SYMBOL("html_page_end");
extern const char style[] ASSET_SYMBOL("html_style"), style_end[] ASSET_SYMBOL("html_style_end");
extern const char script[] ASSET_SYMBOL("html_script"), script_end[] ASSET_SYMBOL("html_script_end");

/* Markers in report.html where the files are inserted; each occurs once, on its own line. */
#define STYLE_HERE "/* report.css */\n"
#define SCRIPT_HERE "/* report.js */\n"
#define DATA_HERE "<!-- data -->\n"

/* Writes the page from a position to a marker, or to its end. Returns the position after the marker. */
static const char *put_until(struct output *output, const char *from, const char *marker)
{
	const char *to = marker ? memmem(from, (size_t)(page_end - from), marker, strlen(marker)) : page_end;

	if (!to)
		abort(); /* report.html lacks the marker */
	output_put(output, from, (size_t)(to - from));
	return to + (marker ? strlen(marker) : 0);
}

void html_page_begin(struct output *output)
{
	const char *rest = put_until(output, page, STYLE_HERE);

	output_put(output, style, (size_t)(style_end - style));
	put_until(output, rest, DATA_HERE);
}

void html_page_end(struct output *output)
{
	const char *rest = memmem(page, (size_t)(page_end - page), DATA_HERE, strlen(DATA_HERE));

	rest = put_until(output, rest + strlen(DATA_HERE), SCRIPT_HERE);
	output_put(output, script, (size_t)(script_end - script));
	put_until(output, rest, NULL);
}
