/* The loop client, built beside the tests that need it. */
#include "../jobs/client_loop.c"
