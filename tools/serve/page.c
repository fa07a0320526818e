/*
 * page.c - see page.h. The script is one for the browser: its parts follow each other in the order in which they stand
 * here.
 */
#include "serve/page.h"

#include "util/asset.h"

#define FILE_OF(Name) ASSET_FILE("tools/serve/page/" Name)
#define SHARED(Name) ASSET_FILE("tools/html/" Name)

ASSET("serve_page", FILE_OF("serve.html"));
ASSET("serve_style", SHARED("shared.css") FILE_OF("serve.css"));
ASSET("serve_script",
      SHARED("script/shared.js") FILE_OF("base.js") FILE_OF("format.js") FILE_OF("chart.js") FILE_OF("table.js")
	  FILE_OF("functions.js") FILE_OF("processes.js") FILE_OF("threads.js") FILE_OF("live.js"));

extern const char page[] ASSET_SYMBOL("serve_page"), page_end[] ASSET_SYMBOL("serve_page_end");
extern const char style[] ASSET_SYMBOL("serve_style"), style_end[] ASSET_SYMBOL("serve_style_end");
extern const char script[] ASSET_SYMBOL("serve_script"), script_end[] ASSET_SYMBOL("serve_script_end");

struct text serve_page(enum serve_place place)
{
	if (place == SERVE_PAGE)
		return (struct text){.at = page, .length = (size_t)(page_end - page)};
	if (place == SERVE_STYLE)
		return (struct text){.at = style, .length = (size_t)(style_end - style)};
	return (struct text){.at = script, .length = (size_t)(script_end - script)};
}

void serve_put_html(struct output *output, struct text text)
{
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] == '<' || text.at[i] == '>' || text.at[i] == '&')
			output_format(output, "&#%d;", text.at[i]);
		else if ((unsigned char)text.at[i] >= ' ')
			output_char(output, text.at[i]);
	}
}
