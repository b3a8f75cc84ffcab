/*
 * What the name of a Python function shows. Profilers write `file(line): function`, `nn.Module:
 * Linear_0`, `<built-in method acquire of _thread.lock object at 0x7f...>` or `$file:line
 * function`.
 */
#include <string.h>

#include "base/packages.h"
#include "judge/facts/cover.h"

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* Whether a builtin waits for another thread, process or machine. A waiting `get` is a queue's. */
static bool is_wait(const char *s)
{
	static const char *const names[] = {"acquire",	  "sleep",	 "wait",    "select",
					    "poll",	  "recv",	 "get",	    "recv_into",
					    "recvfrom",	  "accept",	 "connect", "waitpid",
					    "epoll_wait", "run_backward"};
	const char *at = starts(s, "<built-in method ")	    ? s + 17
			 : starts(s, "<built-in function ") ? s + 19
							    : NULL;

	if (strstr(s, " block_until_ready") || strstr(s, " try_to_block")) /* JAX */
		return true;
	for (size_t i = 0; at && i < sizeof(names) / sizeof(*names); i++) {
		size_t n = strlen(names[i]);
		if (starts(at, names[i]) && (at[n] == ' ' || at[n] == '>'))
			return strcmp(names[i], "get") != 0 || strstr(at, "Queue");
	}
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
		if (starts(s, names[i]))
			return true;
	s = tfh_in_packages(s);
	return s && (starts(s, "torch/") || starts(s, "numpy/"));
}

static bool is_loader(const char *s)
{
	const char *in = tfh_in_packages(s);

	return starts(in ? in : s, "torch/utils/data/");
}

enum tfh_frame tfh_frame_of(const char *name)
{
	return is_wait(name)	  ? TFH_FRAME_WAITS
	       : is_loader(name)  ? TFH_FRAME_FEEDS
	       : is_library(name) ? TFH_FRAME_LIBRARY
				  : TFH_FRAME_USER;
}
