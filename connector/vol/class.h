/* The door of this room: the connector as HDF5 sees it. All else is reached through HDF5, by the callbacks in this table. */
#ifndef COW_CLASS_H
#define COW_CLASS_H

#include <H5VLconnector.h>

/* As HDF5 registers them; the name is COW_CONNECTOR_NAME, in native/native.h. */
#define COW_CONNECTOR_VALUE   3118
#define COW_CONNECTOR_VERSION 1

/* What H5VLregister_connector takes. */
extern const H5VL_class_t cow_class;

#endif
