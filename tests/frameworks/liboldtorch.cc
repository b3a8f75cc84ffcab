/* Before torch 1.12: callbacks have another form, and some of the functions do not exist. */
#define OLD
#include "libtorch_cpu.cc"
