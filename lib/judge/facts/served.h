/* What a program that serves requests does for one of them. */
#ifndef TFH_JUDGE_FACTS_SERVED_H
#define TFH_JUDGE_FACTS_SERVED_H

#include "judge/facts/place_role.h"

/* Whether a library's server has called this. */
bool tfh_in_server(const struct tfh_model_line *frame, uint32_t n);
/* Whether a function of this name loads a whole file: load(), not loads(). */
bool tfh_loads_file_by(const char *function);
/* The role of a stack in a program that serves requests: loading a file is not reading their
 * input. */
enum tfh_role tfh_served_role(enum tfh_role role, const struct tfh_model_line *frame, uint32_t n);

/* What the program itself does with a connection there; 0: nothing. One that does both serves what
 * is at its other end. */
enum { TFH_CONNECTION_TAKES = 1, TFH_CONNECTION_ANSWERS = 2, TFH_CONNECTION_BOTH = 3 };
uint32_t tfh_on_connection(const struct tfh_model_line *frame, uint32_t n);

#endif
