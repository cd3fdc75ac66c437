/* All of HDF5 that connector and command use. table.py reads it, preprocessed, for what there is; calls.h includes it. */
#ifndef COW_LIBRARY_HEADERS_H
#define COW_LIBRARY_HEADERS_H

#include <hdf5.h>

#include <H5FDdevelop.h>
#include <H5Idevelop.h>
#include <H5Ldevelop.h>
#include <H5PLextern.h>
#include <H5Tdevelop.h>
#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>
#include <H5Zdevelop.h>

#endif
