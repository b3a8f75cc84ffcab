/*
 * What the name of a Python function shows. Profilers write `file(line): function`, `nn.Module:
 * Linear_0`, `<built-in method acquire of _thread.lock object at 0x7f...>` or `$file:line
 * function`; JAX's newer ones `$<unknown> acquire` of a builtin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/packages.h"
#include "base/text.h"
#include "judge/facts/cover.h"
#include "model/symbols/pylines.h"

/* The name of a builtin; NULL: it is another function. */
static const char *builtin_in(const char *s)
{
	static const char *const before[] = {"<built-in method ", "<built-in function ",
					     "$builtins ", "$time ", "$<unknown> "};

	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++)
		if (tfh_starts_with(s, before[i]))
			return s + strlen(before[i]);
	return NULL;
}

/* Whether a builtin's name is that name. */
static bool is_named(const char *builtin, const char *name)
{
	size_t n = strlen(name);

	return tfh_starts_with(builtin, name) &&
	       (!builtin[n] || builtin[n] == ' ' || builtin[n] == '>');
}

/* Whether a builtin waits for another thread, process or machine. A waiting `get` is a queue's. */
static bool is_wait(const char *s)
{
	static const char *const names[] = {"acquire",	  "sleep",	 "wait",    "select",
					    "poll",	  "recv",	 "get",	    "recv_into",
					    "recvfrom",	  "accept",	 "connect", "waitpid",
					    "epoll_wait", "run_backward"};
	const char *at = builtin_in(s);

	if (strstr(s, " block_until_ready") || strstr(s, " try_to_block")) /* JAX */
		return true;
	for (size_t i = 0; at && i < sizeof(names) / sizeof(*names); i++)
		if (is_named(at, names[i]))
			return strcmp(names[i], "get") != 0 || strstr(at, "Queue");
	return false;
}

/* Whether a function belongs to the language, the framework or an array library. Then its callers
 * are more informative. */
static bool is_library(const char *s)
{
	/* clang-format off */
	static const char *const names[] = {
		"<", "torch/", "numpy/", "nn.Module: ", "jax/", "jaxlib/", "tensorflow/", "triton/",
		"abc.py", "asyncio/", "collections/", "concurrent/", "contextlib.py", "copy.py",
		"dataclasses.py", "enum.py", "functools.py", "importlib/", "inspect.py", "json/",
		"logging/", "multiprocessing/", "operator.py", "os.py", "pathlib.py", "queue.py",
		"random.py", "re.py", "re/", "runpy.py", "selectors.py", "socket.py", "subprocess.py",
		"threading.py", "traceback.py", "types.py", "typing.py", "warnings.py", "weakref.py",
	};
	/* clang-format on */

	s += *s == '$'; /* JAX's tracer */
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (tfh_starts_with(s, names[i]))
			return true;
	s = tfh_in_packages(s);
	return s && (tfh_starts_with(s, "torch/") || tfh_starts_with(s, "numpy/"));
}

static bool is_loader(const char *s)
{
	const char *in = tfh_in_packages(s);

	return tfh_starts_with(in ? in : s, "torch/utils/data/");
}

enum tfh_frame tfh_frame_of(const char *name)
{
	return is_wait(name)	  ? TFH_FRAME_WAITS
	       : is_loader(name)  ? TFH_FRAME_FEEDS
	       : is_library(name) ? TFH_FRAME_LIBRARY
				  : TFH_FRAME_USER;
}

bool tfh_frame_sleeps(const char *name)
{
	const char *at = builtin_in(name);

	return at && is_named(at, "sleep");
}

static struct tfh_role_frame builtin_role(const char *at)
{
	static const char *const names[] = {
#define CALLED(name) name,
#include "base/called.def"
#undef CALLED
	};
	struct tfh_model_line frame = {"<builtin>", "", 0, true};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (is_named(at, names[i])) {
			frame.function = names[i];
			return tfh_role_frame(&frame, TFH_PATH_WHOLE);
		}
	return (struct tfh_role_frame){.library = true};
}

/* Where the line number after a file's name begins: at the bracket or colon; NULL: nowhere. */
static const char *number_in(const char *s)
{
	for (const char *at = s; (at = strpbrk(at, "(:")); at++) {
		size_t n = strspn(at + 1, "0123456789");
		if (n && (*at == '(' ? tfh_starts_with(at + 1 + n, "): ") : at[1 + n] == ' '))
			return at;
	}
	return NULL;
}

struct tfh_role_frame tfh_frame_role(const char *name)
{
	const char *builtin = builtin_in(name), *s = name + (*name == '$'), *at = number_in(s);
	struct tfh_model_line frame = {.function = ""};
	char file[512];

	if (builtin)
		return builtin_role(builtin);
	if (!at || at - s >= (int)sizeof(file))
		return (struct tfh_role_frame){.library = is_library(name)};
	snprintf(file, sizeof(file), "%.*s", (int)(at - s), s);
	frame.file = file;
	frame.function = strchr(at, ' ') + 1;
	frame.library = tfh_file_of_library(file) || is_library(name);
	return tfh_role_frame(&frame, *name == '$'   ? TFH_PATH_NAME
				      : *file == '/' ? TFH_PATH_WHOLE
						     : TFH_PATH_BELOW);
}
