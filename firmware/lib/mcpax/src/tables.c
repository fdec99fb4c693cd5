/* The tables that the device map became. */
#define MCPAX_DEFINE_TABLES
#include "internal.h"
