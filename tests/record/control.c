/* control JOURNAL SET CLEAR STEPS: changes the control word of a running recorder, as `tfhook ctl`
 * does. */
#include <stdio.h>
#include <stdlib.h>

#include "format/journal_view.h"

int main(int argc, char **argv)
{
	struct tfh_err err = {0};
	struct tft_view *view;

	if (argc != 5)
		return 2;
	if (tft_view_open(argv[1], &view, &err) ||
	    tft_view_set_control(view, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]),
				 (uint32_t)atoi(argv[4]), &err)) {
		puts(err.text);
		return 1;
	}
	tft_view_close(view);
	return 0;
}
