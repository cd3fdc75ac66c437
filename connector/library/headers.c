/* Only preprocessed, for table.py. */
#include "library/headers.h"
