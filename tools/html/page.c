/*
 * page.c - the files of tools/html/ as parts of the program, and the page made from them. See page.h.
 *
 * The assembler includes the files, which works with gcc and clang. The Makefile lists them as dependencies of this
 * file. The script is one for the browser: its parts follow each other in the order in which they stand here.
 */
#include "html/page.h"

#include <stdlib.h>

#define ASSET(Name, Files)                                                                                             \
	__asm__(".pushsection .rodata\n"                                                                               \
		"html_asset_" Name ":\n" Files "html_asset_" Name "_end:\n"                                            \
		".byte 0\n"                                                                                            \
		".balign 8\n"                                                                                          \
		".popsection\n")
#define FILE_OF(Name) ".incbin \"tools/html/" Name "\"\n"
#define SCRIPT(Name) FILE_OF("script/" Name ".js")

ASSET("page", FILE_OF("report.html"));
ASSET("style", FILE_OF("report.css"));
ASSET("script", SCRIPT("report") SCRIPT("data") SCRIPT("levels") SCRIPT("aggregate") SCRIPT("colours")
		    SCRIPT("timeline") SCRIPT("draw") SCRIPT("draw_lines") SCRIPT("draw_labels") SCRIPT("draw_tracks")
			SCRIPT("pick") SCRIPT("input") SCRIPT("weights") SCRIPT("sites") SCRIPT("flame") SCRIPT("table")
			    SCRIPT("details") SCRIPT("search") SCRIPT("page"));

extern const char page[] __asm__("html_asset_page"), page_end[] __asm__("html_asset_page_end");
extern const char style[] __asm__("html_asset_style"), style_end[] __asm__("html_asset_style_end");
extern const char script[] __asm__("html_asset_script"), script_end[] __asm__("html_asset_script_end");

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
