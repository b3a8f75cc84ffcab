/* The HEAD of a file that a digest test writes. */
#ifndef DIGEST_FIXTURE_H
#define DIGEST_FIXTURE_H

#include "base/fn.h"
#include "format/tft_write.h"

static const struct tfh_fn_info no_function = {.name = ""};
static const struct tft_head empty_head = {.host = "",
					   .exe = "",
					   .command = "",
					   .boot_id = "",
					   .tfhook_version = "",
					   .job = "",
					   .journal_path = "",
					   .fn = &no_function,
					   .fn_count = 1,
					   .tick_hz = 1000000000};

#endif
