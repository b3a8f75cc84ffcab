#include "base/refused.h"

uint32_t tfh_refused;
