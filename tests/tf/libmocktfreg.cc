/* The stand-in of libmocktf.cc with a Status that is returned in a register. */
#define STATUS_IN_REGISTER
#include "libmocktf.cc"
