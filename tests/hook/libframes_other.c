#define OTHER
#include "libframes.c"
