/* tfhook's version. It is defined only here. */
#ifndef TFHOOK_VERSION_H
#define TFHOOK_VERSION_H

#define TFHOOK_VERSION_MAJOR 0
#define TFHOOK_VERSION_MINOR 1
#define TFHOOK_VERSION_PATCH 0
#define TFHOOK_VERSION "0.1.0"

#endif
