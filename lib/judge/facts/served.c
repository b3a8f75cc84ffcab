/*
 * What a program that serves requests does for one of them. The request is its input data. A file
 * that it loads for each request is not: it could be loaded once.
 */
#include "judge/facts/served.h"

#include <string.h>

#include "base/text.h"

/* Where Python servers wait for requests, by a part of the file's path. */
static const char *const servers[] = {"/socketserver.py",
				      "/http/server.py",
				      "/wsgiref/",
				      "/grpc/_server.py",
				      "/grpc/aio/_server.py",
				      "/uvicorn/",
				      "/hypercorn/",
				      "/gunicorn/",
				      "/werkzeug/serving.py",
				      "/waitress/",
				      "/aiohttp/web",
				      "/xmlrpc/server.py",
				      "/ray/serve/",
				      "/bentoml/",
				      "/multiprocessing/managers.py"};

bool tfh_in_server(const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (size_t s = 0; frame[i].library && s < sizeof(servers) / sizeof(*servers); s++)
			if (tfh_is_in_package(frame[i].file, servers[s]))
				return true;
	return false;
}

bool tfh_loads_file_by(const char *function)
{
	const char *name = tfh_last_name(function);

	return !strcmp(name, "load") || !strcmp(name, "load_file") ||
	       tfh_starts_with(name, "read_");
}

enum tfh_role tfh_served_role(enum tfh_role role, const struct tfh_model_line *frame, uint32_t n)
{
	if (!TFH_DETECT_RELOADED || (role != TFH_ROLE_READ && role != TFH_ROLE_DECODE))
		return role;
	for (uint32_t i = 0; i < n && frame[i].library; i++)
		if (tfh_loads_file_by(frame[i].function))
			return TFH_ROLE_RELOAD;
	return role;
}

uint32_t tfh_on_connection(const struct tfh_model_line *frame, uint32_t n)
{
	uint32_t own = tfh_library_frames(frame, n);

	if (!own || own == n || !tfh_ends_with(frame[own - 1].file, "/socket.py"))
		return 0;
	return !strcmp(frame[own - 1].function, "SocketIO.readinto") ? TFH_CONNECTION_TAKES
	       : !strcmp(frame[own - 1].function, "SocketIO.write")  ? TFH_CONNECTION_ANSWERS
								     : 0;
}
