/* surface.c with its functions from the linker; built by truth.py, which knows where a driver is.
 */
#define LINKED
#include "../surface.c"
